"""Delays at stops from positions and a timetable, released and held against the made ones."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

from turnstile.service_calendar import ServiceWeek

Cli = Callable[..., int]
PROGRAMME = Path(__file__).parent / "programmes/stop_delays.yaml"
SOUTH, WEST, STEP = 21.14, 72.83, 0.006  # stops 667 m apart
STOPS, BETWEEN_S, POLL_S = 8, 180, 20
HOURS, BUSES = (10, 11), 10
LATE_S = {0: 240, 1: -70}  # by direction; and a second more for each bus
SURE = 6
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MARK = "CANARYTRIP"


@dataclass(frozen=True)
class Run:
    """A bus on a trip: out from the first stop, or back from the last one, at 10:00 or 11:00."""

    hour: int
    direction: int
    bus: int

    @property
    def trip(self) -> str:
        return f"t{self.hour}-{self.direction}-{self.bus}"

    @property
    def late_s(self) -> int:
        return LATE_S[self.direction] + self.bus

    def latitude(self, stops: float) -> float:
        """After so many stops."""
        return SOUTH + STEP * (stops if self.direction == 0 else STOPS - 1 - stops)

    def stop(self, number: int) -> str:
        return f"s{number if self.direction == 0 else STOPS - 1 - number}"


RUNS = [Run(hour, way, bus) for hour in HOURS for way in LATE_S for bus in range(BUSES)]


def clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def write_feed(path: Path, *further: str) -> None:
    """Write the timetable of all runs."""
    tables = {
        "agency": ["agency_name,agency_url,agency_timezone", "S,https://s.example,Asia/Kolkata"],
        "stops": ["stop_id,stop_name,stop_lat,stop_lon"]
        + [f"s{n},Stop {n},{SOUTH + n * STEP:.4f},{WEST}" for n in range(STOPS)],
        "routes": ["route_id,route_short_name,route_type", "r1,1,3"],
        "trips": ["route_id,service_id,trip_id,direction_id"]
        + [f"r1,daily,{run.trip},{run.direction}" for run in RUNS],
        "calendar": [
            f"service_id,{','.join(WEEKDAYS)},start_date,end_date",
            "daily,1,1,1,1,1,1,1,20160101,20161231",
        ],
        "stop_times": ["trip_id,arrival_time,departure_time,stop_id,stop_sequence"]
        + [
            f"{run.trip},{at},{at},{run.stop(n)},{n + 1}"
            for run in RUNS
            for n in range(STOPS)
            for at in [clock(run.hour * 3600 + n * BETWEEN_S)]
        ],
    }
    if further:
        tables["frequencies"] = list(further)
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in tables.items():
            archive.writestr(f"{name}.txt", "\n".join(lines) + "\n")


def positions() -> Iterator[tuple[Run, int, float]]:
    """Yield run, second of the day and latitude of every poll; buses are polled one by one."""
    for run in RUNS:
        begin = run.hour * 3600 + run.late_s
        for second in range(begin + run.bus, begin + (STOPS - 1) * BETWEEN_S + POLL_S, POLL_S):
            yield run, second, run.latitude((second - begin) / BETWEEN_S)


def expected() -> pd.DataFrame:
    """Mean delay and buses of a day by hour, stop and direction: nearest polls, in plain Python."""
    of_stop: dict[tuple[Run, int], tuple[float, int]] = {}
    for run, second, latitude in positions():
        for number in range(1, STOPS):  # a trip's first stop says nothing
            off = abs(latitude - run.latitude(number))
            if off * 111_195 <= 80:
                of_stop[run, number] = min(of_stop.get((run, number), (1.0, 0)), (off, second))
    found = defaultdict(list)
    for (run, number), (_, second) in of_stop.items():
        label = f"{second // 3600:02}:00", run.stop(number), f"way {run.direction}"
        found[label].append((second - run.hour * 3600 - number * BETWEEN_S) / 60)
    lines = [(*label, sum(own) / len(own), len(own)) for label, own in found.items()]
    cell = ["slot", "stop", "direction"]
    return pd.DataFrame(lines, columns=[*cell, "true", "buses"]).set_index(cell)


@pytest.fixture
def fleet(deployment: Deployment) -> Deployment:
    """A landed week of positions, the timetable and its lists."""
    (deployment.include / "programmes/stop_delays.yaml").write_text(PROGRAMME.read_text())
    domains = deployment.include / "domains"
    write_feed(domains / "stop_delays.zip")
    ways = "value,label\n0,way 0\n1,way 1\n"
    (domains / "stop_delays_directions.csv").write_text(ways)
    folder = deployment.landing("stop_delays")
    folder.mkdir(parents=True)
    lines = []
    for day in ServiceWeek.parse(WEEK).days:
        for run, second, latitude in positions():
            trip = {"trip_id": run.trip, "direction_id": run.direction}
            own = {
                "vehicle": {"id": f"b{run.hour}-{run.direction}-{run.bus}"},
                "timestamp": f"{day}T{clock(second)}+05:30",
                "position": {"latitude": latitude, "longitude": WEST, "speed": 4.0},
                "trip": trip,
            }
            lines.append(json.dumps({"vehicle": own}))
    marked = {"trip": {"trip_id": MARK, "direction_id": 0}, "vehicle": {"id": "x"}}
    lines.append(json.dumps({"vehicle": own | marked}))
    (folder / "positions.ndjson").write_text("\n".join(lines) + "\n")
    return deployment


@pytest.fixture
def listed(fleet: Deployment, turnstile: Cli) -> Deployment:
    """The same, with the list of stops that the command writes."""
    out = fleet.include / "domains/stop_delays_stops.csv"
    feed = fleet.include / "domains/stop_delays.zip"
    assert turnstile("domain", "lists", feed, "--of", "stop", "--out", out) == 0
    assert out.read_text().splitlines()[:2] == ["value,label", "s0,s0"]
    return fleet


def test_delays_at_stops_are_those_of_the_nearest_positions(
    listed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("check", "stop_delays") == 0
    assert turnstile("run", "stop_delays", "--week", WEEK) == 0
    package = listed.public / "stop_delays" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    cell = ["slot", "stop", "direction"]
    table = pd.read_csv(package / "tables/delay.csv").set_index(cell)
    true = expected()
    drawn = pd.read_csv(package / "measurements/passes.csv").set_index(cell).buses
    draws = json.loads((package / "release_card.json").read_text())["draws"]
    deviation = next(one["standard_deviation"] for one in draws if one["table"] == "passes")
    buses = 7 * true.buses.reindex(drawn.index, fill_value=0)
    assert (drawn - buses).abs().max() <= SURE * deviation
    shown = table[~table.is_withheld].join(true, how="inner")
    assert len(shown) > 20
    error = (shown.mean_delay_minutes - shown.true).abs()
    assert (error <= SURE * shown.standard_deviation_minutes + 0.02).all()
    for way, late in LATE_S.items():  # and what was made, as near as a poll can tell
        own = shown.xs(f"way {way}", level="direction").mean_delay_minutes.mean()
        assert abs(own - (late + BUSES / 2) / 60) < POLL_S / 60
    outputs = [
        path.read_bytes()
        for path in listed.home.rglob("*")
        if path.is_file() and not {"private", "landing"} & set(path.relative_to(listed.home).parts)
    ]
    said = capsys.readouterr()
    every = b"".join([*outputs, said.out.encode(), said.err.encode()])
    assert b"stop_delays.zip@" in every  # the timetable is named, with its digest
    assert MARK.encode() not in every
    assert RUNS[0].trip.encode() not in every  # nor any trip


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("  timetable: domains", "  timetabel: domains", "did you mean timetable?"),
        ("domains/stop_delays.zip", "domains/none.zip", "source.timetable"),
        ("stop_within_m: 80", "stop_within_m: near", "source.stop_within_m"),
        ("zone: Asia/Kolkata", "zone: Asia/Tokyo", "Asia/Kolkata"),
        ("  timetable: domains/stop_delays.zip", "  #", "source.stop_within_m"),
        ("[slot, stop, direction], measure: mean", "[slot, stop], measure: mean", "passes.by"),
        ("{stop: domains/stop_delays_stops.csv, ", "{", "tables.delay.by"),
    ],
)
@pytest.mark.usefixtures("listed")
def test_what_no_timetable_could_tell_is_refused(
    check_refuses: Callable[..., None], old: str, new: str, field: str
) -> None:
    check_refuses("stop_delays", old, new, field)


def test_trips_by_headway_have_no_times_to_be_late_by(
    listed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "trip_id,start_time,end_time,headway_secs"
    feed = listed.include / "domains/stop_delays.zip"
    write_feed(feed, header, f"{RUNS[0].trip},06:00:00,09:00:00,600")
    assert turnstile("check", "stop_delays") == 2
    assert "runs by headway" in capsys.readouterr().err


def test_a_week_that_the_timetable_does_not_cover_is_refused_before_anything_is_charged(
    listed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landing = listed.landing("stop_delays")
    landing.rename(landing.with_name("2017-W30"))
    assert turnstile("run", "stop_delays", "--week", "2017-W30") == 2
    assert "name the feed of then" in capsys.readouterr().err
    assert turnstile("ledger", "verify") == 0
