"""A service day may begin in the night, in every feed: rows, slots and counts up to 28:00."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from ingested_weeks import Read

from turnstile.counting.exact_tables import count
from turnstile.errors import ProgrammeError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme

INCLUDE = Path(__file__).resolve().parents[2] / "include"
FOUR = 240
TUESDAY = date(2016, 7, 26)


def programme_from(name: str, **changes: str) -> Programme:
    """A shipped programme in slots of an hour or less, whose service day begins at four."""
    text = (INCLUDE / f"programmes/{name}.yaml").read_text()
    text = text.replace("slot_minutes: 180", "slot_minutes: 60")
    begin = {"week_starts: monday": 'week_starts: monday, day_starts: "04:00"'}
    for old, new in (begin | changes).items():
        assert old in text
        text = text.replace(old, new)
    return parse_programme(text, f"{name}.yaml")


def test_a_trip_of_the_night_is_of_the_service_day_before(ingested: Read) -> None:
    header = "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    header += "tap_off_date,tap_off_time,tap_off_location"
    lines = [
        "c,bus,2016-07-27,02:30,A,2016-07-27,04:10,B",
        "d,bus,2016-07-26,23:50,A,2016-07-27,03:59,B",
        "e,bus,2016-07-25,03:59,A,,,",  # of Sunday
        "f,bus,2016-08-01,03:59,A,,,",  # of Sunday, the last one of the week
        "g,bus,2016-07-27,02:30,A,2016-07-27,02:29,B",
    ]
    columns = "card_id, service_date, tap_on_minute, tap_off_date, tap_off_minute"
    rows, _ = ingested(*lines, header=header, read=columns, day_starts=FOUR)
    assert rows == [
        ("c", TUESDAY, 26 * 60 + 30, date(2016, 7, 27), 250),
        ("d", TUESDAY, 1430, TUESDAY, 27 * 60 + 59),
        ("f", date(2016, 7, 31), 27 * 60 + 59, None, None),
    ]


@pytest.mark.parametrize("end", ["on", "off"])
def test_a_night_before_the_first_of_all_days_costs_its_own_record(
    ingested: Read, end: str
) -> None:
    header = "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    header += "tap_off_date,tap_off_time,tap_off_location"
    first = "5877642-06-25 (BC),01:00"
    on, off = (first if end == name else "2016-07-26,08:00" for name in ("on", "off"))
    hostile, good = f"x,bus,{on},A,{off},B", "c,bus,2016-07-26,08:00,A,,,"
    rows, counts = ingested(good, hostile, header=header, read="card_id", day_starts=FOUR)
    assert rows == [("c",)]
    assert (counts["rows_in"], counts["rows_out"]) == (2, 1)


def test_an_observation_of_the_night_too(ingested: Read) -> None:
    header = "license_plate,observationDateTime,speed,latitude,longitude"
    times = ["2016-07-27T03:59:59+05:30", "2016-07-26T22:30:00Z", "2016-07-26T03:59:00+05:30"]
    lines = [f"p{n},{time},30,21.17,72.83" for n, time in enumerate(times)]
    read = "vehicle_id, service_date, minute_of_day"
    rows, _ = ingested(*lines, header=header, read=read, name="itms", day_starts=FOUR)
    assert rows == [
        ("p0", TUESDAY, 27 * 60 + 59),
        ("p1", date(2016, 7, 27), 240),
        ("p2", date(2016, 7, 25), 27 * 60 + 59),
    ]


def test_slots_run_to_28_00_and_hold_the_night(tmp_path: Path) -> None:
    import duckdb

    programme = programme_from("opal")
    domain = load_domain(programme, INCLUDE)
    labels = domain.dimension("bus", "tap_on_slot").labels
    assert (labels[0], labels[-1], len(labels)) == ("04:00", "27:45", 96)
    place = next(stop for stop in domain.places if stop.mode == "bus").location.replace("'", "''")
    day = tmp_path / f"rows/service_date={TUESDAY}"
    day.mkdir(parents=True)
    duckdb.execute(
        f"COPY (SELECT 'c' AS card_id, 'bus' AS mode, DATE '{TUESDAY}' AS service_date, "
        f"1679 AS tap_on_minute, '{place}' AS tap_on_location, DATE '2016-07-27' AS tap_off_date, "
        f"240 AS tap_off_minute, '{place}' AS tap_off_location, 'b0' AS batch) "
        f"TO '{day}/part-000.parquet'"
    )
    counts = {
        table.table: table.reveal_to_mechanism()
        for table in count(
            replace(programme, source=replace(programme.source, feed=Feed.OPAL_TRIPS)),
            domain,
            (TUESDAY,),
            tmp_path / "rows",
            secret=b"x",
            work=tmp_path / "work",
            progress=lambda _: None,
        )
    }
    assert np.flatnonzero(counts["on_time"]).tolist() == [95]  # 27:45 of buses, the first mode
    assert np.flatnonzero(counts["off_time"]).tolist() == [0]  # 04:00 of its own service day


def test_a_stretch_may_run_past_midnight() -> None:
    programme = programme_from("itms", **{'"09:00-21:00"': '"09:00-26:00"'})
    labels = load_domain(programme, INCLUDE).cells_by_mode[0].dimensions[0].labels
    assert (labels[0], labels[-1]) == ("09:00", "25:00")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({'day_starts: "04:00"': 'day_starts: "04:10"'}, "day_starts"),
        ({'day_starts: "04:00"': 'day_starts: "13:00"'}, "day_starts"),
        ({'day_starts: "04:00"': "day_starts: four"}, "day_starts"),
        ({'"09:00-21:00"': '"03:00-21:00"'}, "domain.slots"),
        ({'"09:00-21:00"': '"09:00-29:00"'}, "domain.slots"),
    ],
)
def test_a_begin_or_a_stretch_that_cannot_be_is_refused(
    changes: dict[str, str], field: str
) -> None:
    with pytest.raises(ProgrammeError, match=field):
        load_domain(programme_from("itms", **changes), INCLUDE)


def test_a_programme_that_says_nothing_is_what_it_always_was() -> None:
    text = (INCLUDE / "programmes/opal.yaml").read_text()
    plain = parse_programme(text, "opal.yaml")
    assert plain.time.day_starts == 0
    assert plain.domain.first_minute == 0
    assert plain.domain.last_minute == 1440
