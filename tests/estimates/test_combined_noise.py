"""Errors of reconciled numbers and of sums: variances agree, intervals cover what they say."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from turnstile.estimates.fitting.combined_noise import (
    MarginalNoise,
    Noise,
    SumError,
    error_of,
    integer_sum_error,
    sum_error,
)
from turnstile.estimates.fitting.reconciliation import (
    Measured,
    Partition,
    Reconciled,
    reconcile_pair,
)
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms import dense
from turnstile.privacy.noise import Weighted, noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block

SHAPE = (6, 4)
DRAWS = 2_500
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
BLOCK = (Block(date(2016, 7, 25), "bus"),)
COUNTS = np.arange(24, dtype=np.int64).reshape(SHAPE)


def marginal_noise(family: NoiseFamily, cells: int, marginals: int) -> MarginalNoise:
    fine, coarse = Noise(family, Fraction(cells)), Noise(family, Fraction(marginals))
    return MarginalNoise(SHAPE, fine, coarse, coarse)


def drawn(noise: Noise, exact: np.ndarray) -> np.ndarray:
    """Fresh draws of the product's own mechanism, so many of one table at once."""
    event = DrawEvent("t", "count", noise.family, noise.scale, BLOCK, ())
    return dense.draw(event, np.repeat(exact[np.newaxis], DRAWS, axis=0))


def simulated(side: MarginalNoise, exact: np.ndarray) -> np.ndarray:
    """Draws of cells, rows and columns side by side, shape (draws, numbers)."""
    tables = (
        (side.cells, exact),
        (side.rows, exact.sum(axis=1)),
        (side.columns, exact.sum(axis=0)),
    )
    noisy = [drawn(noise, table) for noise, table in tables if noise]
    return np.concatenate([table.reshape(DRAWS, -1) for table in noisy], axis=1)


def reconciled(side: MarginalNoise, on_and_off: np.ndarray) -> tuple[Reconciled, Reconciled]:
    """Reconcile one draw of both sides by the product's code."""
    assert side.cells
    assert side.rows
    assert side.columns
    noises, at = (side.cells, side.rows, side.columns), np.cumsum([24, 6])
    partitions = []
    for drawn_numbers in np.split(on_and_off, 2):
        cells, rows, columns = np.split(drawn_numbers, at)
        tables = (cells.reshape(SHAPE), rows, columns)
        pairs = zip(tables, noises, strict=True)
        partitions.append(Partition(SHAPE, *(Measured(t, noise.variance) for t, noise in pairs)))
    return reconcile_pair(*partitions)


def cells_of(pair: tuple[Reconciled, Reconciled]) -> np.ndarray:
    return np.array([side.cells for side in pair])


class Estimates:
    """Fresh draws of both sides, reconciled; an estimate, and the errors of all cells.

    Least squares are linear: what each number alone becomes says what every draw becomes. A few
    draws are reconciled by themselves, and are the same.
    """

    def __init__(self, side: MarginalNoise) -> None:
        exact = np.array([COUNTS, COUNTS[::-1]])
        draws = np.concatenate([simulated(side, counts.copy()) for counts in exact], axis=1)
        of_each = [cells_of(reconciled(side, unit)) for unit in np.eye(draws.shape[1])]
        cells = np.tensordot(draws, np.array(of_each), axes=1)
        for drawn_numbers, of_draw in zip(draws[:20], cells, strict=False):
            assert np.allclose(cells_of(reconciled(side, drawn_numbers)), of_draw)
        self.first: Reconciled = reconciled(side, draws[0])[0]
        self.errors = (cells - exact).reshape(-1, *SHAPE)


def block(slots: int, places: int) -> np.ndarray:
    chosen = np.zeros(SHAPE, dtype=bool)
    chosen[:slots, :places] = True
    return chosen


@cache
def estimated(family: NoiseFamily, cells: int, marginals: int) -> tuple[MarginalNoise, Estimates]:
    side = marginal_noise(family, cells, marginals)
    return side, Estimates(side)


@pytest.fixture(params=[(LAPLACE, 1, 2), (LAPLACE, 3, 1), (GAUSSIAN, 5, 9)])
def lab(request: pytest.FixtureRequest) -> tuple[MarginalNoise, Estimates]:
    return estimated(*request.param)


@pytest.mark.parametrize(("slots", "places"), [(1, 1), (1, 4), (6, 1), (3, 1), (3, 4), (6, 4)])
def test_the_standard_deviation_is_that_of_least_squares(
    lab: tuple[MarginalNoise, Estimates], slots: int, places: int
) -> None:
    side, estimates = lab
    error = sum_error(estimates.first, block(slots, places), side, side)
    variance = estimates.first.variance_of_sum(block(slots, places))
    assert error.standard_deviation**2 == pytest.approx(variance, rel=1e-6)


def covered(
    side: MarginalNoise, estimates: Estimates, size: tuple[int, int]
) -> tuple[float, float, SumError]:
    """Share of all blocks of a size and of all draws whose error is within 90 and 95 %."""
    slots, places = size
    error = sum_error(estimates.first, block(slots, places), side, side)
    sums = estimates.errors.reshape(-1, 6 // slots, slots, 4 // places, places).sum(axis=(2, 4))
    inside = [np.abs(sums) <= width for width in (error.half_width_90, error.half_width_95)]
    return float(inside[0].mean()), float(inside[1].mean()), error


@pytest.mark.parametrize("size", [(1, 1), (1, 4), (6, 1), (3, 1), (2, 4)])
def test_pooled_intervals_cover_what_they_say(
    lab: tuple[MarginalNoise, Estimates], size: tuple[int, int]
) -> None:
    at_90, at_95, _ = covered(*lab, size)
    # Both sides of 2,500 draws: the slack is six standard errors for cells, seven for blocks.
    slack = 0.005 if size == (1, 1) else 0.015
    assert abs(at_95 - 0.95) <= slack
    assert abs(at_90 - 0.90) <= 2 * slack


def test_normal_half_widths_would_not_cover_a_laplace_cell() -> None:
    # Negative control: 1.96 standard deviations are not 95 % where noise has Laplace's tails.
    side, estimates = estimated(LAPLACE, 1, 2)
    _, _, error = covered(side, estimates, (1, 1))
    normal = float((np.abs(estimates.errors) <= 1.96 * error.standard_deviation).mean())
    assert error.half_width_95 > 1.01 * 1.96 * error.standard_deviation
    assert normal < 0.95


@pytest.mark.parametrize("terms", [1, 2, 10, 300])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 2)])
def test_a_sum_of_measured_cells_has_the_least_integer_half_width(
    scale: Fraction, terms: int
) -> None:
    _, pmf = noise_pmf(LAPLACE, scale, reach=400)
    distribution = pmf
    for bit in f"{terms:b}"[1:]:
        distribution = np.convolve(distribution, distribution)
        distribution = np.convolve(distribution, pmf) if bit == "1" else distribution
        middle = distribution.size // 2
        distribution = distribution[max(0, middle - 1500) : middle + 1501]
    middle = distribution.size // 2
    error = integer_sum_error((Noise(LAPLACE, scale), terms))
    for width, inside in ((error.half_width_90, 0.90), (error.half_width_95, 0.95)):
        reach = int(width)
        assert distribution[middle - reach : middle + reach + 1].sum() >= inside
        assert distribution[middle - reach + 1 : middle + reach].sum() < inside


def test_a_sum_of_many_is_nearly_normal() -> None:
    terms = [Weighted(Noise(LAPLACE, Fraction(2)).term(), np.full(5_000, 0.01))]
    error = error_of(terms)
    assert error.half_width_95 == pytest.approx(1.96 * error.standard_deviation, rel=2e-3)


def test_a_sum_over_a_table_that_was_not_drawn_is_refused() -> None:
    side = MarginalNoise(SHAPE, None, Noise(LAPLACE, Fraction(1)), None)
    rows = Measured(np.zeros(6, dtype=np.int64), 2.0)
    on, _ = reconcile_pair(Partition(SHAPE, rows=rows), Partition(SHAPE, rows=rows))
    assert sum_error(on, block(1, 4), side, side).standard_deviation > 0
    with pytest.raises(ValueError, match="not drawn"):
        sum_error(on, block(1, 1), side, side)
