"""How far errors of a week's trip estimates go together, for each quantity (`sum_errors`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from turnstile.estimates.fitting.error_model import ErrorModel
from turnstile.estimates.fitting.fission import FITTED_TIMES
from turnstile.estimates.fitting.sum_errors import JudgedBlocks, correlations, stretches_of
from turnstile.estimates.published_tables import (
    Grain,
    Part,
    PublishedTable,
    Quantity,
)
from turnstile.estimates.trips.mode_estimates import ModeEstimates, SeenNumbers
from turnstile.estimates.trips.tap_numbers import TapNumbers
from turnstile.estimates.trips.trip_weeks import ModeTaps


def trip_correlations(
    published: Sequence[PublishedTable],
    results: Sequence[ModeEstimates],
    fissions: Sequence[Sequence[SeenNumbers]],
    model: ErrorModel | None,
) -> list[dict[str, Any]]:
    """Return how far errors of a quantity go together; totals of days are independent.

    Args:
        published: tables of the quantity.
        results: of every mode's taps.
        fissions: of each fission, the numbers of each result.
        model: of their errors.
    """
    if model is None:
        return []
    tables = {table.taps: table for table in published}
    return correlations(
        [
            [
                _blocks(
                    tables[result.drawn.taps], result.drawn, seen, result.drawn.looks[n][1], model
                )
                for result, seen in zip(results, look, strict=True)
            ]
            for n, look in enumerate(fissions)
        ]
    )


def _blocks(
    table: PublishedTable, taps: ModeTaps, seen: SeenNumbers, judge: TapNumbers, model: ErrorModel
) -> JudgedBlocks:
    """Return one look of one mode's taps, and the other look that it is judged on."""
    numbers = replace(seen.numbers, noise_variance=seen.numbers.noise_variance * FITTED_TIMES)
    slots = [axis for axis in table.table.by if axis in table.taps[:1]]
    place_sizes, slot_sizes = table.blocks[taps.mode].sizes(len(seen.values), seen.values.shape[2])
    labels = table.domain.dimension(taps.mode, slots[0]).labels if slots else ("",)
    return JudgedBlocks(
        errors=seen.values - seen.judge,
        variances=model.variances(numbers).reshape(seen.values.shape),
        stretches=stretches_of(labels),
        place_sizes=place_sizes,
        slot_sizes=slot_sizes if slots else np.ones(1, np.int64),
        judging=_judging(table.quantity, judge),
    )


def _judging(quantity: Quantity, judge: TapNumbers) -> Callable[[int, int], float]:
    """Return the variance of a judging sum over so many places and drawn slots of one day."""
    part, grain = quantity
    if part in (Part.CELLS, Part.REGIONS) and grain is not Grain.DAY:
        return lambda places, slots: places * slots * judge.cell_variance
    if part is Part.SLOTS:
        of_slots = cache(judge.variance_of_slots)  # most blocks have as many slots as others
        return lambda _, slots: of_slots(slots)
    of_places = cache(judge.variance_of_places)
    return lambda places, _: of_places(places)
