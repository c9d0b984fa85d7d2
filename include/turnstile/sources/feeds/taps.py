"""Feed `taps`: one row a tap, in an agency's own columns, mapped by `source.columns`.

The time is one column `tapped_at`, or a `tap_date` and a `tap_time` (`source.date_form`); a time
of an hour only (`11`) is its first minute. The place is a column `place`, or `latitude` and
`longitude` rounded to `source.grid_decimals`: the grid cell `-34.6 -58.4`. Where there is no
action, in a row or in the whole file, a tap is what `source.without_action` says; without that key
nobody has explained it, or, where no column of actions is named, it is a tap-on.
A record with a column `status` counts if `source.status_names` says so.
Taps are joined to trips by `tap_trips`.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.duckdb_engine import text
from turnstile.programme.source_spec import RowShape, TapAction
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import ColumnMissing, FeedLayout, if_there
from turnstile.sources.feeds.made_records import MadeTrip, Record, status_made, taps_made
from turnstile.sources.feeds.tap_trips import JOINING, Taps, taps_sql

_FIELDS = (
    *("tap_id", "card_id", "mode", "action", "tapped_at", "tap_date", "tap_time"),
    *("place", "latitude", "longitude", "status"),
)


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; NULL for columns that the file does not need to have.

    Raises:
        ColumnMissing: no card, no time or no place.
    """
    for field, instead in (
        ("card_id", ()),
        ("tapped_at", ("tap_date", "tap_time")),
        ("place", ("latitude", "longitude")),
    ):
        others = [names[other] for other in instead]
        if names[field] not in columns and not (others and {*others} <= columns):
            raise ColumnMissing(names[field], *others)
    return if_there(columns, names, _FIELDS)


def grid_cell_sql(latitude: str, longitude: str, decimals: int) -> str:
    """Return SQL of the name of the grid cell of a position; NULL without one.

    Decimal numbers, not floats: a position on the border of two cells is in the one away from 0.

    Args:
        latitude: SQL of text, degrees.
        longitude: SQL of text, degrees.
        decimals: of the cell's center, 0-3.
    """
    sides = (
        f"CAST(round(TRY_CAST({side} AS DECIMAL(12, 6)), {decimals}) AS VARCHAR)"
        for side in (latitude, longitude)
    )
    return " || ' ' || ".join(sides)


# a column of instants prints a date with midnight, one of Access a time with its first day
_DAY = """CASE WHEN tap_date GLOB '* 00:00:00' OR tap_date GLOB '* 0:00:00'
    THEN split_part(tap_date, ' ', 1) ELSE tap_date END"""
_FIRST_DAY = "^(30/12/|12/30/)?1899(-12-30)? "
_CLOCK = f"""CASE WHEN length(tap_time) <= 2 THEN tap_time || ':00'
    WHEN tap_time GLOB '*1899*' THEN regexp_replace(tap_time, '{_FIRST_DAY}', '')
    ELSE tap_time END"""
TAPPED_AT = f"coalesce(tapped_at, {_DAY} || ' ' || {_CLOCK})"
"""SQL of the time of a tap: `tapped_at`, or `tap_date` and `tap_time`."""


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to taps."""
    source = programme.source
    is_named = "action" in dict(source.columns)
    blank = source.without_action or (None if is_named else TapAction.ENTER)
    grid = grid_cell_sql("latitude", "longitude", source.grid_decimals)
    relation = f"""(
        SELECT * REPLACE (
            {TAPPED_AT} AS tapped_at,
            coalesce(place, {grid}) AS place,
            coalesce(action, {text(blank) if blank else "NULL"}) AS action
        ), NULL AS riders
        FROM raw
    )"""
    taps = Taps(relation, "tapped_at", None, _FIELDS, states_status=True)
    return taps_sql(programme, week, taps)


def made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the taps of a made-up trip, which count, in words that the programme explains."""
    status = status_made(programme.source, names)
    return [tap | status for tap in taps_made(trip, programme, names)]


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=tuple((field, field) for field in _FIELDS),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    joining=JOINING,
)
