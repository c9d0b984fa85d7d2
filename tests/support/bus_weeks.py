"""Weeks of buses by feature: what is landed, and what has to stand in the tables."""

import gzip
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h3
import numpy as np
import pandas as pd
from feature_weeks import SURE, Story, add, feature, land_files, land_lines, write_list
from small_deployment import WEEK, Deployment

from turnstile.service_calendar import ServiceWeek

PLACE = (21.17, 72.83)
MARKS = {"route_id": "CANARYROUTE", "direction_id": "CANARYSIDE", "trip_id": "CANARYTRIP"}


def position(bus: str, at: str, latitude: float, longitude: float, **more: object) -> Any:
    """A record of GTFS-realtime as archives have it."""
    place = {"latitude": latitude, "longitude": longitude, "speed": 5.0}
    return {"vehicle": {"id": bus}, "timestamp": f"{at}+05:30", "position": place, **more}


# Delays at stops, from positions and a timetable.

SOUTH, WEST, STEP = 21.14, 72.83, 0.006  # stops 667 m apart
STOPS, BETWEEN_S, POLL_S = 8, 180, 20
HOURS, RUNS_AN_HOUR = (10, 11), 10
LATE_S = {0: 240, 1: -70}  # by direction; and a second more for each bus
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
STOP_CELL = ["slot", "stop", "direction"]


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


RUNS = [Run(hour, way, bus) for hour in HOURS for way in LATE_S for bus in range(RUNS_AN_HOUR)]


def clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def write_feed(path: Path, *frequencies: str) -> None:
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
    if frequencies:
        tables["frequencies"] = list(frequencies)
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in tables.items():
            archive.writestr(f"{name}.txt", "\n".join(lines) + "\n")


def polls() -> Iterator[tuple[Run, int, float]]:
    """Yield run, second of the day and latitude of every poll; buses are polled one by one."""
    for run in RUNS:
        begin = run.hour * 3600 + run.late_s
        for second in range(begin + run.bus, begin + (STOPS - 1) * BETWEEN_S + POLL_S, POLL_S):
            yield run, second, run.latitude((second - begin) / BETWEEN_S)


def land_stop_delays(deployment: Deployment) -> None:
    """Land every poll, and one of a trip that is marked."""
    lines = []
    for day in ServiceWeek.parse(WEEK).days:
        for run, second, latitude in polls():
            bus = f"b{run.hour}-{run.direction}-{run.bus}"
            trip = {"trip_id": run.trip, "direction_id": run.direction}
            vehicle = position(bus, f"{day}T{clock(second)}", latitude, WEST, trip=trip)
            lines.append(json.dumps({"vehicle": vehicle}))
    marked = {"trip": {"trip_id": MARKS["trip_id"], "direction_id": 0}, "vehicle": {"id": "x"}}
    lines.append(json.dumps({"vehicle": vehicle | marked}))
    land_lines(deployment.landing("stop_delays"), "positions.ndjson", lines)


def nearest_polls() -> pd.DataFrame:
    """Mean delay and buses of a day by hour, stop and direction, in plain Python."""
    of_stop: dict[tuple[Run, int], tuple[float, int]] = {}
    for run, second, latitude in polls():
        for number in range(1, STOPS):  # a trip's first stop says nothing
            off = abs(latitude - run.latitude(number))
            if off * 111_195 <= 80:
                of_stop[run, number] = min(of_stop.get((run, number), (1.0, 0)), (off, second))
    delays = defaultdict(list)
    for (run, number), (_, second) in of_stop.items():
        label = f"{second // 3600:02}:00", run.stop(number), f"way {run.direction}"
        delays[label].append((second - run.hour * 3600 - number * BETWEEN_S) / 60)
    true = [
        (*label, sum(minutes) / len(minutes), len(minutes)) for label, minutes in delays.items()
    ]
    return pd.DataFrame(true, columns=[*STOP_CELL, "true", "buses"]).set_index(STOP_CELL)


@feature("stop_delays", MARKS["trip_id"], RUNS[0].trip)
def delays_at_stops(deployment: Deployment, _: Path) -> Story:
    land_stop_delays(deployment)
    package, true = (yield), nearest_polls()
    table = pd.read_csv(package / "data/delay.csv").set_index(STOP_CELL)
    drawn = pd.read_csv(package / "data/passes_buses.csv").set_index(STOP_CELL).measured
    card = (package / "release_card.json").read_text()
    assert "stop_delays.zip@" in card  # the timetable is named, with its digest
    draws = {draw["table"]: draw["standard_deviation"] for draw in json.loads(card)["draws"]}
    buses = 7 * true.buses.reindex(drawn.index, fill_value=0)
    assert (drawn - buses).abs().max() <= SURE * draws["passes"]
    shown = table[table.unbiased.notna()].join(true, how="inner")
    assert len(shown) > 20
    error = (shown.unbiased - shown.true).abs()
    assert (error <= SURE * shown.unbiased_sd + 0.02).all()
    for way, late in LATE_S.items():
        one_way = shown.xs(f"way {way}", level="direction")
        # what was made, as near as a poll can tell; and what was drawn, as near as its noise can
        assert abs(one_way.true.mean() - (late + RUNS_AN_HOUR / 2) / 60) < POLL_S / 60
        deviation = np.sqrt((one_way.unbiased_sd**2).sum()) / len(one_way)
        assert abs((one_way.unbiased - one_way.true).mean()) <= SURE * deviation + 0.02


# How full buses say that they are.

FULL_BUSES = 60
# what a bus says at 10:00 and 10:30; the fuller one decides; None: nothing
SAYINGS = (
    ("EMPTY", "FEW_SEATS_AVAILABLE"),
    ("STANDING_ROOM_ONLY", "EMPTY"),
    ("NO_DATA_AVAILABLE", None),
    ("5", None),
)
FULLEST = (2, 3, 0, 5)


@feature("occupancy")
def full_buses(deployment: Deployment, _: Path) -> Story:
    lines = []
    for day in ServiceWeek.parse(WEEK).days:
        for bus in range(FULL_BUSES):
            for minute, word in zip((0, 30), SAYINGS[bus % len(SAYINGS)], strict=True):
                full = {} if word is None else {"occupancy_status": word}
                own = position(f"b{bus}", f"{day}T10:{minute:02}:{bus % 60:02}", *PLACE, **full)
                lines.append(json.dumps({"vehicle": own}))
    land_lines(deployment.landing("occupancy"), "positions.ndjson", lines)
    package = yield
    said = Counter(FULLEST[bus % len(FULLEST)] for bus in range(FULL_BUSES))
    table = pd.read_csv(package / "data/full.csv").set_index(["slot", "cell"])
    cell = h3.latlng_to_cell(*PLACE, 7)
    for number in (2, 3, 5):
        true = sum(count for fullest, count in said.items() if fullest >= number)
        own = table[table.occupancy_class == number].unbiased
        deviation = table.unbiased_sd.iloc[0]
        assert abs(own["10:00", cell] - true) < SURE * deviation
        assert own.drop(("10:00", cell)).max() < SURE * deviation < true / 2


# Headways around the stops of Austin, from the real files.

AUSTIN_DAYS = ("2016-11-24", "2016-11-25", "2016-11-26", "2016-11-27")


@feature("austin_headways", week="2016-W47", is_real=True, is_long=True)
def headways_around_the_stops_of_austin(deployment: Deployment, real: Path) -> Story:
    folder = real / "capmetro_bus_gps"
    add(deployment, "austin_headways")
    stops = gzip.decompress((folder / "stops_20160821_20170121.csv.gz").read_bytes())
    (deployment.include / "domains/austin_stops.csv").write_bytes(stops)
    files = [folder / f"{day}.csv" for day in AUSTIN_DAYS]
    land_files(deployment.landing("austin_headways", "2016-W47"), *files)
    package = yield
    # buses of each hour and cell, a bus once a day, by pandas and h3
    rows = pd.concat(pd.read_csv(file, dtype={"vehicle_id": str}) for file in files)
    rows = rows.dropna(subset=["vehicle_id", "timestamp", "speed", "latitude", "longitude"])
    local = pd.to_datetime(rows.timestamp.str[:19])
    rows["day"], rows["slot"] = local.dt.date, local.dt.strftime("%H:00")
    rows = rows[(rows.speed * 3.6 <= 130) & rows.day.astype(str).isin(AUSTIN_DAYS)]
    pairs = zip(rows.latitude, rows.longitude, strict=True)
    rows["cell"] = [h3.latlng_to_cell(*pair, 8) for pair in pairs]
    once = rows.drop_duplicates(["vehicle_id", "day", "slot", "cell"])
    minutes = 60 * len(AUSTIN_DAYS)
    table = pd.read_csv(package / "data/headway.csv").set_index(["slot", "cell"])
    true = once.groupby(["slot", "cell"]).size().reindex(table.index, fill_value=0)
    buses = pd.read_csv(package / "data/headway_buses.csv").set_index(["slot", "cell"])
    drawn, deviation = buses.measured, buses.unbiased_sd.iloc[0] * len(AUSTIN_DAYS)
    # no bus-day has 240 hours and cells: what is drawn is the truth and its noise
    assert np.abs(drawn - true).max() < SURE * deviation
    shown = table[table.value.notna()]
    assert 100 < len(shown) < len(table)
    assert (shown.value - minutes / drawn[shown.index]).abs().max() < 0.01
    observed = minutes / true[shown.index]
    holds = (shown.low_95 <= observed) & (observed <= shown.high_95)
    assert holds.mean() > 0.85  # those that are shown were chosen by their noise
    every = (minutes / true.replace(0, np.nan)).fillna(np.inf)
    high = table.high_95.fillna(np.inf)
    held = ((table.low_95 <= every) & (every <= high)).mean()
    assert held > 0.93  # shown and withheld together


# Delays in Surat, by place and by route, from the real files.

SURAT_WEEK, CLAMP = "2021-W52", 20
ROUTES = {"12D": "12", "12U": "12", "11D": "11", "11U": "11", "136U": "136", "17R": "17"}
DIRECTIONS = {"UP": "up", "DN": "down"}
ROUTE_CELL = ["slot", "route", "direction"]


def surat_delays(file: Path, cell: list[str]) -> pd.DataFrame:
    """Mean delay and bus-days of each cell, of the bus's own means, by pandas and h3."""
    rows = pd.read_csv(file, dtype=str)
    rows = rows.rename(columns={"location/coordinates/0": "lon", "location/coordinates/1": "lat"})
    rows = rows[rows.lat.notna() & rows.license_plate.notna() & (rows.speed.astype(float) <= 130)]
    rows["slot"] = rows.observationDateTime.str[11:13] + ":00"
    rows["route"] = rows.route_id.map(ROUTES)
    rows["direction"] = rows.trip_direction.map(DIRECTIONS)
    pairs = zip(rows.lat.astype(float), rows.lon.astype(float), strict=True)
    rows["cell"] = [h3.latlng_to_cell(*pair, 7) for pair in pairs]
    rows["delay"] = pd.to_numeric(rows.trip_delay)
    rows = rows.dropna(subset=cell).drop_duplicates(
        ["license_plate", "observationDateTime", "lat", "lon", "speed", "delay", *cell]
    )
    of_bus = rows.groupby([*cell, "license_plate"]).delay.mean() / 60
    kept = of_bus.clip(-CLAMP, CLAMP).dropna().groupby(cell)
    return pd.DataFrame({"true": kept.mean(), "buses": kept.size()})


def shown_delays(package: Path, true: pd.DataFrame, of_buses: int = 1) -> pd.DataFrame:
    """The delays of so many buses that are shown: none is further off than its error."""
    table = pd.read_csv(package / "data/delay.csv", dtype={"route": str})
    shown = table.set_index([*true.index.names])[table.unbiased.notna().to_numpy()].join(true)
    shown = shown[~(shown.buses < of_buses)]
    error = (shown.unbiased - shown.true).abs()
    assert (error <= SURE * shown.unbiased_sd + 0.06).all()
    return shown


@feature("itms_delays", week=SURAT_WEEK, is_real=True, is_long=True)
def delays_in_surat(deployment: Deployment, real: Path) -> Story:
    source = real / "surat_itms/suratITMS.csv"
    land_files(deployment.landing("itms", SURAT_WEEK), source)
    deployment.edit("itms_delays", "missing_day: refuse", "missing_day: publish_with_gap")
    deployment.edit("itms_delays", 'rho: "1/10"', 'rho: "4000"')  # next to no noise
    deployment.edit("itms_delays", 'rho: "38/100"', 'rho: "12000"')
    deployment.edit("itms_delays", 'rho: "1368"', 'rho: "300000000"')
    busy = shown_delays((yield), surat_delays(source, ["slot", "cell"]), of_buses=5)
    assert len(busy) > 10
    assert busy.true.abs().max() > 2


@feature("surat_routes", week=SURAT_WEEK, is_real=True, is_long=True)
def delays_of_routes_in_surat(deployment: Deployment, real: Path) -> Story:
    source = real / "surat_itms/suratITMS.csv"
    land_files(deployment.landing("surat_routes", SURAT_WEEK), source)
    package, true = (yield), surat_delays(source, ROUTE_CELL)
    assert len(shown_delays(package, true)) >= 3
    drawn = pd.read_csv(package / "data/headway_buses.csv", dtype={"route": str})
    drawn = drawn.set_index(ROUTE_CELL).measured
    assert len(drawn) == 3 * len(set(ROUTES.values())) * len(DIRECTIONS)
    buses = true.buses.reindex(drawn.index, fill_value=0)
    assert np.abs(drawn - buses).max() <= 2  # every bus of these states a delay
    assert not (package / "cells.geojson").exists()  # no place, no map


# Routes and directions of archived positions, by hexagon.

ROUTE_BUSES = 40


@feature("surat_routes", *MARKS.values())
def routes_of_positions(deployment: Deployment, _: Path) -> Story:
    """Positions of buses on two routes on every day, nested and by path; one is marked."""
    for old, new in (
        ("feed: itms", "feed: gtfs_vehicle_positions"),
        ("  delay: ", "  # delay: "),
        (
            "{by: [slot, route, direction], measure: headway",
            "{by: [slot, cell, route, direction], measure: headway",
        ),
        ('delay/sum: "1/2", delay/buses: "1/4", headway/buses: "1/4"', 'headway/buses: "1"'),
        ('rho: "400"      #', 'rho: "10"       #'),
    ):
        deployment.edit("surat_routes", old, new)
    write_list(deployment, "surat_routes", {"r0": "first", "r1": "second"})
    write_list(deployment, "surat_directions", {"0": "out", "1": "back"})
    lines = []
    for number, day in enumerate(ServiceWeek.parse(WEEK).days):
        for bus in range(ROUTE_BUSES):
            trip = {"trip_id": f"t{bus}", "route_id": f"r{bus % 2}", "direction_id": bus % 4 // 2}
            if number == bus == 0:
                trip |= MARKS
            vehicle = position(f"b{bus}", f"{day}T10:00:{bus:02}", *PLACE, trip=trip)
            paths = {f"vehicle.trip.{name}": value for name, value in trip.items()}
            paths |= {f"vehicle.position.{name}": v for name, v in vehicle["position"].items()}
            paths |= {"vehicle.vehicle.id": f"b{bus}", "vehicle.timestamp": vehicle["timestamp"]}
            lines.append(json.dumps({"vehicle": vehicle} if bus % 3 else paths))
    land_lines(deployment.landing("surat_routes"), "positions.ndjson", lines)
    package = yield
    drawn = pd.read_csv(package / "data/headway_buses.csv")
    here = drawn[(drawn.slot == "10:00") & (drawn.cell == h3.latlng_to_cell(*PLACE, 7))]
    assert len(here) == 4
    deviation = 0.8  # of twelve cells of a bus-day, at rho 10
    for row in here.itertuples():
        is_marked = (row.route, row.direction) == ("first", "out")
        assert abs(row.measured - (7 * ROUTE_BUSES // 4 - is_marked)) <= SURE * deviation
    assert (package / "cells.geojson").is_file()
