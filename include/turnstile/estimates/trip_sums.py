"""How far errors of a week's trip estimates go together, for each quantity (`sum_errors`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from turnstile.estimates.error_model import ErrorModel
from turnstile.estimates.fission import FITTED_TIMES
from turnstile.estimates.mode_estimates import ModeEstimates, SeenNumbers
from turnstile.estimates.published_tables import Part, PublishedTable
from turnstile.estimates.sum_errors import JudgedBlocks, correlations, stretches_of
from turnstile.estimates.tap_numbers import TapNumbers
from turnstile.estimates.trip_weeks import ModeTaps


def trip_correlations(
    alike: Sequence[PublishedTable],
    results: Sequence[ModeEstimates],
    looks: Sequence[Sequence[SeenNumbers]],
    model: ErrorModel | None,
) -> list[dict[str, Any]]:
    """Return how far errors of a quantity go together; totals of days are independent.

    Args:
        alike: tables of the quantity.
        results: of every mode's taps.
        looks: of each fission, the numbers of each result.
        model: of their errors.
    """
    if model is None:
        return []
    tables = {one.taps: one for one in alike}
    return correlations(
        [
            [
                _blocks(tables[one.own.taps], one.own, seen, one.own.looks[n][1], model)
                for one, seen in zip(results, look, strict=True)
            ]
            for n, look in enumerate(looks)
        ]
    )


def _blocks(
    table: PublishedTable, own: ModeTaps, seen: SeenNumbers, judge: TapNumbers, model: ErrorModel
) -> JudgedBlocks:
    """Return one look of one mode's taps, and the other look that it is judged on."""
    slot_groups = None if table.slot_groups is None else table.slot_groups[own.mode]
    numbers = replace(seen.numbers, noise_variance=seen.numbers.noise_variance * FITTED_TIMES)
    slots = [axis for axis in table.table.by if axis in table.taps[:1]]
    labels = table.domain.dimension(own.mode, slots[0]).labels if slots else ("",)
    return JudgedBlocks(
        errors=seen.values - seen.judge,
        variances=model.variances(numbers).reshape(seen.values.shape),
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
        of_slots = cache(judge.variance_of_slots)  # most blocks have as many slots as others
        return lambda _, slots: of_slots(slots)

    @cache
    def of_places(places: int) -> float:
        chosen = np.zeros(judge.reconciled.shape, dtype=np.bool_)
        chosen[:, :places] = True
        return judge.reconciled.variance_of_sum(chosen)

    return lambda places, _: of_places(places)
