"""How far errors of a week's trip estimates go together, for each quantity (`sum_errors`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from turnstile.estimates.error_model import ErrorModel
from turnstile.estimates.fission import FITTED_TIMES
from turnstile.estimates.mode_estimates import ModeEstimates, numbers_of
from turnstile.estimates.published_tables import Part, PublishedTable, values_of
from turnstile.estimates.sum_errors import JudgedBlocks, correlations, stretches_of
from turnstile.estimates.tap_numbers import TapNumbers


def trip_correlations(
    alike: Sequence[PublishedTable], results: Sequence[ModeEstimates], model: ErrorModel | None
) -> list[dict[str, Any]]:
    """Return how far errors of a quantity go together; totals of days are independent."""
    if model is None:
        return []
    tables = {one.taps: one for one in alike}
    looks = range(len(results[0].of_looks))
    return correlations(
        [[_blocks(tables[one.own.taps], one, n, model) for one in results] for n in looks]
    )


def _blocks(
    table: PublishedTable, result: ModeEstimates, look: int, model: ErrorModel
) -> JudgedBlocks:
    """Return one look of one mode's taps, and the other look that it is judged on."""
    mode, found, judge = result.own.mode, result.of_looks[look], result.own.looks[look][1]
    slot_groups = None if table.slot_groups is None else table.slot_groups[mode]
    numbers = numbers_of(result, found, table.quantity, slot_groups)
    seen = replace(numbers, noise_variance=numbers.noise_variance * FITTED_TIMES)
    values = values_of(found, table.quantity, slot_groups)
    slots = [axis for axis in table.table.by if axis in table.taps[:1]]
    labels = table.domain.dimension(mode, slots[0]).labels if slots else ("",)
    return JudgedBlocks(
        errors=values - values_of(judge, table.quantity, slot_groups),
        variances=model.variances(seen).reshape(values.shape),
        stretches=stretches_of(labels),
        slot_sizes=np.array(
            [len(one) for one in slot_groups] if slot_groups else [1] * len(labels)
        ),
        judging=_judging(table.quantity[0], judge),
    )


def _judging(part: Part, judge: TapNumbers) -> Callable[[int, int], float]:
    """Return the variance of a judging sum over so many places and drawn slots of one day."""
    if part is Part.CELLS:
        return lambda places, slots: places * slots * judge.cell_variance
    if part is Part.SLOTS:
        return lambda _, slots: judge.variance_of_slots(slots)

    def of_places(places: int, _: int) -> float:
        chosen = np.zeros(judge.reconciled.shape, dtype=np.bool_)
        chosen[:, :places] = True
        return judge.reconciled.variance_of_sum(chosen)

    return of_places
