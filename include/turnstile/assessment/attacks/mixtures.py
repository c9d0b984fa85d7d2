"""The likeliest mixture of given distributions.

Kiefer & Wolfowitz 1956; Lindsay 1983; Wang 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = 60
_GAP = 0.05  # of the log likelihood, to its largest
_HALVINGS = 12
_ARMIJO = 0.3
_PENALTY = 1e3

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mixture:
    """A fitted mixture.

    Args:
        shares: shape (distributions,), of each distribution.
        log_likelihood_at_most: no mixture is likelier than this.
    """

    shares: Floats
    log_likelihood_at_most: float


def likeliest_mixture(distributions: Floats, weights: Floats, *, gap: float = _GAP) -> Mixture:
    """Return a mixture whose log likelihood is within `gap` of the largest, if the steps suffice.

    Args:
        distributions: shape (outcomes, distributions), P(outcome | distribution).
        weights: shape (outcomes,), how often each outcome was seen, > 0.
        gap: of the sum of weights times log P(outcome).
    """
    from scipy.optimize import nnls

    mix = np.full(distributions.shape[1], 1 / distributions.shape[1])
    total = float(weights.sum())
    roots, sum_row = np.sqrt(weights), np.full(distributions.shape[1], _PENALTY * np.sqrt(total))
    for _ in range(_STEPS):
        density = distributions @ mix
        slopes = distributions.T @ (weights / density)
        if float(slopes.max()) - total < gap:
            break
        use = (mix > 0) | (slopes > total)  # a share of any other one would make it less likely
        system = np.vstack(((distributions[:, use].T * (roots / density)).T, sum_row[use]))
        target = np.append(2 * roots, _PENALTY * np.sqrt(total))
        proposed = np.zeros(mix.size)
        proposed[use], _ = nnls(system, target, maxiter=30 * mix.size)
        mix = _climbed(distributions, weights, mix, proposed / proposed.sum())
    density = distributions @ mix
    excess = float((distributions.T @ (weights / density)).max()) - total
    return Mixture(mix, float(np.sum(weights * np.log(density))) + excess)


def _climbed(distributions: Floats, weights: Floats, mix: Floats, proposed: Floats) -> Floats:
    """Return a mixture between two that is likelier than the first, by halving the step."""
    direction = proposed - mix
    density, change = distributions @ mix, distributions @ direction
    gain = float(np.sum(weights * change / density))
    share = 1.0
    for _ in range(_HALVINGS):
        with np.errstate(divide="ignore", invalid="ignore"):
            better = float(np.sum(weights * np.log1p(share * change / density)))
        if better >= _ARMIJO * share * gain:
            return np.asarray(mix + share * direction)
        share /= 2
    return mix
