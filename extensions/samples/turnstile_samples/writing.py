"""Coded sample columns to landing files: one file a service day, in any of the feed's forms."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from turnstile.duckdb_engine import connect, text
from turnstile.service_calendar import ServiceWeek
from turnstile_samples.corruption import MISSING, Rows
from turnstile_samples.itms import DEGREES_SCALE, SPEED_CODE_SCALE
from turnstile_samples.opal import MODES, Places

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class SampleForm(StrEnum):
    """Forms of a landing file; the value is its ending."""

    CSV = "csv"
    CSV_GZ = "csv.gz"
    PARQUET = "parquet"
    JSON = "json"


class ItmsShape(StrEnum):
    """Shapes of an ITMS record, as they are found; MIXED takes turns by the day."""

    STRING = "string"
    SPLIT = "split"
    NESTED = "nested"
    MIXED = "mixed"


_TURNS = (ItmsShape.STRING, ItmsShape.SPLIT, ItmsShape.NESTED)
_COPY_OPTIONS = {
    SampleForm.CSV: "FORMAT csv, HEADER true",
    SampleForm.CSV_GZ: "FORMAT csv, HEADER true, COMPRESSION gzip",
    SampleForm.PARQUET: "FORMAT parquet, COMPRESSION zstd",
    SampleForm.JSON: "FORMAT json, ARRAY true",
}


@dataclass(frozen=True, slots=True)
class LandingWeek:
    """Where one week's files go.

    Args:
        folder: created if it is not there.
        week: service week.
        form: form of the files.
    """

    folder: Path
    week: ServiceWeek
    form: SampleForm


def write_opal(rows: Rows, places: Places, to: LandingWeek) -> tuple[Path, ...]:
    """Write trips; return the files, in order of their days."""
    names = {"places": places.names, "modes": (*MODES, "monorail")}
    return write_days(rows, to, "opal", _opal_sql, names)


def write_days(
    rows: Rows,
    to: LandingWeek,
    feed: str,
    select: Callable[[ServiceWeek, date], str],
    names: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[Path, ...]:
    """Write one file a service day, all in the form asked for; return them in order of their days.

    Args:
        rows: of the week, known to the engine as `rows`.
        to: where the files go.
        feed: what their names begin with.
        select: SQL of one day's records as they are delivered.
        names: tables of code and name that the SQL joins.
    """
    to.folder.mkdir(parents=True, exist_ok=True)
    with engine(rows) as connection:
        for table, table_names in (names or {}).items():
            _register_names(connection, table, table_names)
        return tuple(
            copied(connection, select(to.week, day), path_of(to, feed, day, to.form), to.form)
            for day in days_of(rows, to.week)
        )


def write_itms(rows: Rows, shape: ItmsShape, to: LandingWeek) -> tuple[Path, ...]:
    """Write observations in a shape; return the files, in order of their days.

    Nested records are JSON, whatever the form asked for; the other shapes take the form.
    """
    files = []
    to.folder.mkdir(parents=True, exist_ok=True)
    with engine(rows) as connection:
        for day in days_of(rows, to.week):
            turn = (day - to.week.monday).days % len(_TURNS)
            day_shape = _TURNS[turn] if shape is ItmsShape.MIXED else shape
            form = SampleForm.JSON if day_shape is ItmsShape.NESTED else to.form
            path = path_of(to, "itms", day, form)
            files.append(copied(connection, _itms_sql(to.week, day, day_shape), path, form))
    return tuple(files)


@contextmanager
def engine(rows: Rows) -> Iterator[DuckDBPyConnection]:
    """One-threaded engine that knows the rows, so that bytes come in the same order every time."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory(prefix="turnstile-sample-") as scratch:
        connection = connect(Path(scratch), threads=1, keeps_order=True)
        connection.register("rows", pa.table(dict(rows)))
        try:
            yield connection
        finally:
            connection.close()


def _register_names(connection: DuckDBPyConnection, table: str, names: tuple[str, ...]) -> None:
    """Make a table of code and name."""
    import pyarrow as pa

    connection.register(table, pa.table({"code": np.arange(len(names)), "name": list(names)}))


def days_of(rows: Rows, week: ServiceWeek) -> tuple[date, ...]:
    """Service days that get a file."""
    present = {int(day) for day in np.unique(rows["file_day"])}
    return tuple(day for number, day in enumerate(week.days) if number in present)


def path_of(to: LandingWeek, feed: str, day: date, form: SampleForm) -> Path:
    """Name of a day's file."""
    return to.folder / f"{feed}-{day}.{form}"


def copied(connection: DuckDBPyConnection, select: str, path: Path, form: SampleForm) -> Path:
    """Write one selection as a file."""
    connection.execute(f"COPY ({select}) TO {text(path)} ({_COPY_OPTIONS[form]})")
    return path


def coded(columns: Mapping[str, str]) -> str:
    """SQL of a list of columns."""
    return ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())


def _opal_sql(week: ServiceWeek, day: date) -> str:
    """One day's trips as they are delivered."""
    clock = "printf('%02d:%02d', ({0} % 1440 + 1440) % 1440 // 60, ({0} % 60 + 60) % 60)"
    shown = f"strftime(DATE '{week.monday}' + CAST(day AS INTEGER) + {{}}, '%Y-%m-%d')"
    off_day = "CAST(floor(off_minute / 1440) AS INTEGER)"
    has_off = f"off_place <> {MISSING}"
    columns = {
        "card_id": f"CASE WHEN card <> {MISSING} THEN printf('3085%012d', card) END",
        "mode": "modes.name",
        "tap_on_date": shown.format(0),
        "tap_on_time": clock.format("on_minute"),
        "tap_on_location": "begun.name",
        "tap_off_date": f"CASE WHEN {has_off} THEN {shown.format(off_day)} END",
        "tap_off_time": f"CASE WHEN {has_off} THEN {clock.format('off_minute')} END",
        "tap_off_location": "coalesce(ended.name, 'UNKNOWN')",
    }
    return f"""
        SELECT {coded(columns)} FROM (SELECT *, row_number() OVER () AS number FROM rows) AS rows
        JOIN modes ON modes.code = rows.mode
        JOIN places AS begun ON begun.code = on_place
        LEFT JOIN places AS ended ON ended.code = off_place
        WHERE file_day = {(day - week.monday).days} ORDER BY number
    """


def _itms_sql(week: ServiceWeek, day: date, shape: ItmsShape) -> str:
    """One day's observations as they are delivered in a shape."""
    local = f"(TIMESTAMP '{week.monday}' + to_days(CAST(day AS INTEGER)) + to_seconds(second))"
    begun = f"{local} - to_seconds(second % 1800)"
    stamp = {
        ItmsShape.STRING: f"strftime({local}, '%Y-%m-%d %H:%M:%S+05:30')",
        ItmsShape.SPLIT: f"strftime({local}, '%Y-%m-%dT%H:%M:%S+05:30')",
        ItmsShape.NESTED: f"strftime({local} - INTERVAL 330 MINUTE, '%Y-%m-%dT%H:%M:%SZ')",
    }[shape]
    latitude, longitude = (
        f"CASE WHEN {name} <> {MISSING} THEN {name} / {DEGREES_SCALE} END"
        for name in ("latitude", "longitude")
    )
    columns = {
        "route_id": "CAST(route + 101 AS VARCHAR) || CASE WHEN trip % 2 = 0 THEN 'U' ELSE 'D' END",
        "trip_delay": "delay",
        "license_plate": f"CASE WHEN bus <> {MISSING} THEN printf('GJ05ZZ%04d', bus) END",
        "last_stop_arrival_time": f"CASE WHEN stop % 10 > 2 THEN strftime({local}, '%H:%M:%S') END",
        "trip_id": "CAST(17000000 + trip AS VARCHAR)",
        "observationDateTime": stamp,
        "trip_direction": "CASE WHEN trip % 2 = 0 THEN 'UP' ELSE 'DN' END",
        "vehicle_label": "'R' || CAST(route AS VARCHAR)",
        "id": "'example.org/surat-itms/surat-itms-live-eta'",
        "last_stop_id": "CAST(stop AS VARCHAR)",
        "actual_trip_start_time": f"strftime({begun}, '%Y-%m-%dT%H:%M:%S+05:30')",
        "speed": f"CASE WHEN speed <> {MISSING} THEN speed / {SPEED_CODE_SCALE} END",
    } | _location(shape, latitude, longitude)
    return f"""
        SELECT {coded(columns)} FROM (SELECT *, row_number() OVER () AS number FROM rows)
        WHERE file_day = {(day - week.monday).days} ORDER BY number
    """


def _location(shape: ItmsShape, latitude: str, longitude: str) -> dict[str, str]:
    """Columns of the coordinates in a shape."""
    if shape is ItmsShape.SPLIT:
        point = {"location/coordinates/0": longitude, "location/coordinates/1": latitude}
        return {"location/type": "'Point'"} | point
    if shape is ItmsShape.NESTED:
        return {"location": f"{{'type': 'Point', 'coordinates': [{longitude}, {latitude}]}}"}
    pair = f"'[' || ({longitude}) || ', ' || ({latitude}) || ']'"
    return {"location.type": "'Point'", "location.coordinates": pair}
