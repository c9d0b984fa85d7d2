"""Telemetry in every shape in which it is found becomes the same canonical rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ingested_weeks import Read

from turnstile.errors import InputError
from turnstile.programme.source_spec import SpeedUnit
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.itms import LAYOUT
from turnstile.sources.ingest.snapshot import counts_of

WEEK = "2022-W01"
# plate, local stamp, the same in UTC, longitude, latitude, speed
_SEEN = [
    ("GJ05BX0001", "2022-01-08 05:30:03", "2022-01-08T00:00:03Z", "72.857167", "21.161266", "7"),
    ("GJ05BX0002", "2022-01-03 00:10:00", "2022-01-02T18:40:00Z", "72.8", "21.2", "43.5"),
    ("GJ05BX0003", "2022-01-09 23:59:59", "2022-01-09T18:29:59Z", "72.81", "21.21", "0"),
]


def _string(stamp: str = "{local}+05:30") -> str:
    lines = ["license_plate,observationDateTime,speed,location.type,location.coordinates"]
    for plate, local, utc, lon, lat, speed in _SEEN:
        when = stamp.format(local=local, utc=utc, iso=local.replace(" ", "T"))
        lines.append(f'{plate},{when},{speed},Point,"[{lon}, {lat}]"')
    return "\n".join(lines) + "\n"


def _split() -> str:
    lines = [
        "license_plate,observationDateTime,speed,location/coordinates/0,location/coordinates/1"
    ]
    for plate, local, _, lon, lat, speed in _SEEN:
        lines.append(f"{plate},{local.replace(' ', 'T')}+05:30,{speed},{lon},{lat}")
    return "\n".join(lines) + "\n"


def _nested() -> str:
    return json.dumps(
        [
            {
                "license_plate": plate,
                "observationDateTime": local.replace(" ", "T") + "+05:30",
                "speed": float(speed),
                "location": {"type": "Point", "coordinates": [float(lon), float(lat)]},
            }
            for plate, local, _, lon, lat, speed in _SEEN
        ],
        indent=2,
    )


_SHAPES = {
    "coordinates as text": ("a.csv", _string()),
    "two columns": ("a.csv", _split()),
    "nested": ("a.json", _nested()),
    "T and offset": ("a.csv", _string("{iso}+05:30")),
    "offset without colon": ("a.csv", _string("{local}+0530")),
    "UTC": ("a.csv", _string("{utc}")),
    "local": ("a.csv", _string("{local}")),
    "local with fractions": ("a.csv", _string("{iso}.123456")),
    "offset and fractions": ("a.csv", _string("{iso}.5+05:30")),
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_every_shape_and_stamp_gives_the_same_rows(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any], shape: str
) -> None:
    name, content = _SHAPES[shape]
    zones.deliver(WEEK, {name: content})
    assert rows_of(zones.ingest(programme_of("itms"), WEEK)) == [
        (
            plate,
            datetime.fromisoformat(utc[:-1]),
            date.fromisoformat(local[:10]),
            60 * int(local[11:13]) + int(local[14:16]),
            float(lat),
            float(lon),
            round(1000 * float(speed)),
            "bus",
            "b0",
        )
        for plate, local, utc, lon, lat, speed in _SEEN
    ]


def test_a_record_in_two_shapes_is_one_row(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"a.csv": _string(), "b.csv": _split(), "c.json": _nested()})
    counts = counts_of(zones.ingest(programme_of("itms"), WEEK))
    assert (counts["rows_in"], counts["rows_out"], counts["duplicates"]) == (9, 3, 6)


def test_typed_parquet_columns_read_like_text(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any], tmp_path: Path
) -> None:
    zones.deliver(WEEK, {"a.json": _nested()})
    wanted = rows_of(zones.ingest(programme_of("itms"), WEEK))
    (zones.landing / WEEK / "a.json").unlink()
    (tmp_path / "in.json").write_text(_nested())
    typed = (
        "SELECT * REPLACE (CAST(observationDateTime AS TIMESTAMPTZ) AS observationDateTime) "
        f"FROM read_json('{tmp_path}/in.json')"
    )
    duckdb.execute(f"COPY ({typed}) TO '{tmp_path}/a.parquet'")
    zones.deliver(WEEK, {"a.parquet": (tmp_path / "a.parquet").read_bytes()})
    assert rows_of(zones.ingest(programme_of("itms"), WEEK)) == wanted


_BROKEN = {
    "null_vehicle": ",2022-01-08 05:30:03,7,72.8,21.1",
    "unparsable_timestamp": "P,8 Jan 2022,7,72.8,21.1",
    "future_date": "P,2031-01-08 05:30:03,7,72.8,21.1",
    "outside_week": "P,2022-01-02 23:59:59+05:30,7,72.8,21.1",
    "null_coordinates": "P,2022-01-08 05:30:03,7,,21.1",
    "coordinates_out_of_range": "P,2022-01-08 05:30:03,7,172.8,91",
    "coordinates_swapped": "P,2022-01-08 05:30:03,7,21.1,72.8",
    "null_speed": "P,2022-01-08 05:30:03,fast,72.8,21.1",
    "speed_out_of_range": "P,2022-01-08 05:30:03,130.01,72.8,21.1",
}
_ALSO_BROKEN = {
    "no fix": ("coordinates_out_of_range", "P,2022-01-08 05:30:03,7,0,0"),
    "not a number": ("coordinates_out_of_range", "P,2022-01-08 05:30:03,7,nan,21.1"),
    "backwards": ("speed_out_of_range", "P,2022-01-08 05:30:03,-1,72.8,21.1"),
    "infinite": ("speed_out_of_range", "P,2022-01-08 05:30:03,inf,72.8,21.1"),
    "no such day": ("unparsable_timestamp", "P,2022-02-30 05:30:03,7,72.8,21.1"),
    "no such hour": ("unparsable_timestamp", "P,2022-01-08 24:30:03,7,72.8,21.1"),
    "next week": ("outside_week", "P,2022-01-10 00:00:00,7,72.8,21.1"),
}
_CASES = {rule: (rule, line) for rule, line in _BROKEN.items()} | _ALSO_BROKEN


@pytest.mark.parametrize("case", _CASES)
def test_a_row_that_breaks_a_rule_goes_to_quarantine_under_its_name(
    ingested: Read, case: str
) -> None:
    rule, line = _CASES[case]
    header = "license_plate,observationDateTime,speed,longitude,latitude"
    good = "P,2022-01-08 05:30:03,130,72.8,21.1"
    _, counts = ingested(line, good, header=header, name="itms", week=WEEK)
    assert counts == {"rows_in": 2, "rows_out": 1, rule: 1}


def test_meters_per_second_become_kilometers_per_hour(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    zones.deliver(WEEK, {"a.csv": _string()})
    programme = programme_of("itms", speed_unit=SpeedUnit.MS, speed_at_most_kmh=200)
    snapshot = zones.ingest(programme, WEEK)
    assert rows_of(snapshot, "speed_milli_kmh") == [(0,), (25_200,), (156_600,)]


@pytest.mark.parametrize(
    ("stated", "delay_s"),
    [("nan", None), ("-inf", None), ("1e400", None), ("-90000", -86_400), ("4.6", 5)],
)
def test_a_delay_that_is_no_number_is_none(
    ingested: Read, stated: str, delay_s: int | None
) -> None:
    header = "license_plate,observationDateTime,speed,longitude,latitude,trip_delay"
    line = f"P,2022-01-08 05:30:03,30,72.8,21.1,{stated}"
    rows, _ = ingested(line, header=header, read="delay_s", name="itms_delays", week=WEEK)
    assert rows == [(delay_s,)]


def test_a_file_without_coordinates_is_reported(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"a.csv": "license_plate,observationDateTime,speed\nP,x,1\n"})
    with pytest.raises(InputError, match=r"location\.coordinates: the column is missing"):
        zones.ingest(programme_of("itms"), WEEK)


@pytest.fixture
def clocks(ingested: Read) -> Read:
    """Vehicle, minute of the local day and hour in UTC of observations as Austin has them."""
    return partial(
        ingested,
        header="vehicle_id,timestamp,speed,latitude,longitude",
        read="vehicle_id, minute_of_day, hour(observed_at_utc)",
        name="itms",
        columns=(("vehicle_id", "vehicle_id"), ("observed_at", "timestamp")),
    )


def test_the_day_on_which_the_clock_leaps_has_its_own_local_hours(clocks: Read) -> None:
    # Chicago, 8 March 2015: 02:00 standard time becomes 03:00 daylight time.
    rows, counts = clocks(
        "1,2015-03-08T01:59:59-06:00,5,30.2,-97.7",
        "2,2015-03-08T03:00:00-05:00,5,30.2,-97.7",
        "3,2015-03-08T08:30:00Z,5,30.2,-97.7",
        "4,2015-03-08T23:59:00-05:00,5,30.2,-97.7",
        "5,2015-03-09T00:00:00-05:00,5,30.2,-97.7",
        "6,2015-03-08T03:30:00,5,30.2,-97.7",
        week="2015-W10",
        zone="America/Chicago",
    )
    assert rows == [
        ("1", 119, 7),
        ("2", 180, 8),
        ("3", 210, 8),
        ("4", 1439, 4),
        ("6", 210, 8),
    ]
    assert counts["outside_week"] == 1


def test_the_day_on_which_the_clock_goes_back_passes_an_hour_twice(clocks: Read) -> None:
    # Sydney, 3 April 2016: 03:00 daylight time becomes 02:00 standard time.
    rows, _ = clocks(
        "1,2016-04-03T02:30:00+11:00,5,-33,151",
        "2,2016-04-03T02:30:00+10:00,5,-33,151",
        "3,2016-04-02T15:30:00Z,5,-33,151",
        "4,2016-04-02T16:30:00Z,5,-33,151",
        "5,2016-04-03T02:30:00,5,-33,151",
        week="2016-W13",
        zone="Australia/Sydney",
    )
    assert rows == [
        ("1", 150, 15),
        ("2", 150, 16),
        ("3", 150, 15),
        ("4", 150, 16),
        ("5", 150, 15),
    ]


@given(text=st.text(alphabet="[],1.- \nx", max_size=12).map("[1,{}".format))
@example(text="[1, 2]")
@example(text="[1,2,]")
@example(text="[1,2,3")
@example(text="[1,2,3]]")
@example(text="[1,2],3]")
@example(text="[1,2,\n]")
@example(text="[1,2]\n")
def test_a_list_of_coordinates_is_two_numbers_and_what_may_follow_them(text: str) -> None:
    number = r"\s*([0-9.eE+-]+)\s*"
    pair = re.compile(rf"\[{number},{number}\]", re.ASCII)
    pair_and_more = re.compile(rf"\[{number},{number},.*\]", re.ASCII)
    wanted = pair.fullmatch(text) or pair_and_more.fullmatch(text)
    names = dict(LAYOUT.names)
    columns = frozenset(names[n] for n in ("vehicle_id", "observed_at", "speed", "coordinates"))
    sql = dict(LAYOUT.fields_of(columns, names))
    coordinates = duckdb.execute(
        f"SELECT {sql['longitude']}, {sql['latitude']} "
        'FROM (SELECT CAST(? AS VARCHAR) AS "location.coordinates")',
        [text],
    ).fetchone()
    assert coordinates == (wanted.groups() if wanted else (None, None))
