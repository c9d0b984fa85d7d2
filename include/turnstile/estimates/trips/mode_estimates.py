"""Tap-ons or tap-offs of every mode with their estimates; as numbers whose error is modelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, slots=True, eq=False)
class ModeEstimates:
    """Tap-ons or tap-offs of one mode with their estimates.

    Args:
        drawn: numbers and looks.
        estimates: rounded.
        of_shaken: of numbers that are shaken by what the first looks add.
        index: among all results.
    """

    drawn: ModeTaps
    estimates: TapEstimates
    of_shaken: tuple[TapEstimates, ...]
    index: int


def estimates_by_mode(week: WeekToEstimate) -> Iterator[ModeEstimates]:
    """Yield the estimates of every mode, tap-on and tap-off."""
    for index, taps in enumerate(taps_by_mode(week)):
        made = estimated(taps.numbers, taps.looks, taps.earlier)
        yield ModeEstimates(taps, _rounded(made.numbers), made.shaken, index)


def _rounded(estimates: TapEstimates) -> TapEstimates:
    """Return the estimates in tenths that add up."""
    tenths = in_tenths(estimates.cells)
    sums = (tenths, tenths.sum(axis=0), tenths.sum(axis=2), tenths.sum(axis=(0, 2)))
    cells, slots, places, totals = (numbers / PARTS for numbers in sums)
    return TapEstimates(cells, slots, places, totals)


def numbers_of(result: ModeEstimates, quantity: Quantity, blocks: Blocks) -> ErrorTerms:
    """Return the estimates of a quantity, flat, with what their errors depend on."""
    values = values_of(result.estimates, quantity, blocks)
    variance = np.broadcast_to(noise_variance(result.drawn.numbers, quantity, blocks), values.shape)
    scale = np.ones(values.shape) if quantity[0] is Part.CELLS else np.sqrt(variance)
    _, days, slots = (index.ravel() for index in np.indices(values.shape))
    rates = rates_of(result.estimates, quantity, blocks)
    usual = np.broadcast_to(rates.mean(axis=1, keepdims=True), values.shape)
    classes, usual_classes = (
        size_classes((sizes / scale).ravel(), edges_of(quantity)) for sizes in (values, usual)
    )
    return ErrorTerms(
        estimates=values.ravel(),
        rates=rates.ravel(),
        noise_variance=variance.ravel(),
        classes=classes,
        usual=usual.ravel(),
        groups=np.full(values.size, result.index),
        days=days,
        levels=usual_classes if quantity[1] is Grain.DAY else slots * HOURS // values.shape[2],
        weights=_weights(variance, quantity),
    )


def shaken_numbers(
    result: ModeEstimates, quantity: Quantity, blocks: Blocks
) -> Sequence[tuple[Floats, Floats]]:
    """Return what was added each time to the noise, and by how much that changed the estimates.

    Scaled so that the mean product is how estimates go with the noise of the unbiased numbers.
    """
    values = values_of(result.estimates, quantity, blocks)
    unbiased = values_of(result.drawn.numbers, quantity, blocks)
    return [
        (
            (values_of(fitted, quantity, blocks) - unbiased) / (SPLIT**2 * SHAKE),
            values_of(estimates, quantity, blocks) - values,
        )
        for estimates, (fitted, _) in zip(
            result.of_shaken, result.drawn.looks[:SHAKEN], strict=True
        )
    ]


def judged_numbers(result: ModeEstimates, quantity: Quantity, blocks: Blocks) -> Judged:
    """Return estimates of a quantity, the unbiased numbers, and how they go with the noise."""
    shaken = shaken_numbers(result, quantity, blocks)
    return Judged(
        numbers=numbers_of(result, quantity, blocks),
        unbiased=values_of(result.drawn.numbers, quantity, blocks).ravel(),
        slopes=np.mean([added * change for added, change in shaken], axis=0).ravel(),
    )


def _weights(variance: Floats, quantity: Quantity) -> Floats:
    """Return how much each number is of what its level lies off by: of regions, by their size."""
    size = variance if quantity[0] is Part.REGIONS else np.ones(variance.shape)
    weights: Floats = (size / size.mean()).ravel()
    return weights
