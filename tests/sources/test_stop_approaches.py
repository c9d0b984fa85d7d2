"""How late a vehicle is at a stop: nearest approaches against a timetable, case by case."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from ingested_weeks import Zones

from turnstile.errors import ProgrammeError
from turnstile.programme.gtfs.timetable import read_calls
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.week import ingest

ZONE = "America/Chicago"
WEEK = "2015-W10"  # its Sunday, 8 March, begins summer time at two o'clock
SATURDAY, SUNDAY = "2015-03-07", "2015-03-08"
NORTH, WEST = 30.25, -97.75
STEP = 0.005  # degrees of latitude between stops: 556 m
STOPS = 6
TABLES = {
    "agency": ["agency_name,agency_url,agency_timezone", f"A,https://a.example,{ZONE}"],
    "stops": ["stop_id,stop_name,stop_lat,stop_lon"]
    + [f"s{n},Stop {n},{NORTH + n * STEP:.4f},{WEST}" for n in range(STOPS)],
    "routes": ["route_id,route_short_name,route_type", "r1,1,3"],
    "trips": ["route_id,service_id,trip_id", "r1,daily,day", "r1,daily,night", "r1,sunday,early"],
    "calendar": [
        "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date",
        "daily,1,1,1,1,1,1,1,20150101,20151231",
        "sunday,0,0,0,0,0,0,1,20150101,20151231",
    ],
    # by trip: begin in minutes, five to the next stop; s3 of `day` has no time, and s1 comes twice
    "stop_times": ["trip_id,arrival_time,departure_time,stop_id,stop_sequence"]
    + ["day,10:00:00,10:00:00,s0,1", "day,10:05:00,10:05:00,s1,2", "day,10:10:00,10:10:00,s2,3"]
    + ["day,,,s3,4", "day,10:20:00,10:20:00,s4,5", "day,10:25:00,10:25:00,s1,6"]
    + [f"night,{24 + n // 12}:{n * 5 % 60:02}:00,,s{n},{n}" for n in range(STOPS)]
    + [f"early,03:{n * 5:02}:00,,s{n},{n}" for n in range(STOPS)],
}
COLUMNS = ("vehicle_id", "event_timestamp", "latitude", "longitude", "speed", "trip", "day")
BY_HEADWAY = "trip_id,start_time,end_time,headway_secs"
Ping = dict[str, Any]


def write_feed(path: Path, **changed: list[str]) -> None:
    """Write the feed, with some of its tables changed, or left out where they are empty."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in (TABLES | changed).items():
            if lines:
                archive.writestr(f"{name}.txt", "\n".join(lines) + "\n")


@pytest.fixture
def held(zones: Zones, programme_of: Callable[..., Programme]) -> Callable[..., list[Any]]:
    """Ingest positions beside the feed; return vehicle, instant, stop and delay of their rows."""
    (zones.root / "domains").mkdir()
    write_feed(zones.root / "domains/gtfs.zip")
    columns = (("trip", "trip"), ("start_date", "day"))
    programme = programme_of(
        "itms_delays",
        zone=ZONE,
        feed=Feed.TIDES_VEHICLE_LOCATIONS,
        speed_unit=Feed.TIDES_VEHICLE_LOCATIONS.speed_unit,
        extent=None,
        columns=columns,
        timetable="domains/gtfs.zip",
        stop_within_m=100,
    )
    domain = replace(programme.domain, lists=(("stop", "domains/stops.csv"),))
    programme = replace(programme, domain=domain)

    def run(pings: Iterable[Ping], **changed: Any) -> list[Any]:
        import duckdb

        variant = replace(programme, **changed)
        lines = [",".join(str(ping.get(name, "")) for name in COLUMNS) for ping in pings]
        zones.deliver(WEEK, {"pings.csv": "\n".join([",".join(COLUMNS), *lines]) + "\n"})
        week = ServiceWeek.parse(WEEK)
        snapshot = ingest(
            variant,
            week,
            landing=zones.landing,
            private=zones.private,
            progress=lambda _: None,
            timetable=read_calls(variant, zones.root, week.days),
        )
        rows = f"read_parquet('{snapshot.rows_glob}', hive_partitioning=false)"
        told = "vehicle_id, strftime(observed_at_utc, '%d %H:%M:%S'), stop, delay_s"
        return duckdb.execute(f"SELECT {told} FROM {rows} ORDER BY ALL").fetchall()

    return run


def ping(
    bus: str, at: str, stop: float, trip: str = "day", *, off_m: float = 0, **more: str
) -> Ping:
    """A position of a bus at a stop's latitude, so many meters to its west."""
    return {
        "vehicle_id": bus,
        "event_timestamp": at,
        "latitude": NORTH + stop * STEP,
        "longitude": WEST - off_m / 96_050,  # of a degree at 30 degrees north
        "speed": 5,
        "trip": trip,
    } | more


def late(rows: list[Any]) -> dict[str, tuple[str, int]]:
    """Stop and delay by instant, of the rows that say one."""
    assert all((stop is None) == (delay is None) for _, _, stop, delay in rows)
    return {at: (stop, delay) for _, at, stop, delay in rows if stop is not None}


def test_the_nearest_position_to_each_stop_says_how_late(held: Callable[..., list[Any]]) -> None:
    delays = late(
        held(
            [
                ping("a", f"{SATURDAY} 09:50:00", 0),  # waits at the first stop: says nothing
                ping("a", f"{SATURDAY} 10:06:00", 1),  # is served twice by the trip
                ping("a", f"{SATURDAY} 10:11:00", 2, off_m=60),
                ping("a", f"{SATURDAY} 10:11:30", 2, off_m=20),  # the nearest: 90 s late
                ping("a", f"{SATURDAY} 10:12:30", 2, off_m=20),  # as near, and later
                ping("a", f"{SATURDAY} 10:15:00", 3),  # has no time
                ping("a", f"{SATURDAY} 10:19:30", 4),  # early
            ]
        )
    )
    assert delays == {"07 16:11:30": ("s2", 90), "07 16:19:30": ("s4", -30)}


@pytest.mark.parametrize(
    ("position", "says"),
    [
        (ping("a", f"{SATURDAY} 10:11:00", 2, off_m=99), True),
        (ping("a", f"{SATURDAY} 10:11:00", 2, off_m=101), False),
        (ping("a", f"{SATURDAY} 11:10:00", 2), True),
        (ping("a", f"{SATURDAY} 11:10:01", 2), False),
        (ping("a", f"{SATURDAY} 10:11:00", 2, "unknown"), False),
        (ping("a", f"{SATURDAY} 10:11:00", 2, ""), False),
        (ping("a", f"{SATURDAY} 03:10:00", 2, "early"), False),  # runs on Sundays
        (ping("a", f"{SATURDAY} 10:11:00", 2, day=SATURDAY), True),
        (ping("a", f"{SATURDAY} 10:11:00", 2, day="20150307"), True),
        (ping("a", f"{SATURDAY} 10:11:00", 2, day="2015-03-06"), False),
    ],
)
def test_what_is_too_far_in_place_time_trip_or_day_says_nothing(
    held: Callable[..., list[Any]], position: Ping, *, says: bool
) -> None:
    assert len(late(held([position]))) == int(says)


def test_times_beyond_24_hours_are_of_the_day_before(held: Callable[..., list[Any]]) -> None:
    rows = held([ping("a", f"{SATURDAY} 00:11:00", 2, "night")])
    assert late(rows) == {"07 06:11:00": ("s2", 60)}


def test_on_the_day_of_summer_time_noon_decides(held: Callable[..., list[Any]]) -> None:
    # 03:10 of the timetable is nine hours less ten minutes before noon, summer time: 08:10 UTC
    instant = datetime(2015, 3, 8, 3, 10, 45, tzinfo=ZoneInfo(ZONE)).isoformat()
    assert late(held([ping("a", instant, 2, "early")])) == {"08 08:10:45": ("s2", 45)}
    # 24:10 of Saturday is ten minutes after Sunday's midnight, winter time: 06:10 UTC
    night = datetime(2015, 3, 8, 0, 10, tzinfo=ZoneInfo(ZONE)).isoformat()
    assert late(held([ping("a", night, 2, "night")])) == {"08 06:10:00": ("s2", 0)}


def test_no_bus_decides_what_another_one_says(held: Callable[..., list[Any]]) -> None:
    """Two buses on one trip, at random; and each of them without the other one."""
    chance = random.Random(20150307)  # noqa: S311 - test data
    start = datetime.fromisoformat(f"{SATURDAY} 10:00:00")
    both = {
        bus: [
            ping(
                bus,
                f"{start + timedelta(seconds=chance.randrange(3600))}",
                chance.choice([1, 2, 2.05, 4, 4.1]),
                off_m=chance.choice([0, 30, 90, 120]),
            )
            for _ in range(40)
        ]
        for bus in "ab"
    }
    combined = held([*both["a"], *both["b"]])
    assert len(late(combined)) == 4  # two stops of each
    for bus in "ab":
        alone = held(both[bus])
        assert alone == [row for row in combined if row[0] == bus]


def test_a_position_is_of_one_stop(held: Callable[..., list[Any]], zones: Zones) -> None:
    near = [f"s{n},Stop {n},{NORTH + n * 0.0005:.4f},{WEST}" for n in range(STOPS)]
    write_feed(zones.root / "domains/gtfs.zip", stops=[TABLES["stops"][0], *near])
    rows = held([ping("a", f"{SATURDAY} 10:11:00", 0.2)])  # between s2 and s4, on s2
    assert late(rows) == {"07 16:11:00": ("s2", 60)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {
                "frequencies": [
                    "trip_id,start_time,end_time,headway_secs",
                    "day,06:00:00,9:00:00,600",
                ]
            },
            "runs by headway",
        ),
        ({"agency": [TABLES["agency"][0], "A,https://a.example,Europe/Oslo"]}, "Europe/Oslo"),
        ({"calendar": []}, "no calendar"),
        ({"trips": []}, "no rows of trips.txt"),
        (
            {"calendar": [TABLES["calendar"][0], "daily,1,1,1,1,1,1,1,20140101,20141231"]},
            "name the feed of then",
        ),
    ],
)
def test_a_feed_that_nobody_can_be_late_by_is_refused(
    held: Callable[..., list[Any]], zones: Zones, changed: dict[str, list[str]], said: str
) -> None:
    write_feed(zones.root / "domains/gtfs.zip", **changed)
    with pytest.raises(ProgrammeError, match=said):
        held([ping("a", f"{SATURDAY} 10:11:00", 2)])
