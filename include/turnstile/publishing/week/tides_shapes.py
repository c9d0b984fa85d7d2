"""`tides/station_activities.csv`: the week's taps by stop and period, in the shape of TIDES 1.0.

Made from `data/` alone, so it costs nothing: values in whole numbers. A stop is a location over
all modes. Slots and places that are UNKNOWN have no period or stop, and stay in `data/`, as do
slots that the clock skips on their day; one that it passes twice holds the taps of both times, and
lasts from its first begin to its last end. The schema has no columns of errors and allows no
others, so they stand beside it, in a file of the same rows: unbiased numbers and their errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from turnstile.estimates.labelled import csv_bytes
from turnstile.programme.domain.public_domain import UNKNOWN
from turnstile.programme.field import Field, Role
from turnstile.programme.field_registry import BY_NAME
from turnstile.programme.fields import TAPS
from turnstile.programme.spec import Programme, TimeSpec
from turnstile.publishing.contents import Contents
from turnstile.publishing.week.tides_visits import VISIT_COLUMNS, has_visits, visits
from turnstile.service_calendar import minute_of

ACTIVITIES = "tides/station_activities.csv"
ERRORS = "tides/station_activities_errors.csv"
_KEY = ("service_date", "stop_id", "time_period_start", "time_period_end")
_SIDES = {"entries": "tap_on", "exits": "tap_off"}
ACTIVITY_COLUMNS = {
    ACTIVITIES: (
        *(*_KEY, "time_period_category", "total_entries", "total_exits"),
        *("number_of_transactions", "bike_entries", "bike_exits", "ramp_entries", "ramp_exits"),
    ),
    ERRORS: (
        *_KEY,
        *(
            f"total_{side}_{error}"
            for side in _SIDES
            for error in ("reconciled", "standard_deviation")
        ),
    ),
}
_DECIMALS = 3


def shapes_of(programme: Programme) -> dict[str, tuple[str, ...]]:
    """Return the files in the shape of TIDES that a package has, with their columns."""
    if not programme.publish.tides_shapes:
        return {}
    columns = ACTIVITY_COLUMNS if has_activities(programme) else {}
    return columns | (VISIT_COLUMNS if has_visits(programme) else {})


def has_activities(programme: Programme) -> bool:
    """Whether a programme has a table of taps by place and time."""
    return any(table.by in TAPS for table in programme.shared_tables)


def column_of_shape(name: str) -> Field:
    """Return what the registry says of a column of a shape; vehicles are named in none."""
    field = BY_NAME[name]
    if field.role is Role.UNIT:
        return replace(field, role=Role.KEY, description="Never filled.")
    return field


def writer_of(path: str) -> Callable[[Contents], bytes | None]:
    """Return a writer of one file; None where a package has no such file."""

    def write(contents: Contents) -> bytes | None:
        """Write the file."""
        if path not in shapes_of(contents.drawn.programme):
            return None
        return visits(contents, path) if path in VISIT_COLUMNS else _written(contents, path)

    return write


def _written(contents: Contents, path: str) -> bytes:
    """Return one of the two files of activities."""
    table = activities(contents)
    empty = pa.nulls(len(table), pa.string())
    known = set(table.column_names)
    columns = {name: table[name] if name in known else empty for name in ACTIVITY_COLUMNS[path]}
    return csv_bytes(pa.table(columns))


def activities(contents: Contents) -> pa.Table:
    """Return one row for each day, stop and slot, in this order, with all totals and errors."""
    sides = [_side(contents, side, tap) for side, tap in _SIDES.items()]
    tables = [side for side in sides if side is not None]
    keys = ["service_date", "stop_id", "slot"]
    table = tables[0]
    for other in tables[1:]:
        table = table.join(other, keys, join_type="full outer")
    periods = _periods(contents, contents.drawn.programme.time, table)
    whole = table.join(periods, ["service_date", "slot"], join_type="inner")
    return whole.sort_by([(k, "ascending") for k in keys])


def _side(contents: Contents, side: str, tap: str) -> pa.Table | None:
    """Return totals of tap-ons or tap-offs by day, stop and slot; None where none are drawn."""
    by = (f"{tap}_slot", f"{tap}_location")
    specs = [spec for spec in contents.drawn.programme.shared_tables if spec.by == by]
    if not specs:
        return None
    table = contents.published.of_draw(specs[0].name)
    slot, stop = (table[name].cast(pa.string()) for name in ("slot", "location"))
    plain = pa.table(
        {
            "service_date": table["service_date"],
            "stop_id": stop,
            "slot": slot,
            "value": table["value"],
            "reconciled": table["unbiased"],
            "variance": pc.power(table["unbiased_sd"], 2),
        }
    ).filter(pc.and_(pc.not_equal(slot, UNKNOWN), pc.not_equal(stop, UNKNOWN)))
    # Modes share a stop where they share its name; their draws are independent.
    whole = pc.ScalarAggregateOptions(skip_nulls=False)
    summed = plain.group_by(["service_date", "stop_id", "slot"]).aggregate(
        [(name, "sum", whole) for name in ("value", "reconciled", "variance")]
    )
    deviation = pc.sqrt(summed["variance_sum"])
    return pa.table(
        {
            **{name: summed[name] for name in ("service_date", "stop_id", "slot")},
            f"total_{side}": pc.cast(pc.round(summed["value_sum"]), pa.int64()),
            f"total_{side}_reconciled": pc.round(summed["reconciled_sum"], _DECIMALS),
            f"total_{side}_standard_deviation": pc.round(deviation, _DECIMALS),
        }
    )


def _periods(contents: Contents, clock: TimeSpec, table: pa.Table) -> pa.Table:
    """Return begin and end of each slot of each day that a table has, by the agency's clock."""
    days = contents.drawn.plan.week.days
    pairs = [(day, slot) for day in days for slot in pc.unique(table["slot"]).to_pylist()]
    starts = [minute_of(slot) for _, slot in pairs]
    periods = pa.table(
        {
            "service_date": pa.array([day for day, _ in pairs], pa.date32()),
            "slot": [slot for _, slot in pairs],
            "minute": starts,
            "time_period_start": [
                _instant(clock, day, minute) for (day, _), minute in zip(pairs, starts, strict=True)
            ],
            "time_period_end": [
                _end(clock, day, minute + clock.slot_minutes)
                for (day, _), minute in zip(pairs, starts, strict=True)
            ],
        }
    )
    lasts = pc.not_equal(periods["time_period_start"], periods["time_period_end"])
    return periods.filter(lasts)


def _instant(clock: TimeSpec, day: date, minute: int) -> str:
    """Return a time of a service day's clock, with its offset; minutes go on past midnight.

    One that the clock skips is the moment at which it does.
    """
    local, skipped = datetime.combine(day, time()) + timedelta(minutes=minute), timedelta()
    while (moment := _moment(clock, local - skipped)).replace(tzinfo=None) != local - skipped:
        skipped += timedelta(minutes=1)
    if not skipped:
        return moment.isoformat()
    begins = moment.astimezone(UTC) + timedelta(minutes=1)
    return begins.astimezone(clock.zone).isoformat()


def _end(clock: TimeSpec, day: date, minute: int) -> str:
    """Return the end of a slot; one that the clock passes twice ends when it is passed again."""
    last = datetime.combine(day, time(), clock.zone) + timedelta(minutes=minute - 1)
    again = last.replace(fold=1)
    if (last.utcoffset() or timedelta()) <= (again.utcoffset() or timedelta()):
        return _instant(clock, day, minute)
    return (again.astimezone(UTC) + timedelta(minutes=1)).astimezone(clock.zone).isoformat()


def _moment(clock: TimeSpec, local: datetime) -> datetime:
    """Return a time of the agency's clock, as a clock that never stops would show it."""
    return local.replace(tzinfo=clock.zone).astimezone(UTC).astimezone(clock.zone)
