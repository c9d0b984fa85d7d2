"""Feed `tides_fare_transactions`: TIDES 1.0 (tides-transit.org), one row a fare transaction.

`Enter` and `Exit` are taps, joined by `tap_trips`, within a `service_date`. What TIDES calls a
purchase, a top-up or the like is no tap and is set aside. Of every other `fare_action`, a transfer
among them, `source.action_names` has to say what it does. A
transaction is one trip of one token whatever its `num_riders`: riders in a group have no token of
their own, so nothing would bound them. A transaction of 0 riders is nobody's and is set aside.
TIDES has no column of the mode: a column `mode` beside its own is read, or the programme has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.programme.source_spec import RowShape, TapAction
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import FeedLayout, if_there, plain_fields
from turnstile.sources.feeds.made_records import taps_made
from turnstile.sources.feeds.tap_trips import JOINING, Taps, taps_sql

_MISSING = ("NA", "NaN")  # and empty text: TIDES 1.0, missingValues
# Not a transfer, whose entrance is a tap to some and none to others; nor what says nothing.
_NO_TAPS = "Purchase Add New Capture Extend Combine Void Activate Adjust"
_WORDS = tuple((word, TapAction.NO_TAP) for word in _NO_TAPS.split())
_ALWAYS = ("tap_id", "card_id", "service_date", "tapped_at", "action", "place")
_MAYBE = ("riders", "mode")
_FIELDS = (*_ALWAYS, *_MAYBE)


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field.

    Raises:
        ColumnMissing: a column is missing without which there is no trip.
    """
    return tides_fields(columns, names, _ALWAYS, _MAYBE)


def tides_fields(
    columns: frozenset[str],
    names: Mapping[str, str],
    always: tuple[str, ...],
    maybe: tuple[str, ...],
) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field of a TIDES table; its own words for nothing are NULL.

    Raises:
        ColumnMissing: one of those that must be there is not.
    """
    fields = (*plain_fields(columns, names, always), *if_there(columns, names, maybe))
    nothing = ", ".join(f"'{word}'" for word in _MISSING)
    return tuple(
        (field, f"CASE WHEN {sql} NOT IN ({nothing}) THEN {sql} END") for field, sql in fields
    )


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to taps."""
    day = "TRY_CAST(service_date AS DATE)"
    return taps_sql(programme, week, Taps("raw", "tapped_at", day, _FIELDS, words=_WORDS))


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=(
        ("tap_id", "transaction_id"),
        ("card_id", "token_id"),
        ("service_date", "service_date"),
        ("tapped_at", "event_timestamp"),
        ("action", "fare_action"),
        ("place", "stop_id"),
        ("riders", "num_riders"),
        ("mode", "mode"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=taps_made,
    joining=JOINING,
)
