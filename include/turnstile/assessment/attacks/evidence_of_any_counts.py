"""Evidence against the noise of a dense table, whatever its raw counts are (PRIVACY 8.4).

Every published number is an unknown integer c >= 0 (any integer for sums) plus noise, so a table is
drawn from a mixture of shifted noise distributions. No such mixture can be narrower than the noise,
or reach farther below zero than it. Some of the cells give a distribution q that fits; p is the
mixture of the declared distributions that is nearest to it. Then E[q(x)/p(x)] <= 1 for every c if
the noise is as declared (Grunwald, de Heide & Koolen 2024, Theorem 1), so the product over the next
cells, which q was not learned from, passes 1/alpha with a chance of at most alpha (Markov; Ville):
no false alarm beyond it, with any raw counts. An eighth of the cells is learned from; the next
eighth, the next fourth and the other half are bet on, then learned from too. The power comes from
cells that are alike, such as empty ones: without any, a smaller scale cannot be distinguished from
scattered counts.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from turnstile.assessment.attacks.mixtures import likeliest_mixture
from turnstile.assessment.attacks.noise_outcomes import (
    MEANS_PER_SCALE,
    UNCUT,
    Cut,
    Outcomes,
)
from turnstile.privacy.noise_families import NoiseFamily

_CHECKED_PER_SCALE = {True: 1000, False: 96}  # of Laplace noise and of others
# q: the numbers so far; or noise so many times as wide, cut at both ends or above, on most cells
_ALTERNATIVES: tuple[tuple[float, Cut] | None, ...] = (
    None,
    *((times, UNCUT) for times in (0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 2.0)),
    (1.0, (-3.0, 3.0)),
    (1.0, (-math.inf, 2.0)),
)
_ENDS = (0.125, 0.25, 0.5, 1.0)  # of the parts of the cells that are bet on one after the other
_GOLDEN = (5**0.5 - 1) / 2  # its multiples scatter a part over all cells
_UNIFORM = 1e-4  # of q, so that one odd number does not undo all evidence
_GAP = 0.5  # nats that a bet loses at most because p is not quite the nearest mixture
_WORTH = 10.0  # nats, of the 21 that 1e-9 needs in all tables together
_MANY = 10  # expected numbers, from which on their scatter is normal

Floats = NDArray[np.float64]


def log_evidence(
    values: NDArray[np.int64], family: NoiseFamily, scale: float, *, is_signed: bool = False
) -> float:
    """Return the logarithm of the evidence against noise; above ln(1/alpha) it is refuted.

    Bets are on other scales, on noise that is cut or left out of cells, and on what the numbers
    look like themselves.

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
    places = np.arange(seen.size) * _GOLDEN % 1
    logs = np.zeros(len(_ALTERNATIVES))
    for first, last in pairwise(_ENDS):
        learned, tested = seen[places < first], seen[(first <= places) & (places < last)]
        if tested.size:
            logs += [_log_product(outcomes, learned, tested, other) for other in _ALTERNATIVES]
    return logs


def is_worth_a_bet(values: NDArray[np.int64], outcomes: Outcomes) -> bool:
    """Tell whether the declared noise fits so badly that a bet against it could pass 1e-9.

    A bet gains at most what the likeliest mixture falls short of the numbers' own shares, beyond
    what chance takes anyway. Not to bet is always allowed: it raises no alarm.

    Args:
        values: published numbers, any shape.
        outcomes: of the noise that is tested.
    """
    counts = np.bincount(outcomes.of(values.ravel()), minlength=outcomes.number)
    declared = outcomes.distributions(MEANS_PER_SCALE) + 1e-300
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
    outcomes: Outcomes,
    learned: NDArray[np.int64],
    tested: NDArray[np.int64],
    other: tuple[float, Cut] | None,
) -> float:
    """Return the logarithm of the product of q(x)/p(x) over the tested numbers.

    Args:
        outcomes: that are distinguished.
        learned: numbers that q is learned from.
        tested: numbers that are bet on.
        other: q is a mixture of noise so many times as large, which reaches from and to so many
            deviations, and of empty cells without any; None for the numbers as they are.
    """
    counts = np.bincount(learned, minlength=outcomes.number).astype(np.float64)
    fitting = outcomes.distributions(MEANS_PER_SCALE, *(other or ()))
    if other:
        bare = np.arange(outcomes.number) == outcomes.of(np.zeros(1, dtype=np.int64))
        fitting = np.column_stack((fitting, bare))
    seen = (counts > 0) & (fitting.max(axis=1) > 0)
    shares = likeliest_mixture(fitting[seen] + 1e-300, counts[seen]).shares
    q = fitting @ shares
    if not other:  # drawn to the mixture by as much as half of the pieces would weigh
        weight = counts.sum() / (counts.sum() + outcomes.number / 2)
        q = weight * counts / counts.sum() + (1 - weight) * q
    q = (1 - _UNIFORM) * q + _UNIFORM / outcomes.number
    declared = outcomes.distributions(MEANS_PER_SCALE) + 1e-300
    p = declared @ likeliest_mixture(declared, q, gap=_GAP / tested.size).shares
    ratios = q / p
    # E[q/p] over every raw number, by distributions that lie closer still; 1 if p were exactly
    # the nearest. Between two of them that are 2 h scales apart, noise is at most e^h times a mean
    # of theirs, and normal noise e^(h^2/2) times.
    is_pure = outcomes.family.record.is_pure
    most = float((outcomes.distributions(_CHECKED_PER_SCALE[is_pure]).T @ ratios).max())
    step = outcomes.step(_CHECKED_PER_SCALE[is_pure])
    apart = 0.0 if step == 1 else step / outcomes.scale / 2
    beyond = apart if is_pure else apart**2 / 2
    return float((np.log(ratios[tested] / most) - beyond).sum())
