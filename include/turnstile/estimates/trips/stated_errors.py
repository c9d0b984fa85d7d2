"""Half-widths that the public gets with a release of trips: cells, roll-ups, any sum of cells.

From the plan alone (PRIVACY 9.1). Estimates are reconciled, so the same table has a different
error in each mode; sums of measured cells depend on their number only, and bound the error of the
same sum of estimates, which are never noisier. Tables that carry their year along state each error
beside its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnstile.estimates.fitting.combined_noise import Noise, SumError, integer_sum_error
from turnstile.estimates.roll_ups import roll_ups_of
from turnstile.estimates.trips.trip_marginals import axes_of, marginal_errors
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.release.plan import ReleasePlan

SUMS_OF_CELLS = (1, 4, 10, 40, 96, 1_000)
_DECIMALS = 2


def stated_errors(
    programme: Programme, domain: PublicDomain, plan: ReleasePlan
) -> dict[str, list[dict[str, Any]]]:
    """Return the half-widths at 90 and 95 % as plain values; empty lists for telemetry.

    A thresholded release has none for sums: what it left out is in no sum.
    """
    is_thresholded = programme.mechanism.kind.is_thresholded
    if programme.source.feed.shape is not RowShape.TRIPS or is_thresholded:
        return {"estimates": [], "sums_of_measured_cells": []}
    return {
        "estimates": list(_estimates(programme, domain, plan)),
        "sums_of_measured_cells": list(_sums(plan)),
    }


def _estimates(
    programme: Programme, domain: PublicDomain, plan: ReleasePlan
) -> Iterator[dict[str, Any]]:
    """Yield the error of one number of each table and roll-up, by mode."""
    errors_of = marginal_errors(programme, domain, plan.events)
    rolled = roll_ups_of(programme, domain)
    events = {event.table: event for event in plan.events if event.own_records and event.step == 1}
    for mode in domain.modes:
        for event in events.values():
            error = integer_sum_error((Noise(event.noise, event.scale), 1))
            yield {"table": event.table, "mode": mode, **_figures(error)}
        for table in programme.shared_tables:
            error = errors_of[mode, axes_of(table.by)].of_table(table.by)
            yield {"table": table.name, "mode": mode, **_figures(error)}
        for roll_up in rolled:
            errors = errors_of[mode, axes_of(roll_up.source.by)]
            own_blocks = roll_up.blocks[mode]
            slots = max(map(len, own_blocks.slots or [(0,)]))
            of_region = max(map(len, own_blocks.places or [(0,)]))
            locations = of_region if len(roll_up.source.by) > 1 else errors.shape[1]
            yield {
                "table": roll_up.table.name,
                "mode": mode,
                **_figures(errors.of_block(slots, locations)),
            }


def _sums(plan: ReleasePlan) -> Iterator[dict[str, Any]]:
    """Yield the error of any sum of so many measured cells of each table."""
    for event in {event.table: event for event in plan.events if event.step == 1}.values():
        for cells in SUMS_OF_CELLS:
            error = integer_sum_error((Noise(event.noise, event.scale), cells))
            yield {"table": event.table, "cells": cells, **_figures(error)}


def _figures(error: SumError) -> dict[str, float]:
    """Return an error as rounded numbers."""
    return {
        "standard_deviation": round(error.standard_deviation, _DECIMALS),
        "half_width_90": round(error.half_width_90, _DECIMALS),
        "half_width_95": round(error.half_width_95, _DECIMALS),
    }
