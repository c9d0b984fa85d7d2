"""Estimates of one mode's tap-ons or tap-offs: cells and marginals that borrow strength and add up.

Cells are the weighted fits (`cell_fits`, `fit_weights`). A marginal is a weighted mean of the
reconciled one, where it was drawn, and of the sum of the cells; day totals are the reconciled ones,
with those that were drawn under a bound of their own. Then the cells are fitted to the marginals
(`marginal_fit`). Every weight comes from errors that are known without the truth. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from turnstile.estimates.fitting.cell_fits import Weeks, fits
from turnstile.estimates.fitting.fission import JUDGED_TIMES
from turnstile.estimates.fitting.fit_weights import Look, class_weights, size_classes, weighted
from turnstile.estimates.fitting.marginal_fit import fitted_to_marginals
from turnstile.estimates.trips.tap_numbers import TapNumbers

Floats = NDArray[np.float64]
SIZE_EDGES = (1.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0, 500.0)  # counts of a cell
PUBLISHED_AS_0 = 0.05  # below: half of the last digit
MARGINAL_EDGES_SDS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # in sd of the reconciled number
_MARGINAL_PSEUDO_COUNT = 50.0
_SPREAD_ROUNDS = 20
_ALMOST_ZERO = 1e-9
HOURS = 24
SHAKEN = 4  # looks that tell how estimates go with the noise
SMALLEST_RATE = 0.1  # the last digit that is published
_OF_OTHER_DAYS = 0.25


@dataclass(frozen=True, eq=False)  # without slots: rates are remembered
class TapEstimates:
    """Estimates that are not negative and add up.

    Args:
        cells: shape (places, days, slots).
        slots: sums over places, shape (days, slots).
        places: sums over slots, shape (places, days).
        totals: shape (days,).
    """

    cells: Floats
    slots: Floats
    places: Floats
    totals: Floats

    @cached_property
    def rates(self) -> Floats:
        """What the errors of cells grow with, same shape.

        The mean of the slots within an hour, or the next ones, if that is more than the cell's own
        estimate: where nothing stands out of the noise beside busy slots much may be hidden, and
        at night hardly anything. At least a quarter of what the place has then on all days.
        """
        reach = max(1, self.cells.shape[2] // HOURS)
        padded = np.pad(self.cells, ((0, 0), (0, 0), (reach, reach)), mode="edge")
        around = sliding_window_view(padded, 2 * reach + 1, axis=2).mean(axis=-1)
        usual = np.maximum(_OF_OTHER_DAYS * self.cells.mean(axis=1, keepdims=True), SMALLEST_RATE)
        rates: Floats = np.maximum(np.maximum(self.cells, around), usual)
        return rates


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """Estimates, and those of numbers that are shaken by a little of what a look adds."""

    numbers: TapEstimates
    shaken: tuple[TapEstimates, ...]


def estimated(
    numbers: TapNumbers, fissions: Sequence[tuple[TapNumbers, TapNumbers]], earlier: Weeks | None
) -> Estimated:
    """Return the estimates.

    Args:
        numbers: of this week.
        fissions: fissions of them: to fit, to judge.
        earlier: weeks before, if there are any.
    """
    seen = [_Fitted.of(fitted, earlier) for fitted, _ in fissions]
    model = _Model.of(seen, [judge for _, judge in fissions], numbers)
    of_shaken = (
        model.estimates(_Fitted.of(numbers.shaken(fitted), earlier))
        for fitted, _ in fissions[:SHAKEN]
    )
    return Estimated(model.estimates(_Fitted.of(numbers, earlier)), tuple(of_shaken))


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """Numbers and the fits of their cells, shape (fits, places, days, slots)."""

    numbers: TapNumbers
    fits: Floats

    @classmethod
    def of(cls, numbers: TapNumbers, earlier: Weeks | None) -> _Fitted:
        """Fit the cells."""
        return cls(numbers, fits(numbers.cells, sqrt(numbers.cell_variance), earlier))

    def weighted_cells(self, weights: Floats) -> Floats:
        """Return the weighted fits of the cells."""
        return weighted(self.fits, size_classes(self.fits[-1], SIZE_EDGES), weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """Weights of the fits of cells, of slots and of places, by day and size class."""

    of_cells: Floats
    of_slots: Floats
    of_places: Floats

    @classmethod
    def of(
        cls, seen: Sequence[_Fitted], judges: Sequence[TapNumbers], numbers: TapNumbers
    ) -> _Model:
        """Weigh the cells' fits, then those of the marginals that follow from them."""
        of_cells = class_weights(
            [
                _look(fission.fits, judge.cells, SIZE_EDGES)
                for fission, judge in zip(seen, judges, strict=True)
            ],
            len(SIZE_EDGES) + 1,
            numbers.cell_variance * JUDGED_TIMES,
        )
        slots, places = [], []
        for fitted, judge in zip(seen, judges, strict=True):
            of_slots, of_places = _marginal_fits(fitted, fitted.weighted_cells(of_cells))
            slot_edges, place_edges = (
                _edges(fitted.numbers.slot_variance),
                _edges(fitted.numbers.place_variance),
            )
            slots.append(_look(of_slots, judge.slots[None], slot_edges))
            places.append(_look(of_places, judge.places[..., None], place_edges))
        return cls(
            of_cells,
            _marginal_weights(slots, numbers.slot_variance),
            _marginal_weights(places, numbers.place_variance),
        )

    def estimates(self, fit: _Fitted) -> TapEstimates:
        """Return cells and marginals that add up."""
        numbers, cells = fit.numbers, fit.weighted_cells(self.of_cells)
        totals = np.maximum(numbers.likely_totals, 0)
        of_slots, of_places = _marginal_fits(fit, cells)
        slots = _weighted(of_slots, numbers.slot_variance, self.of_slots)[0]
        places = _weighted(of_places, numbers.place_variance, self.of_places)[..., 0]
        slots, places = with_totals(slots.T, totals).T, with_totals(places, totals)
        fitted = [
            fitted_to_marginals(cells[:, day], places[:, day], slots[day])
            for day in range(len(totals))
        ]
        return TapEstimates(np.stack(fitted, axis=1), slots, places, totals)


def _look(fit_values: Floats, judge: Floats, edges: tuple[float, ...]) -> Look:
    """Return a look whose size classes are those of its last fit (first, of marginals)."""
    return Look(fit_values, judge, size_classes(fit_values[-1], edges))


def _marginal_fits(fitted: _Fitted, cells: Floats) -> tuple[Floats, Floats]:
    """Return fits of slots, shape (1 or 2, 1, days, slots), and of places (.., places, days, 1).

    The sum of the cells, and the reconciled number where the marginal was drawn itself.
    """
    numbers = fitted.numbers
    slots, places = [cells.sum(axis=0)], [cells.sum(axis=2)]
    if numbers.has_slots:
        slots.append(np.maximum(numbers.slots, 0))
    if numbers.has_places:
        places.append(np.maximum(numbers.places, 0))
    return np.stack(slots)[:, None], np.stack(places)[..., None]


def _edges(variance: float) -> tuple[float, ...]:
    """Return the size classes of marginals, in counts."""
    return tuple(edge * sqrt(variance) for edge in MARGINAL_EDGES_SDS)


def _marginal_weights(fissions: Sequence[Look], variance: float) -> Floats:
    """Weigh the fits of a marginal."""
    classes = len(MARGINAL_EDGES_SDS) + 1
    return class_weights(fissions, classes, variance * JUDGED_TIMES, least=_MARGINAL_PSEUDO_COUNT)


def _weighted(fit_values: Floats, variance: float, weights: Floats) -> Floats:
    return weighted(fit_values, size_classes(fit_values[-1], _edges(variance)), weights)


def with_totals(parts: Floats, totals: Floats) -> Floats:
    """Return the non-negative parts next to these that sum to the totals, column by column.

    Args:
        parts: shape (parts, columns).
        totals: >= 0, shape (columns,).
    """
    adjusted = np.maximum(parts, 0)
    for _ in range(_SPREAD_ROUNDS):
        missing = totals - adjusted.sum(axis=0)
        is_free = (adjusted > 0) | (missing > _ALMOST_ZERO * totals)  # beyond rounding
        share = missing / np.maximum(is_free.sum(axis=0), 1)
        adjusted = np.maximum(adjusted + np.where(is_free, share, 0), 0)
    sums = adjusted.sum(axis=0)
    scale = np.divide(totals, sums, out=np.zeros(sums.shape), where=sums > _ALMOST_ZERO)
    spread: Floats = adjusted * scale
    return spread
