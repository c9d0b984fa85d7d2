"""Tap-ons or tap-offs of every mode with their estimates; as numbers whose error is modelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.error_model import ErrorTerms, Judged
from turnstile.estimates.fitting.fission import SPLIT
from turnstile.estimates.fitting.fit_weights import size_classes
from turnstile.estimates.intervals import PARTS, in_tenths
from turnstile.estimates.published_tables import (
    Grain,
    Part,
    Quantity,
    edges_of,
    noise_variance,
    rates_of,
    values_of,
)
from turnstile.estimates.roll_ups import Blocks
from turnstile.estimates.trips.tap_estimates import HOURS, SHAKEN, TapEstimates, estimated
from turnstile.estimates.trips.tap_numbers import SHAKE
from turnstile.estimates.trips.trip_weeks import ModeTaps, taps_by_mode
from turnstile.estimates.week_to_estimate import WeekToEstimate

Floats = NDArray[np.float64]
# Cells and hours within their noise go with it more than the best estimates would, so their errors
# are smaller than that tells, by this; cities and noises that were tried agree.
SEEN_SDS, SMALL_POWER = 1.2, 0.45


@dataclass(frozen=True, slots=True, eq=False)
class ModeEstimates:
    """Tap-ons or tap-offs of one mode with their estimates.

    Args:
        drawn: numbers and looks.
        estimates: rounded.
        of_looks: of each look.
        of_shaken: of numbers that are shaken by what the first looks add.
        index: among all results.
    """

    drawn: ModeTaps
    estimates: TapEstimates
    of_looks: tuple[TapEstimates, ...]
    of_shaken: tuple[TapEstimates, ...]
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
        made = estimated(taps.numbers, taps.looks, taps.earlier)
        yield ModeEstimates(taps, _rounded(made.numbers), made.looks, made.shaken, index)


def _rounded(estimates: TapEstimates) -> TapEstimates:
    """Return the estimates in tenths that add up."""
    tenths = in_tenths(estimates.cells)
    sums = (tenths, tenths.sum(axis=0), tenths.sum(axis=2), tenths.sum(axis=(0, 2)))
    cells, slots, places, totals = (numbers / PARTS for numbers in sums)
    return TapEstimates(cells, slots, places, totals)


def numbers_of(result: ModeEstimates, quantity: Quantity, blocks: Blocks) -> ErrorTerms:
    """Return the estimates of a quantity, flat, with what their errors depend on."""
    estimates = result.estimates
    return _numbers(result, estimates, values_of(estimates, quantity, blocks), quantity, blocks)


def judged_numbers(result: ModeEstimates, quantity: Quantity, blocks: Blocks) -> Judged:
    """Return the estimates of a quantity, the unbiased numbers, and how they go with their noise.

    What a look adds to the noise changes the estimates.
    """
    drawn, values = result.drawn, values_of(result.estimates, quantity, blocks)
    unbiased = values_of(drawn.numbers, quantity, blocks)
    slopes = np.zeros(values.shape)
    for estimates, (fitted, _) in zip(result.of_shaken, drawn.looks[:SHAKEN], strict=True):
        added = values_of(fitted, quantity, blocks) - unbiased
        slopes += (values_of(estimates, quantity, blocks) - values) * added
    return Judged(
        numbers=numbers_of(result, quantity, blocks),
        unbiased=unbiased.ravel(),
        slopes=slopes.ravel() / (SPLIT**2 * SHAKE * len(result.of_shaken)),
    )


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
    slots = np.indices(values.shape)[2]
    classes = size_classes((values / scale).ravel(), edges_of(quantity))
    rates = rates_of(estimates, quantity, blocks)
    usual = np.broadcast_to(rates.mean(axis=1, keepdims=True), values.shape)
    if quantity[0] is Part.CELLS:
        rates = rates * np.minimum(usual / np.sqrt(variance) / SEEN_SDS, 1) ** SMALL_POWER
    hours = slots.ravel() * HOURS // values.shape[2]
    return ErrorTerms(
        estimates=values.ravel(),
        rates=rates.ravel(),
        noise_variance=variance.ravel(),
        classes=classes,
        usual=usual.ravel(),
        groups=np.full(values.size, result.index),
        levels=classes if quantity[1] is Grain.DAY else hours,
        weights=_weights(variance, quantity),
    )


def _weights(variance: Floats, quantity: Quantity) -> Floats:
    """Return how much each number is of what its level lies off by: of regions, by their size."""
    size = variance if quantity[0] is Part.REGIONS else np.ones(variance.shape)
    weights: Floats = (size / size.mean()).ravel()
    return weights
