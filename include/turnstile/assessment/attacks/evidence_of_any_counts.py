"""Evidence against the noise of a dense table, whatever its raw counts are (PRIVACY 8.4).

Every published number is an unknown integer c >= 0 (any integer for sums) plus noise, so a table is
drawn from a mixture of shifted noise distributions. No such mixture can be narrower than the noise,
or reach farther below zero than it. Some of the cells give a distribution q that fits; p is the
mixture of the declared distributions that is nearest to it. Then E[q(x)/p(x)] <= 1 for every c if
the noise is as declared (Grunwald, de Heide & Koolen 2024, Theorem 1), so the product over the next
cells, which q was not learned from, passes 1/alpha with a chance of at most alpha (Markov; Ville):
no false alarm beyond it, with any raw counts. A fourth of the cells is learned from; each further
fourth is bet on, then learned from too. The power comes from cells that are alike, such as empty
ones: without any, a smaller scale cannot be distinguished from scattered counts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from turnstile.assessment.attacks.mixtures import likeliest_mixture
from turnstile.assessment.attacks.noise_outcomes import MEANS_PER_SCALE, Outcomes
from turnstile.privacy.noise_families import NoiseFamily

_CHECKED_PER_SCALE = 24
# q: the numbers so far, or noise so many times as wide
_ALTERNATIVES = (None, 0.5, 0.8, 0.9, 1.1, 1.25, 2.0)
_PARTS = 4
_UNIFORM = 0.01  # of q, so that one odd number does not undo all evidence
_GAP = 1e-3
_WORTH = 10.0  # nats, of the 28 that three fourths of the numbers need for 1e-9
_MANY = 10  # expected numbers, from which on their scatter is normal

Floats = NDArray[np.float64]


def log_evidence(
    values: NDArray[np.int64], family: NoiseFamily, scale: float, *, is_signed: bool = False
) -> float:
    """Return the logarithm of the evidence against noise; above ln(1/alpha) it is refuted.

    Bets are on other scales, and on what the numbers look like themselves.

    Args:
        values: published numbers, any shape.
        family: of the noise.
        scale: that is tested, in counts.
        is_signed: whether raw numbers may be below zero.
    """
    return log_mean(log_bets(values, Outcomes(family, scale, is_signed)))


def log_mean(logs: Floats) -> float:
    """Return the logarithm of the mean of bets."""
    return float(np.logaddexp.reduce(logs)) - math.log(logs.size)


def log_bets(values: NDArray[np.int64], outcomes: Outcomes) -> Floats:
    """Return the logarithm of each bet's gain, in one order, so that bets on tables multiply.

    Args:
        values: published numbers, any shape.
        outcomes: of the noise that is tested.
    """
    seen = outcomes.of(values.ravel())
    if seen.size < _PARTS:
        return np.zeros(len(_ALTERNATIVES))
    parts = [seen[n::_PARTS] for n in range(_PARTS)]
    logs = [
        [
            _log_product(outcomes, np.concatenate(parts[:n]), parts[n], times)
            for times in _ALTERNATIVES
        ]
        for n in range(1, _PARTS)
    ]
    return np.asarray(np.sum(logs, axis=0))


def is_worth_a_bet(values: NDArray[np.int64], outcomes: Outcomes) -> bool:
    """Tell whether the declared noise fits so badly that a bet against it could pass 1e-9.

    A bet gains about three fourths of what the likeliest mixture falls short of the numbers' own
    shares, beyond what chance takes anyway. Not to bet is always allowed: it raises no alarm.

    Args:
        values: published numbers, any shape.
        outcomes: of the noise that is tested.
    """
    counts = np.bincount(outcomes.of(values.ravel()), minlength=outcomes.number)
    declared = outcomes.distributions(outcomes.means(MEANS_PER_SCALE)) + 1e-300
    seen = counts > 0
    mixture = likeliest_mixture(declared[seen], counts[seen].astype(np.float64), gap=1.0)
    expected = values.size * (declared @ mixture.shares)
    short = float(np.sum(counts[seen] * np.log(counts[seen] / expected[seen])))
    return short - float(_short_by_chance(expected).sum()) > _WORTH


def _short_by_chance(expected: Floats) -> Floats:
    """Return E[x ln(x / expected)] of Poisson counts x, less their mean excess: 1/2 where many."""
    few = np.minimum(expected, _MANY)[:, None]
    counts = np.arange(1, 4 * _MANY)
    logs = np.log(counts / few)
    chances = np.exp(counts * np.log(few) - few - gammaln(counts + 1))
    return np.where(expected < _MANY, (chances * counts * logs).sum(axis=1), 0.5)


def _log_product(
    outcomes: Outcomes, learned: NDArray[np.int64], tested: NDArray[np.int64], times: float | None
) -> float:
    """Return the logarithm of the product of q(x)/p(x) over the tested numbers.

    Args:
        outcomes: that are distinguished.
        learned: numbers that q is learned from.
        tested: numbers that are bet on.
        times: q is a mixture of noise so many times as large; None for the numbers as they are.
    """
    counts = np.bincount(learned, minlength=outcomes.number).astype(np.float64)
    means = outcomes.means(MEANS_PER_SCALE)
    fitting = outcomes.distributions(means, 1.0 if times is None else times)
    seen = (counts > 0) & (fitting.max(axis=1) > 0)
    shares = likeliest_mixture(fitting[seen] + 1e-300, counts[seen]).shares
    q = fitting @ shares
    if times is None:  # drawn to the mixture by as much as half of the pieces would weigh
        weight = counts.sum() / (counts.sum() + outcomes.number / 2)
        q = weight * counts / counts.sum() + (1 - weight) * q
    q = (1 - _UNIFORM) * q + _UNIFORM / outcomes.number
    declared = outcomes.distributions(means) + 1e-300
    p = declared @ likeliest_mixture(declared, q, gap=_GAP).shares
    ratios = q / p
    # E[q/p] over every raw number, by distributions that lie closer still; 1 if p were exactly
    # the nearest.
    most = float((outcomes.distributions(outcomes.means(_CHECKED_PER_SCALE)).T @ ratios).max())
    return float(np.log(ratios[tested] / most).sum())
