"""How far errors of a week's trip estimates go together, for each quantity (`sum_errors`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from typing import Any

import numpy as np

from turnstile.estimates.fitting.error_model import ErrorModel
from turnstile.estimates.fitting.sum_errors import (
    JudgedBlocks,
    correlations,
    kinds_of,
    stretches_of,
)
from turnstile.estimates.published_tables import (
    Grain,
    Part,
    PublishedTable,
    Quantity,
    values_of,
)
from turnstile.estimates.trips.mode_estimates import ModeEstimates, numbers_of, shaken_numbers
from turnstile.estimates.trips.tap_numbers import TapNumbers
from turnstile.estimates.trips.trip_weeks import days_with_input
from turnstile.estimates.week_to_estimate import WeekToEstimate


def trip_correlations(
    week: WeekToEstimate,
    published: Sequence[PublishedTable],
    results: Sequence[ModeEstimates],
    model: ErrorModel | None,
) -> list[dict[str, Any]]:
    """Return how far errors of a quantity go together; totals of days are independent.

    Args:
        week: that is estimated.
        published: tables of the quantity.
        results: of every mode's taps.
        model: of their errors.
    """
    if model is None:
        return []
    tables = {table.taps: table for table in published}
    days = [week.numbers.days[n] for n in days_with_input(week.numbers)]
    return correlations(
        [_blocks(tables[result.drawn.taps], result, model, days) for result in results]
    )


def _blocks(
    table: PublishedTable, result: ModeEstimates, model: ErrorModel, days: Sequence[date]
) -> JudgedBlocks:
    """Return one mode's taps beside the unbiased numbers."""
    quantity, blocks, drawn = table.quantity, table.blocks[result.drawn.mode], result.drawn.numbers
    values = values_of(result.estimates, quantity, blocks)
    slots = [axis for axis in table.table.by if axis in table.taps[:1]]
    place_sizes, slot_sizes = blocks.sizes(len(values), values.shape[2])
    labels = table.domain.dimension(result.drawn.mode, slots[0]).labels if slots else ("",)
    variances = model.variances(numbers_of(result, quantity, blocks))
    return JudgedBlocks(
        apart=values - values_of(drawn, quantity, blocks),
        shaken=shaken_numbers(result, quantity, blocks),
        variances=variances.reshape(values.shape),
        kinds=kinds_of(days),
        stretches=stretches_of(labels),
        place_sizes=place_sizes,
        slot_sizes=slot_sizes if slots else np.ones(1, np.int64),
        noise=_noise(quantity, drawn),
    )


def _noise(quantity: Quantity, drawn: TapNumbers) -> Callable[[int, int], float]:
    """Return the variance of an unbiased sum over so many places and drawn slots of one day."""
    part, grain = quantity
    if part in (Part.CELLS, Part.REGIONS) and grain is not Grain.DAY:
        return lambda places, slots: places * slots * drawn.cell_variance
    if part is Part.SLOTS:
        of_slots = cache(drawn.variance_of_slots)  # most blocks have as many slots as others
        return lambda _, slots: of_slots(slots)
    of_places = cache(drawn.variance_of_places)
    return lambda places, _: of_places(places)
