"""Feed `siri_vm`: SIRI Vehicle Monitoring, one `VehicleActivity` a record, by elements' paths.

`Delay` is a duration, `PT1M30S` or `-PT20S`. A `Velocity` has no unit that all senders keep, so a
programme states it (`source.speed_unit`); it is needed where a table measures speeds.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.layout import FeedLayout, if_there, plain_fields
from turnstile.sources.feeds.made_records import MadeReading, Record, position_made
from turnstile.sources.feeds.unmeasured import typed_sql

_JOURNEY = "MonitoredVehicleJourney"
_ALWAYS = ("vehicle_id", "observed_at", "latitude", "longitude")
_IF_THERE = ("speed", "delay", "trip", "start_date")
_DURATION = r"^(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$"
_PARTS = ("sign", "days", "hours", "minutes", "seconds")
_SECONDS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; of those that need not be there NULL where a file lacks them.

    Raises:
        ColumnMissing: the file lacks one of the others.
    """
    always = plain_fields(columns, names, _ALWAYS)
    sql_of_field = dict((*always, *if_there(columns, names, _IF_THERE)))
    return tuple((sql_of_field | {"delay": seconds_sql(sql_of_field["delay"])}).items())


def seconds_sql(duration: str) -> str:
    """Return SQL of the seconds of a duration, as text; NULL of a text that is none."""
    parts = f"regexp_extract({duration}, '{_DURATION}', {list(_PARTS)})"
    total = " + ".join(
        f"{each} * coalesce(TRY_CAST(nullif(({parts}).{part}, '') AS DOUBLE), 0)"
        for part, each in _SECONDS.items()
    )
    sign = f"CASE WHEN ({parts}).sign = '-' THEN -1 ELSE 1 END"
    is_one = f"regexp_matches({duration}, '^-?P.*[0-9]')"
    return f"CASE WHEN {is_one} THEN CAST({sign} * ({total}) AS VARCHAR) END"


def made(reading: MadeReading, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return a made-up activity."""
    (record,) = position_made(reading, programme, names)
    sign = "-" if reading.delay_s < 0 else ""
    return [record | {names["delay"]: f"{sign}PT{abs(reading.delay_s)}S"}]


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", f"{_JOURNEY}.VehicleRef"),
        ("observed_at", "RecordedAtTime"),
        ("speed", f"{_JOURNEY}.Velocity"),
        ("latitude", f"{_JOURNEY}.VehicleLocation.Latitude"),
        ("longitude", f"{_JOURNEY}.VehicleLocation.Longitude"),
        ("delay", f"{_JOURNEY}.Delay"),
        ("route", f"{_JOURNEY}.LineRef"),
        ("direction", f"{_JOURNEY}.DirectionRef"),
        ("trip", f"{_JOURNEY}.FramedVehicleJourneyRef.DatedVehicleJourneyRef"),
        ("start_date", f"{_JOURNEY}.FramedVehicleJourneyRef.DataFrameRef"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    composed={"delay_s": ("delay",)},
)
