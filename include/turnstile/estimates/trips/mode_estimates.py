"""Tap-ons or tap-offs of every mode with their estimates; as numbers whose error is modelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.error_model import ErrorModel, ErrorTerms
from turnstile.estimates.fitting.fission import FITTED_TIMES
from turnstile.estimates.fitting.fit_weights import size_classes
from turnstile.estimates.intervals import PARTS, in_tenths
from turnstile.estimates.published_tables import (
    CELLS,
    Grain,
    Part,
    Quantity,
    edges_of,
    noise_variance,
    parts_of,
    rates_of,
    values_of,
)
from turnstile.estimates.roll_ups import Blocks
from turnstile.estimates.trips.tap_estimates import HOURS, TapEstimates, estimated
from turnstile.estimates.trips.trip_weeks import ModeTaps, taps_by_mode
from turnstile.estimates.week_to_estimate import WeekToEstimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ModeEstimates:
    """Tap-ons or tap-offs of one mode with their estimates.

    Args:
        drawn: numbers and looks.
        estimates: rounded.
        of_looks: of each look.
        index: among all results.
    """

    drawn: ModeTaps
    estimates: TapEstimates
    of_looks: tuple[TapEstimates, ...]
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class SeenNumbers:
    """A quantity as one look at one mode's taps estimates it, and what the other look says of it.

    Args:
        numbers: flat, with what their errors depend on.
        values: the same estimates, shape (places, days, slots).
        judge: without bias, same shape.
    """

    numbers: ErrorTerms
    values: Floats
    judge: Floats


def estimates_by_mode(week: WeekToEstimate) -> Iterator[ModeEstimates]:
    """Yield the estimates of every mode, tap-on and tap-off."""
    for index, taps in enumerate(taps_by_mode(week)):
        estimates, of_looks = estimated(taps.numbers, taps.looks, taps.earlier)
        yield ModeEstimates(taps, _rounded(estimates), of_looks, index)


def _rounded(estimates: TapEstimates) -> TapEstimates:
    """Return the estimates in tenths that add up."""
    tenths = in_tenths(estimates.cells)
    sums = (tenths, tenths.sum(axis=0), tenths.sum(axis=2), tenths.sum(axis=(0, 2)))
    cells, slots, places, totals = (numbers / PARTS for numbers in sums)
    return TapEstimates(cells, slots, places, totals)


def with_spread(result: ModeEstimates, model: ErrorModel, quantity: Quantity) -> ModeEstimates:
    """Return the estimates with the variances of the errors of their cells, or then of places."""

    def known(estimates: TapEstimates, times: float) -> TapEstimates:
        numbers = numbers_of(result, estimates, quantity, Blocks())
        seen = replace(numbers, noise_variance=numbers.noise_variance * times)
        variances = model.variances(seen)
        if quantity == CELLS or estimates.spread is None:
            of_cells = variances.reshape(estimates.cells.shape)
            return replace(estimates, spread=TapEstimates.of_cells(of_cells))
        of_places = variances.reshape(estimates.places.shape)
        return replace(estimates, spread=replace(estimates.spread, places=of_places))

    return replace(
        result,
        estimates=known(result.estimates, 1.0),
        of_looks=tuple(known(look, FITTED_TIMES) for look in result.of_looks),
    )


def numbers_of(
    result: ModeEstimates, estimates: TapEstimates, quantity: Quantity, blocks: Blocks
) -> ErrorTerms:
    """Return the estimates of a quantity, flat, with what their errors depend on."""
    return _numbers(result, estimates, values_of(estimates, quantity, blocks), quantity, blocks)


def seen_numbers(
    result: ModeEstimates, look: int, quantity: Quantity, blocks: Blocks
) -> SeenNumbers:
    """Return the same of one look, and what they are judged on."""
    estimates, judge = result.of_looks[look], result.drawn.looks[look][1]
    values = values_of(estimates, quantity, blocks)
    return SeenNumbers(
        numbers=_numbers(result, estimates, values, quantity, blocks),
        values=values,
        judge=values_of(judge, quantity, blocks),
    )


def _numbers(
    result: ModeEstimates,
    estimates: TapEstimates,
    values: Floats,
    quantity: Quantity,
    blocks: Blocks,
) -> ErrorTerms:
    """Put beside each value what its error depends on."""
    variance = np.broadcast_to(noise_variance(result.drawn.numbers, quantity, blocks), values.shape)
    scale = np.ones(values.shape) if quantity[0] is Part.CELLS else np.sqrt(variance)
    _, days, slots = np.indices(values.shape)
    classes = size_classes((values / scale).ravel(), edges_of(quantity))
    hours = slots.ravel() * HOURS // values.shape[2]
    return ErrorTerms(
        estimates=values.ravel(),
        rates=rates_of(estimates, quantity, blocks).ravel(),
        parts=parts_of(estimates, quantity, blocks).ravel(),
        noise_variance=variance.ravel(),
        classes=classes,
        days=days.ravel(),
        groups=np.full(values.size, result.index),
        levels=classes if quantity[1] is Grain.DAY else hours,
        weights=_weights(variance, quantity),
    )


def _weights(variance: Floats, quantity: Quantity) -> Floats:
    """Return how much each number is of what its level lies off by: of regions, by their size."""
    size = variance if quantity[0] is Part.REGIONS else np.ones(variance.shape)
    weights: Floats = (size / size.mean()).ravel()
    return weights
