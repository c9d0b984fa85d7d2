"""Goodness of fit of the production sampler: is the noise as declared?

A few draws are looked at in every week; very many once for each version of the code, which see
tails that were cut at four deviations and a mean or a size that is one hundredth off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.audits.pipeline_copy import Draw
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import binomial_at_least, chi_squared_above

DRAWS = 20_000
MANY_DRAWS = 2**20
TAILS = (3.0, 3.5, 4.0)  # deviations
_SHARE_OF_ALPHA = 0.1  # bins of few draws have a longer tail than chi-squared
_EXPECTED_PER_BIN = 25.0
_REACH_SDS = 12
_TESTS = 5 + 2 * len(TAILS)
_TILTS = np.geomspace(1e-3, 0.3, 40)  # over a deviation: of Chernoff's bound
Floats = NDArray[np.float64]


def misfit(event: DrawEvent, draw: Draw, *, alpha: float, draws: int = DRAWS) -> str | None:
    """Return what is wrong with noise drawn on zeros; None if it has the declared distribution.

    Args:
        event: declared noise; a threshold is left away.
        draw: of the pipeline under test: event, cells -> every vector that it publishes.
        alpha: chance that the right noise is found wrong.
        draws: on zeros.
    """
    dense = replace(event, threshold=None, delta=Fraction(0))
    noise = np.concatenate(draw(dense, np.zeros(draws, dtype=np.int64)))
    return misfit_of(noise, event, alpha=alpha)


def misfit_of(noise: NDArray[np.int64], event: DrawEvent, *, alpha: float) -> str | None:
    """Return what is wrong with noise; None if it has the declared distribution.

    A chi-squared test, the number of equal neighbors, the mean, the mean size, and how much lies in
    the tails; none can prove that noise is unpredictable, which is up to the randomness that the
    sampler is fed.

    Args:
        noise: that was added to cells, in the order of drawing.
        event: that declares it.
        alpha: chance that the right noise is found wrong.
    """
    each = alpha / _TESTS
    fit = p_value(noise, event.noise, event.scale)
    if fit < each * _SHARE_OF_ALPHA:
        return f"does not fit (p = {fit:.1g})"
    values, chances = noise_pmf(event.noise, event.scale, reach=int(40 * event.scale) + 1)
    same = float(np.sum(chances**2))
    for start in (0, 1):  # disjoint pairs of neighbors are independent of each other
        pairs = noise[start : noise.size - (noise.size - start) % 2].reshape(-1, 2)
        equal = int((pairs[:, 0] == pairs[:, 1]).sum())
        if binomial_at_least(equal, len(pairs), same) < each / 2:
            return f"{equal} of {len(pairs)} pairs of draws are equal"
    deviation = math.sqrt(values.astype(np.float64) ** 2 @ chances)
    for is_size, words, drawn in ((False, "mean", noise), (True, "mean size", np.abs(noise))):
        moments = _moments_of(event.noise, event.scale, deviation, is_size=is_size)
        low, high = mean_limits(moments, noise.size, each)
        if not low <= float(drawn.mean()) / deviation <= high:
            return f"its {words} is not as declared"
    return next(_wrong_tails(noise, values, chances, deviation, each), None)


def p_value(draws: NDArray[np.int64], noise: NoiseFamily, scale: Fraction) -> float:
    """Return the p-value of the pooled chi-squared test of the draws against its distribution.

    Single values are bins while 25 and more draws are expected there; both tails are pooled.

    Args:
        draws: noise alone, independent, shape (n,).
        noise: claimed family.
        scale: claimed b or sigma.
    """
    reach = math.ceil(_REACH_SDS * math.sqrt(noise_variance(noise, scale)))
    values, probabilities = noise_pmf(noise, scale, reach=reach)
    half = int(np.sum(draws.size * probabilities >= _EXPECTED_PER_BIN)) // 2
    inside = np.abs(values) <= half
    expected = draws.size * probabilities[inside]
    tail = (draws.size - expected.sum()) / 2
    observed = np.bincount(np.clip(draws, -half - 1, half + 1) + half + 1, minlength=2 * half + 3)
    expected = np.concatenate(([tail], expected, [tail]))
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    return chi_squared_above(statistic, expected.size - 1)


def _wrong_tails(
    noise: NDArray[np.int64],
    values: NDArray[np.int64],
    chances: Floats,
    deviation: float,
    alpha: float,
) -> Iterator[str]:
    """Yield which tails hold too much or too little."""
    for reach in TAILS:
        end = reach * deviation + 0.5  # what was cut there, and rounded, does not lie beyond
        beyond = int((np.abs(noise) > end).sum())
        chance = float(chances[np.abs(values) > end].sum())
        if binomial_at_least(beyond, noise.size, chance) < alpha:
            yield f"too much lies beyond {reach:g} deviations"
        if binomial_at_least(noise.size - beyond, noise.size, 1 - chance) < alpha:
            yield f"too little lies beyond {reach:g} deviations"


@lru_cache(maxsize=64)  # few draws and very many, of each kind, have the same
def _moments_of(noise: NoiseFamily, scale: Fraction, deviation: float, *, is_size: bool) -> Floats:
    """Return `log_moments` of noise, or of its size, in deviations."""
    values, chances = noise_pmf(noise, scale, reach=int(40 * scale) + 1)
    return log_moments((np.abs(values) if is_size else values) / deviation, chances)


def log_moments(values: Floats, chances: Floats) -> Floats:
    """Return ln E e^(-t X), then ln E e^(t X), at each tilt t; shape (2, tilts).

    Args:
        values: that X takes, in deviations.
        chances: of each.
    """
    held = chances > 0
    values, chances = values[held], chances[held]
    exponents = ([tilt * values for tilt in sign * _TILTS] for sign in (-1, 1))
    return np.array([[_log_mean_exp(of_tilt, chances) for of_tilt in both] for both in exponents])


def _log_mean_exp(exponents: Floats, chances: Floats) -> float:
    """Return ln E e^x; the largest is taken out, so that none overflows."""
    largest = exponents.max()
    return float(largest + np.log(np.exp(exponents - largest) @ chances))


def mean_limits(moments: Floats, draws: int, alpha: float) -> tuple[float, float]:
    """Return between which limits a mean of so many draws lies but for alpha (Chernoff 1952).

    Args:
        moments: `log_moments` of one draw.
        draws: number.
        alpha: of both sides together.
    """
    enough = math.log(2 / alpha) / draws
    low, high = (float(((logs + enough) / _TILTS).min()) for logs in moments)
    return -low, high
