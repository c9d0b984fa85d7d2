"""Feed `itms`: bus telemetry, one record an observation, in the shapes in which it is found.

Coordinates come as text `[longitude, latitude]` in `location.coordinates`, as two columns
`location/coordinates/0` and `/1`, as a nested GeoJSON point in `location`, or as two columns of
their own (`latitude`, `longitude`: a feed of another city, by `source.columns`). Each record is
read in the first shape that it has, whatever the shapes of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from turnstile.duckdb_engine import name, text
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import OccupancyClass, Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import (
    ColumnMissing,
    FeedLayout,
    carried_sql,
    delay_sql,
    if_there,
    plain_fields,
    set_aside,
    week_rules,
)
from turnstile.sources.feeds.made_records import MadeReading, Record, fields_of_reading, named
from turnstile.sources.feeds.zoned import ServiceClock, stamped_sql
from turnstile.sources.ingest.canonical import SPEED_SCALE
from turnstile.sources.ingest.coordinates import on_earth_sql, swapped_sql
from turnstile.sources.ingest.identity import another_form_rule

_ALWAYS = ("vehicle_id", "observed_at", "speed")
_FIELDS = (*_ALWAYS, "latitude", "longitude")
_CLASSES = " ".join(
    f"WHEN {text(spelling)} THEN {occupancy.number}"
    for occupancy in OccupancyClass
    for spelling in (occupancy.value, str(occupancy.number))
)
_OCCUPANCY = f"CASE upper(occupancy) {_CLASSES} END"
_SAYS_NOTHING = "('NO_DATA_AVAILABLE', 'NOT_BOARDABLE', '7', '8')"  # of GTFS-realtime too
_NO_STATUS = (
    f"WHEN {_OCCUPANCY} IS NULL AND upper(occupancy) NOT IN {_SAYS_NOTHING} THEN 'unknown_status' "
)
_SPLIT = ("location/coordinates/0", "location/coordinates/1")
_PAIR_COLUMN, _NESTED = "location.coordinates", "location"
_NUMBER = r"\s*([0-9.eE+-]+)\s*"
# whichever way it goes on is told by its next character, so it is matched in one pass; where more
# than two numbers follow the text must end as a list does
_PAIR = rf"^\[{_NUMBER},{_NUMBER}(?:\]|,.*)$"
_PARTS = "['longitude', 'latitude']"


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field over a file's text columns, whichever the record's shape.

    Raises:
        ColumnMissing: vehicle, time or speed is missing, or no shape of the coordinates is there.
    """
    always = plain_fields(columns, names, _ALWAYS)
    latitude, longitude = _coordinates(columns, names)
    others = if_there(columns, names, ("delay", "trip"))
    position = (("latitude", latitude), ("longitude", longitude))
    return (*always, *position, *others, ("start_date", "CAST(NULL AS VARCHAR)"))


def _coordinates(columns: frozenset[str], names: Mapping[str, str]) -> tuple[str, str]:
    """SQL of latitude and longitude as text: a record's first shape that has both."""
    shapes = list(_shapes(columns, names))
    if not shapes:
        raise ColumnMissing(names["coordinates"])
    if len(shapes) == 1:
        return shapes[0]
    latitude, longitude = (
        " ".join(
            f"WHEN {lat} IS NOT NULL AND {lon} IS NOT NULL THEN {value}"
            for lat, lon, value in ((*shape, shape[which]) for shape in shapes)
        )
        for which in (0, 1)
    )
    return f"CASE {latitude} END", f"CASE {longitude} END"


def _shapes(columns: frozenset[str], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """SQL of latitude and longitude in each shape that the columns allow; a named pair first."""
    if names["coordinates"] in columns - {_PAIR_COLUMN}:
        yield _of_pair(name(names["coordinates"]))
    if names["latitude"] in columns and names["longitude"] in columns:
        yield name(names["latitude"]), name(names["longitude"])
    if set(_SPLIT) <= columns:
        longitude, latitude = (name(column) for column in _SPLIT)
        yield latitude, longitude
    if names["coordinates"] in columns & {_PAIR_COLUMN}:
        yield _of_pair(name(names["coordinates"]))
    if _NESTED in columns:
        yield _of_pair(f"json_extract_string(TRY_CAST({name(_NESTED)} AS JSON), '$.coordinates')")


def _of_pair(pair: str) -> tuple[str, str]:
    """SQL of latitude and longitude of a text `[longitude, latitude]`."""
    # the engine computes the same text once for both
    parts = f"CASE WHEN suffix({pair}, ']') THEN regexp_extract({pair}, '{_PAIR}', {_PARTS}) END"
    return f"nullif(({parts}).latitude, '')", f"nullif(({parts}).longitude, '')"


def typed_sql(programme: Programme, week: ServicePeriod, relation: str = "raw") -> str:
    """Return the SELECT from the fields of records to canonical telemetry."""
    source = programme.source
    stamped = stamped_sql(relation, "observed_at", programme.time.zone, week, source)
    clock = ServiceClock(programme.time.day_starts)
    states_delay = "delay_s" in programme.carried and source.timetable is None
    factor = float(source.speed_unit.milli_kmh)  # of whole kilometres a whole number, so exact
    fastest = source.speed_at_most_kmh * SPEED_SCALE
    return f"""
        SELECT vehicle_id, utc AS observed_at_utc, day AS service_date,
            {clock.minute("(60 * hour(local) + minute(local))")} AS minute_of_day,
            lat AS latitude, lon AS longitude,
            CASE WHEN milli_kmh BETWEEN 0 AND {fastest} THEN CAST(round(milli_kmh) AS BIGINT) END
                AS speed_milli_kmh,
            {carried_sql(programme)}
            {delay_sql(source) if states_delay else "NULL"} AS delay_s,
            {"trip, start_date," if source.timetable else ""}
            {_OCCUPANCY if "occupancy" in programme.carried else "NULL"} AS occupancy,
            CASE
                WHEN day IS NULL THEN 'unparsable_timestamp'
                {week_rules("day", programme, week)}
                WHEN vehicle_id IS NULL THEN 'null_vehicle'
                {another_form_rule(source)}
                WHEN lat IS NULL OR lon IS NULL THEN 'null_coordinates'
                WHEN {swapped_sql(source.extent)} THEN 'coordinates_swapped'
                WHEN NOT ({on_earth_sql("lat", "lon")}) OR (lat = 0 AND lon = 0)
                    THEN 'coordinates_out_of_range'
                WHEN milli_kmh IS NULL THEN 'null_speed'
                WHEN NOT (milli_kmh BETWEEN 0 AND {fastest}) THEN 'speed_out_of_range'
                {_NO_STATUS if "occupancy" in programme.carried else ""}
            END AS broken_rule,
            {set_aside(_FIELDS)} AS fields
        FROM (
            SELECT *, {clock.day("local")} AS day
            FROM (
                SELECT *,
                    TRY_CAST(latitude AS DOUBLE) AS lat, TRY_CAST(longitude AS DOUBLE) AS lon,
                    {factor} * TRY_CAST(speed AS DOUBLE) AS milli_kmh
                FROM {stamped}
            )
        )
    """


def made(reading: MadeReading, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the record of a made-up observation, in the shape whose turn it is."""
    latitude, longitude = reading.latitude, reading.longitude
    shapes: tuple[Record, ...] = (
        {names["coordinates"]: f"[{longitude}, {latitude}]"},
        {_SPLIT[0]: longitude, _SPLIT[1]: latitude},
        {_NESTED: {"type": "Point", "coordinates": [longitude, latitude]}},
        {names["latitude"]: latitude, names["longitude"]: longitude},
    )
    fields = named(fields_of_reading(reading, programme, names), names)
    return [fields | shapes[reading.shape % len(shapes)]]


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "license_plate"),
        ("observed_at", "observationDateTime"),
        ("speed", "speed"),
        ("latitude", "latitude"),
        ("longitude", "longitude"),
        ("coordinates", _PAIR_COLUMN),
        ("delay", "trip_delay"),
        ("route", "route_id"),
        ("direction", "trip_direction"),
        ("trip", "trip_id"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    other_columns=lambda _: (*_SPLIT, _NESTED),
    spellings=lambda column: (column, _NESTED) if column == _PAIR_COLUMN else (column,),
    composed={"delay_s": ("delay",)},
)
