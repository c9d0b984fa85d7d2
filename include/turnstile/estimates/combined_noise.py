"""The law of a weighted sum of integer noises: exact half-widths for reconciled numbers.

A reconciled number is a fixed linear function of the drawn ones, so its error is a sum of w Z over
all draws, with weights from the public shapes and scales alone. Its distribution is not normal for
Laplace noise (a cell is mostly its own noise), so half-widths come from the characteristic function
(Gil-Pelaez 1951). Floats for people: no loss depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.reconciliation import Reconciled
from turnstile.privacy.events import NoiseFamily
from turnstile.privacy.noise import noise_variance

Floats = NDArray[np.float64]
_STEP_SDS = 0.02  # of the frequency, in 1/sd: the sum repeats after 314 sd only
_BLUR_SDS = 0.01  # a normal blur of one hundredth of the sd makes the integral finite
_LAST_BLURS = 6.0  # frequency, in 1/blur, beyond which nothing is left
_SAME_WEIGHT_DIGITS = 9
_BISECTIONS = 40
_WIDEST_SDS = 12.0


@dataclass(frozen=True, slots=True)
class Noise:
    """Family and scale of the draws of one table."""

    family: NoiseFamily
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        return noise_variance(self.family, self.scale)


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Independent draws of one noise, each with its weight in a sum."""

    noise: Noise
    weights: Floats


@dataclass(frozen=True, slots=True)
class SideNoise:
    """Noise of the drawn tables of one side of a partition; None where one was not drawn.

    Args:
        shape: slots, places.
        cells: of the table of slots and places.
        rows: of the table of slots.
        columns: of the table of places.
    """

    shape: tuple[int, int]
    cells: Noise | None
    rows: Noise | None
    columns: Noise | None


@dataclass(frozen=True, slots=True)
class SumError:
    """Error of one number: it lies within a half-width of the exact one with 90 and 95 %."""

    standard_deviation: float
    half_width_90: float
    half_width_95: float


def sum_error(
    estimate: Reconciled, chosen: NDArray[np.bool_], own: SideNoise, other: SideNoise | None = None
) -> SumError:
    """Return the error of the sum of chosen cells of a reconciled table.

    Args:
        estimate: of any day; only its precisions are used.
        chosen: shape (slots, places).
        own: noise of the side itself.
        other: noise of the other side, where both share their total (`reconcile_pair`).
    """
    terms = _terms(own, _influence(estimate, chosen))
    if other is not None:
        share = float(chosen.mean()) * estimate.total_variance / math.prod(other.shape)
        terms += _terms(other, np.full(other.shape, share))
    return error_of(terms)


def error_of(terms: Sequence[Weighted]) -> SumError:
    """Return the error of a weighted sum of independent noises."""
    variance = sum(term.noise.variance * float((term.weights**2).sum()) for term in terms)
    deviation = math.sqrt(variance)
    if all(term.noise.family is NoiseFamily.DISCRETE_GAUSSIAN for term in terms):
        widths = [NormalDist().inv_cdf(1 - outside / 2) * deviation for outside in (0.10, 0.05)]
    else:
        law = _characteristic(terms, deviation)
        widths = [_half_width(*law, deviation, outside) for outside in (0.10, 0.05)]
    return SumError(deviation, *widths)


def whole_sum_error(noise: Noise, terms: int) -> SumError:
    """Return the error of a plain sum of so many drawn numbers: whole, so at least 90 and 95 %.

    The probabilities are those of the integer law itself, by a Fourier transform.
    """
    deviation = math.sqrt(terms * noise.variance)
    if noise.family is NoiseFamily.DISCRETE_GAUSSIAN:
        widths = [
            math.ceil(NormalDist().inv_cdf(1 - outside / 2) * float(noise.scale) * math.sqrt(terms))
            for outside in (0.10, 0.05)
        ]
        return SumError(deviation, *widths)
    size = 2 ** math.ceil(math.log2(40 * deviation + 64))
    log_law = terms * _log_laplace(2 * np.pi * np.arange(size) / size, noise.scale)
    law = np.fft.ifft(np.exp(log_law)).real
    within = law[0] + 2 * np.cumsum(law[1 : size // 2])  # P(|S| <= t) for t = 1, 2, ...
    inside = np.concatenate([law[:1], within])
    widths = [int(np.argmax(inside >= 1 - outside)) for outside in (0.10, 0.05)]
    return SumError(deviation, *widths)


def _influence(estimate: Reconciled, chosen: NDArray[np.bool_]) -> Floats:
    """Return the covariance of the chosen sum with every cell: projections over precisions."""
    picked = chosen.astype(np.float64)
    total = picked.mean()
    rows = picked.mean(axis=1, keepdims=True) - total
    columns = picked.mean(axis=0, keepdims=True) - total
    found = estimate.precisions
    parts = (
        (np.full(picked.shape, total), found.total),
        (rows, found.rows),
        (columns, found.columns),
        (picked - rows - columns - total, found.interaction),
    )
    influence = np.zeros(picked.shape)
    for part, precision in parts:
        if precision > 0:
            influence = influence + part / precision
        elif np.abs(part).max() > 1e-9:  # noqa: PLR2004 - a float zero
            raise ValueError("the sum asks for a table that was not drawn")
    return influence


def _terms(side: SideNoise, influence: Floats) -> list[Weighted]:
    """Return the weight of every drawn number: what the sum covaries with, over its variance."""
    tables = (
        (side.cells, influence.ravel()),
        (side.rows, influence.sum(axis=1)),
        (side.columns, influence.sum(axis=0)),
    )
    return [Weighted(noise, part / noise.variance) for noise, part in tables if noise is not None]


def _characteristic(terms: Sequence[Weighted], deviation: float) -> tuple[Floats, Floats]:
    """Return frequencies and the real characteristic function of the blurred sum."""
    steps = int(_LAST_BLURS / _BLUR_SDS / _STEP_SDS)
    frequencies: Floats = np.arange(1, steps + 1, dtype=np.float64) * (_STEP_SDS / deviation)
    logs: Floats = -((_BLUR_SDS * deviation * frequencies) ** 2) / 2
    for term in terms:
        sizes, counts = np.unique(
            np.round(np.abs(term.weights), _SAME_WEIGHT_DIGITS), return_counts=True
        )
        for size, count in zip(sizes, counts, strict=True):
            logs = logs + count * _log_of(term.noise, frequencies * size)
    law: Floats = np.exp(logs)
    return frequencies, law


def _log_of(noise: Noise, frequencies: Floats) -> Floats:
    """Logarithm of the characteristic function of one noise."""
    if noise.family is NoiseFamily.DISCRETE_LAPLACE:
        return _log_laplace(frequencies, noise.scale)
    gaussian: Floats = -noise.variance * frequencies**2 / 2
    return gaussian


def _log_laplace(frequencies: Floats, scale: Fraction) -> Floats:
    """Log of (1 - r)^2 / (1 - 2 r cos t + r^2), written so that nothing cancels near t = 0."""
    ratio = math.exp(-1 / float(scale))
    sharpness = 4 * ratio / (1 - ratio) ** 2
    log_law: Floats = -np.log1p(sharpness * np.sin(frequencies / 2) ** 2)
    return log_law


def _half_width(frequencies: Floats, law: Floats, deviation: float, outside: float) -> float:
    """Return h with P(|S| > h) = outside, by bisection."""
    step = frequencies[0]

    def inside(width: float) -> float:
        waves = np.sin(width * frequencies) / frequencies * law
        return float(2 / np.pi * step * (width / 2 + waves.sum()))  # trapezoids, from 0 on

    low, high = 0.0, _WIDEST_SDS * deviation
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= 1 - outside else (middle, high)
    return high
