"""Errors of reconciled numbers and of sums of drawn ones: exact half-widths from declared noise.

A reconciled number is a fixed linear function of the drawn ones, so its error is a sum of w Z over
all draws, with weights from the public shapes and scales alone (`privacy.noise`). For people:
no loss depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.reconciliation import Reconciled
from turnstile.privacy.noise import (
    Floats,
    Term,
    Weighted,
    half_width,
    noise_variance,
    weighted_half_widths,
)
from turnstile.privacy.noise_families import NoiseFamily

CONFIDENCES = (0.90, 0.95)


@dataclass(frozen=True, slots=True)
class Noise:
    """Family and scale of the draws of one table."""

    family: NoiseFamily
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        return noise_variance(self.family, self.scale)

    def term(self, times: int = 1) -> Term:
        """Return so many independent draws as terms of a sum."""
        return Term(self.family, float(self.scale), times)


@dataclass(frozen=True, slots=True)
class MarginalNoise:
    """Noise of the drawn tables of tap-ons or of tap-offs; None where one was not drawn.

    Args:
        shape: slots, locations.
        cells: of the table of slots and locations.
        rows: of the table of slots.
        columns: of the table of locations.
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
    estimate: Reconciled,
    chosen: NDArray[np.bool_],
    noise: MarginalNoise,
    other: MarginalNoise | None = None,
) -> SumError:
    """Return the error of the sum of chosen cells of a reconciled table.

    Args:
        estimate: of any day; only its precisions are used.
        chosen: shape (slots, locations).
        noise: noise of the marginals themselves.
        other: noise of the other tap's, where both share their total (`reconcile_pair`).
    """
    terms = _terms(noise, _influence(estimate, chosen))
    if other is not None:
        share = float(chosen.mean()) * estimate.total_variance / math.prod(other.shape)
        terms += _terms(other, np.full(other.shape, share))
    return error_of(terms)


def error_of(terms: Sequence[Weighted]) -> SumError:
    """Return the error of a weighted sum of independent noises."""
    deviation, widths = weighted_half_widths(terms, CONFIDENCES)
    return SumError(deviation, *widths)


def integer_sum_error(*drawn: tuple[Noise, int]) -> SumError:
    """Return the error of a plain sum of so many numbers of each noise: at least 90 and 95 %."""
    deviation = math.sqrt(sum(terms * noise.variance for noise, terms in drawn))
    noises = [noise.term(terms) for noise, terms in drawn]
    return SumError(deviation, *(half_width(noises, level) for level in CONFIDENCES))


def _influence(estimate: Reconciled, chosen: NDArray[np.bool_]) -> Floats:
    """Return the covariance of the chosen sum with every cell: projections over precisions."""
    picked = chosen.astype(np.float64)
    total = picked.mean()
    rows = picked.mean(axis=1, keepdims=True) - total
    columns = picked.mean(axis=0, keepdims=True) - total
    precisions = estimate.precisions
    parts = (
        (np.full(picked.shape, total), precisions.total),
        (rows, precisions.rows),
        (columns, precisions.columns),
        (picked - rows - columns - total, precisions.interaction),
    )
    influence = np.zeros(picked.shape)
    for part, precision in parts:
        if precision > 0:
            influence = influence + part / precision
        elif np.abs(part).max() > 1e-9:  # noqa: PLR2004 - a float zero
            raise ValueError("the sum asks for a table that was not drawn")
    return influence


def _terms(marginal_noise: MarginalNoise, influence: Floats) -> list[Weighted]:
    """Return the weight of every drawn number: what the sum covaries with, over its variance."""
    tables = (
        (marginal_noise.cells, influence.ravel()),
        (marginal_noise.rows, influence.sum(axis=1)),
        (marginal_noise.columns, influence.sum(axis=0)),
    )
    return [
        Weighted(noise.term(), part / noise.variance) for noise, part in tables if noise is not None
    ]
