"""Vehicles by route and direction: Surat's delays beside pandas, archived positions with marks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import h3
import numpy as np
import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

from turnstile.service_calendar import ServiceWeek

Cli = Callable[..., int]
PROGRAMMES = Path(__file__).parent / "programmes"
SURAT_WEEK, CLAMP, SURE = "2021-W52", 20, 6
ROUTES = {"12D": "12", "12U": "12", "11D": "11", "11U": "11", "136U": "136", "17R": "17"}
DIRECTIONS = {"UP": "up", "DN": "down"}
PLACE = (21.17, 72.83)
MARKS = {"route_id": "CANARYROUTE", "direction_id": "CANARYSIDE", "trip_id": "CANARYTRIP"}
BUSES = 40


def write_list(include: Path, name: str, values: dict[str, str]) -> None:
    """Write a public list."""
    lines = ["value,label", *(f"{value},{label}" for value, label in values.items())]
    (include / f"domains/{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def surat(deployment: Deployment) -> Deployment:
    """The programme of Surat's routes, with lists of six of them."""
    shutil.copy(PROGRAMMES / "surat_routes.yaml", deployment.include / "programmes")
    write_list(deployment.include, "surat_routes", ROUTES)
    write_list(deployment.include, "surat_directions", DIRECTIONS)
    return deployment


def surat_delays(file: Path) -> pd.DataFrame:
    """Mean delay and bus-days of each hour, route and direction, of the bus's means, by pandas."""
    rows = pd.read_csv(file, dtype=str)
    rows = rows.rename(columns={"location/coordinates/0": "lon", "location/coordinates/1": "lat"})
    rows["slot"] = rows.observationDateTime.str[11:13] + ":00"
    rows["route"] = rows.route_id.map(ROUTES)
    rows["direction"] = rows.trip_direction.map(DIRECTIONS)
    rows = rows.dropna(subset=["lat", "license_plate", "route", "direction"])
    rows = rows[rows.speed.astype(float) <= 130]
    rows["delay"] = pd.to_numeric(rows.trip_delay)
    keys = ["observationDateTime", "lat", "lon", "speed", "delay", "route", "direction"]
    rows = rows.drop_duplicates(["license_plate", *keys])
    cell = ["slot", "route", "direction"]
    of_bus = rows.groupby([*cell, "license_plate"]).delay.mean() / 60
    kept = of_bus.clip(-CLAMP, CLAMP).dropna().groupby(cell)
    return pd.DataFrame({"true": kept.mean(), "buses": kept.size()})


def test_delays_of_routes_in_surat(surat: Deployment, turnstile: Cli, shared_data: Path) -> None:
    source = shared_data / "surat_itms/suratITMS.csv"
    landing = surat.landing("surat_routes", SURAT_WEEK)
    landing.mkdir(parents=True)
    shutil.copyfile(source, landing / source.name)
    assert turnstile("check", "surat_routes") == 0
    assert turnstile("run", "surat_routes", "--week", SURAT_WEEK) == 0
    package = surat.public / "surat_routes" / SURAT_WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    cell = ["slot", "route", "direction"]
    true = surat_delays(source)
    drawn = pd.read_csv(package / "measurements/headway.csv", dtype={"route": str}).set_index(cell)
    assert len(drawn) == 3 * len(set(ROUTES.values())) * len(DIRECTIONS)
    buses = true.buses.reindex(drawn.index, fill_value=0)
    assert np.abs(drawn.buses - buses).max() <= 2  # every bus of these states a delay
    table = pd.read_csv(package / "tables/delay.csv", dtype={"route": str}).set_index(cell)
    shown = table[~table.is_withheld].join(true)
    assert len(shown) >= 3
    error = (shown.mean_delay_minutes - shown.true).abs()
    assert (error <= SURE * shown.standard_deviation_minutes + 0.06).all()
    assert not (package / "cells.geojson").exists()  # no place, no map


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("  lists: {route: domains/surat_routes.csv, ", "  lists: {", "tables.delay.by"),
        ("delay:   {by: [slot, route, direction]", "delay: {by: [slot, route]", "headway.by"),
        ("delay:   {by: [slot, route, direction]", "delay: {by: [route, slot]", "tables.delay.by"),
        ("delay:   {by: [slot, route, direction]", "delay: {by: [slot]", "tables.delay.by"),
        ("delay:   {by: [slot, route, direction]", "delay: {by: [slot, rout]", "tables.delay.by"),
        ("lists: {route:", "lists: {fare_product:", "domain.lists.fare_product"),
        ("domains/surat_routes.csv", "domains/none.csv", "domain.lists.route"),
    ],
)
@pytest.mark.usefixtures("surat")
def test_what_no_list_names_is_refused(
    check_refuses: Callable[..., None], old: str, new: str, field: str
) -> None:
    check_refuses("surat_routes", old, new, field)


def positions() -> list[dict[str, object]]:
    """Positions of buses on two routes on every day, nested and by path; one is marked."""
    found: list[dict[str, object]] = []
    for number, day in enumerate(ServiceWeek.parse(WEEK).days):
        for bus in range(BUSES):
            trip = {"trip_id": f"t{bus}", "route_id": f"r{bus % 2}", "direction_id": bus % 4 // 2}
            if number == bus == 0:
                trip |= MARKS
            at = f"{day}T10:00:{bus:02}+05:30"
            position = {"latitude": PLACE[0], "longitude": PLACE[1], "speed": 5.0}
            own = {"vehicle": {"id": f"b{bus}"}, "timestamp": at, "position": position}
            own["trip"] = trip
            paths = {f"vehicle.trip.{name}": value for name, value in trip.items()}
            paths |= {f"vehicle.position.{name}": value for name, value in position.items()}
            paths |= {"vehicle.vehicle.id": f"b{bus}", "vehicle.timestamp": at}
            found.append({"vehicle": own} if bus % 3 else paths)
    return found


@pytest.fixture
def fleet(surat: Deployment) -> Deployment:
    """A landed week of archived GTFS-realtime positions, by hexagon, route and direction."""
    surat.edit("surat_routes", "feed: itms", "feed: gtfs_vehicle_positions")
    surat.edit("surat_routes", "  delay: ", "  # delay: ")
    surat.edit(
        "surat_routes",
        "{by: [slot, route, direction], measure: headway",
        "{by: [slot, cell, route, direction], measure: headway",
    )
    shares = 'delay/sum: "1/2", delay/buses: "1/4", headway/buses: "1/4"'
    surat.edit("surat_routes", shares, 'headway/buses: "1"')
    surat.edit("surat_routes", 'rho: "400"      #', 'rho: "10"       #')
    write_list(surat.include, "surat_routes", {"r0": "first", "r1": "second"})
    write_list(surat.include, "surat_directions", {"0": "out", "1": "back"})
    folder = surat.landing("surat_routes")
    folder.mkdir(parents=True)
    lines = [json.dumps(one) for one in positions()]
    (folder / "positions.ndjson").write_text("\n".join(lines) + "\n")
    return surat


def seen(fleet: Deployment, said: str) -> set[str]:
    """The marks that some output holds: packages, ledger, what was printed or logged."""
    outputs = [
        path.read_bytes()
        for path in fleet.home.rglob("*")
        if path.is_file() and not {"private", "landing"} & set(path.relative_to(fleet.home).parts)
    ]
    text = b"\n".join([*outputs, said.encode()])
    return {name for name, mark in MARKS.items() if mark.encode() in text}


def test_routes_of_positions_are_counted_and_no_other_value_leaks(
    fleet: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("check", "surat_routes") == 0
    assert turnstile("run", "surat_routes", "--week", WEEK) == 0
    package = fleet.public / "surat_routes" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    drawn = pd.read_csv(package / "measurements/headway.csv")
    here = drawn[(drawn.slot == "10:00") & (drawn.cell == h3.latlng_to_cell(*PLACE, 7))]
    assert len(here) == 4
    deviation = 0.8  # of twelve cells of a bus-day, at rho 10
    for one in here.itertuples():
        is_marked = (one.route, one.direction) == ("first", "out")
        assert abs(one.buses - (7 * BUSES // 4 - is_marked)) <= SURE * deviation
    assert (package / "cells.geojson").is_file()
    said = capsys.readouterr()
    assert seen(fleet, said.out + said.err) == set()


def test_a_value_that_a_list_names_would_be_seen(
    fleet: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative control: the lists know two of the marks; a trip's id is never read."""
    mark, side = MARKS["route_id"], MARKS["direction_id"]
    write_list(fleet.include, "surat_routes", {"r0": "first", "r1": "second", mark: mark})
    write_list(fleet.include, "surat_directions", {"0": "out", "1": "back", side: side})
    assert turnstile("run", "surat_routes", "--week", WEEK) == 0
    said = capsys.readouterr()
    assert seen(fleet, said.out + said.err) == {"route_id", "direction_id"}


def test_a_file_without_routes_is_refused(
    surat: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landing = surat.landing("surat_routes")
    landing.mkdir(parents=True)
    row = f"GJ05,2016-07-25T10:00:00+05:30,10,{PLACE[0]},{PLACE[1]},60,UP"
    header = "license_plate,observationDateTime,speed,latitude,longitude,trip_delay,trip_direction"
    (landing / "x.csv").write_text(f"{header}\n{row}\n")
    assert turnstile("run", "surat_routes", "--week", WEEK) == 2
    assert "route_id" in capsys.readouterr().err
