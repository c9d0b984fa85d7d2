"""What a draw carries along of its year: exact counts of earlier weeks, from the private zone.

Which weeks those are is read from the ledger: the highest published revision of each, unless it was
withdrawn; what is under embargo stays out of later numbers too. Nothing of any noise is kept. A
week whose counts are gone, or that was made under other bounds or cells, refuses before anything is
held or charged (year_to_date.proof.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turnstile.counting.exact import ExactTable
from turnstile.errors import RefusedError, RevisionNeeded, TurnstileError
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline.draw.planned_release import PlannedRelease
from turnstile.pipeline.draw.sealed_release import sealed_attempt
from turnstile.service_calendar import ServiceWeek

Counts = NDArray[np.int64]


def carried_keys(release: PlannedRelease) -> tuple[ReleaseKey, ...]:
    """Return the earlier releases that the draws of a release carry along, oldest first.

    Raises:
        RefusedError: one of them was made under other bounds or cells.
    """
    days = {day for event in release.plan.events for day, _ in event.carried}
    carried = {str(ServiceWeek.containing(day)) for day in days}
    weeks = release.ledger.weeks(release.key.programme) if carried else {}
    in_force = [weeks[name].in_force for name in sorted(carried & weeks.keys())]
    keys = [revision.key for revision in in_force if revision is not None]
    for key in keys:
        try:
            sealed_attempt(release.of(key))
        except RevisionNeeded as difference:
            raise RefusedError(
                f"{release.key} would carry {key} along, which was made under another promise "
                f"({difference}); begin a new year: state year_to_date_from {release.week}"
            ) from None
    return tuple(keys)


def require_state(release: PlannedRelease) -> None:
    """Refuse a release whose draws could not hold what they should, before anything is held.

    Raises:
        RefusedError: a week that they carry along was made under another promise, or is gone.
    """
    for key in carried_keys(release):
        _tables_of(release, key)


def multiplied(
    release: PlannedRelease, keys: tuple[ReleaseKey, ...], exact: tuple[ExactTable, ...]
) -> list[Counts]:
    """Return what noise is added to, one vector a draw: this week's counts, and the year's.

    Args:
        release: that is drawn.
        keys: that it carries along.
        exact: its own tables, one a draw of its plan.

    Raises:
        RefusedError: the exact counts of a week that it carries along are gone.
    """
    events = release.plan.events
    vectors = [
        np.int64(event.step) * table.reveal_to_mechanism()
        for event, table in zip(events, exact, strict=True)
    ]
    for key in keys:
        of_day = _tables_of(release, key)
        for number, event in enumerate(events):
            for day, multiple in event.carried:
                carried_table = of_day.get((event.table, event.statistic, day))
                if carried_table is not None:
                    vectors[number] = (
                        vectors[number] + np.int64(multiple) * carried_table.reveal_to_mechanism()
                    )
    return vectors


def _tables_of(
    release: PlannedRelease, key: ReleaseKey
) -> dict[tuple[str, str, object], ExactTable]:
    """Read the exact counts of a week that is carried along."""
    from turnstile.counting.exact_store import load_exact

    earlier = release.of(key)
    try:
        exact = load_exact(earlier.folders.private, earlier.recorded("exact", step="count"))
    except TurnstileError as gone:
        raise RefusedError(
            f"{release.key} carries {key} along, whose exact counts cannot be read ({gone}); "
            f"restore private/{key}, or begin a new year: state year_to_date_from {release.week}"
        ) from None
    return {table.label: table for table in exact}
