"""Feed `ist_daten`: calls of all public transport of Switzerland (opentransportdata.swiss).

A record is a call of a run at a stop, named by its number (`BPUIC`), with the scheduled arrival and
the actual one. A run of a day is what it names, and what is protected; where circulations are known
a programme names that column, `vehicle_id: UMLAUF_ID`. An arrival is observed if its status is
`REAL` and the run was not cancelled; the first stop of a run has none. Times are the agency's own
clock, `25.07.2016 08:00:30`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds import stop_calls
from turnstile.sources.feeds.layout import FeedLayout, plain_fields
from turnstile.sources.feeds.made_records import (
    MadeReading,
    Record,
    clock_of,
    fields_of_reading,
    named,
)

_ALWAYS = ("vehicle_id", "observed_at", "scheduled_at", "stop", "status", "cancelled")
_OBSERVED, _FORECASTS = "REAL", ("PROGNOSE", "GESCHAETZT", "UNBEKANNT")
_RUNS, _CANCELLED = ("false", "0"), ("true", "1")
_FORMATS = "['%d.%m.%Y %H:%M:%S', '%d.%m.%Y %H:%M', '%Y-%m-%d %H:%M:%S', '%Y-%m-%d %H:%M']"


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field.

    Raises:
        ColumnMissing: a column is missing; without its status a forecast would be an arrival.
    """
    return plain_fields(columns, names, _ALWAYS)


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to calls."""
    arrived, scheduled = (
        f"TRY_STRPTIME({field}, {_FORMATS})" for field in ("observed_at", "scheduled_at")
    )
    return stop_calls.typed_sql(
        programme,
        week,
        f"""(
            SELECT * REPLACE (coalesce(CAST({arrived} AS VARCHAR), observed_at) AS observed_at),
                CAST(epoch({arrived}) - epoch({scheduled}) AS VARCHAR) AS delay,
                observed_at IS NOT NULL AND coalesce(status, '{_OBSERVED}') = '{_OBSERVED}'
                    AND coalesce(lower(cancelled) NOT IN {_CANCELLED}, true) AS is_observed,
                coalesce(status IN {(_OBSERVED, *_FORECASTS)}, true)
                    AND coalesce(lower(cancelled) IN {(*_RUNS, *_CANCELLED)}, true) AS is_known
            FROM raw
        )""",
    )


def made(reading: MadeReading, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return a made-up call, as late as it says."""
    fields = fields_of_reading(reading, programme, names)
    form = "%d.%m.%Y %H:%M:%S"
    at = clock_of(reading.day, reading.second)
    times: Record = {
        "observed_at": f"{at:{form}}",
        "scheduled_at": f"{at - timedelta(seconds=reading.delay_s):{form}}",
        "status": _OBSERVED,
        "cancelled": "false",
        "stop": fields.get("stop", "a stop"),
    }
    kept = {field: value for field, value in fields.items() if field in names and field != "speed"}
    return [named(kept | times, names)]


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "FAHRT_BEZEICHNER"),
        ("scheduled_at", "ANKUNFTSZEIT"),
        ("observed_at", "AN_PROGNOSE"),
        ("status", "AN_PROGNOSE_STATUS"),
        ("cancelled", "FAELLT_AUS_TF"),
        ("stop", "BPUIC"),
        ("route", "LINIEN_TEXT"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    composed={"delay_s": ("observed_at", "scheduled_at"), "stop": ("stop",)},
)
