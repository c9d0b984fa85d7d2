"""Feed `taps`: one row a tap, in an agency's own columns, mapped by `source.columns`.

The time is one column `tapped_at`, or a `tap_date` and a `tap_time` (`source.date_form`); a time
of an hour only (`11`) is its first minute. The place is a column `place`, or `latitude` and
`longitude` rounded to `source.grid_decimals`: the grid cell `-34.6 -58.4`. Where there is no
action, in a row or in the whole file, a tap is what `source.without_action` says, else a tap-on.
Taps are joined to trips by `tap_trips`.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.duckdb_engine import text
from turnstile.programme.source_spec import RowShape, TapAction
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import ColumnMissing, FeedLayout, if_there
from turnstile.sources.feeds.made_records import taps_made
from turnstile.sources.feeds.tap_trips import JOINING, Taps, taps_sql

_FIELDS = (
    *("tap_id", "card_id", "mode", "action", "tapped_at", "tap_date", "tap_time"),
    *("place", "latitude", "longitude"),
)
_TYPED = "####-##-##".replace("#", "[0-9]")  # as a column of dates or instants prints


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
        there = {names[field]} <= columns or (instead and {names[i] for i in instead} <= columns)
        if not there:
            raise ColumnMissing(names[field])
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


_DAY = f"CASE WHEN tap_date GLOB '{_TYPED} 00:00:00' THEN left(tap_date, 10) ELSE tap_date END"
_CLOCK = "tap_time || CASE WHEN length(tap_time) <= 2 THEN ':00' ELSE '' END"
TAPPED_AT = f"coalesce(tapped_at, {_DAY} || ' ' || {_CLOCK})"
"""SQL of the time of a tap: `tapped_at`, or `tap_date` and `tap_time`."""


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to taps."""
    source = programme.source
    grid = grid_cell_sql("latitude", "longitude", source.grid_decimals)
    relation = f"""(
        SELECT * REPLACE (
            {TAPPED_AT} AS tapped_at,
            coalesce(place, {grid}) AS place,
            coalesce(action, {text(source.without_action or TapAction.ENTER)}) AS action
        ), NULL AS riders
        FROM raw
    )"""
    return taps_sql(programme, week, Taps(relation, "tapped_at", None, _FIELDS))


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=tuple((field, field) for field in _FIELDS),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=taps_made,
    joining=JOINING,
)
