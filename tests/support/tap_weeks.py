"""Weeks of taps and door counters by feature: what is landed, and what stands in the tables."""

import csv
import gzip
import json
import random
import shutil
from pathlib import Path

import frictionless
import pandas as pd
import pytest
from console import refuses, tells
from feature_weeks import SURE, Story, add, feature, land_lines, write_list
from small_deployment import WEEK, Deployment
from sube_day import DAY, grid, place_of
from sube_day import WEEK as SUBE_WEEK
from worked_examples import run_examples

from turnstile.programme.domain.public_domain import region_of
from turnstile.publishing.carried.sums import Package
from turnstile.publishing.contents_check import unknown_contents
from turnstile.service_calendar import ServiceWeek


def is_valid(file: Path, schema: Path) -> bool:
    with frictionless.system.use_context(trusted=True):
        table_schema = frictionless.Schema(str(schema))
        return bool(frictionless.Resource(path=str(file), schema=table_schema).validate().valid)


def private_bytes(deployment: Deployment) -> bytes:
    files = (deployment.home / "private").rglob("*.parquet")
    return b"".join(path.read_bytes() for path in files)


def append(file: Path, rows: list[list[str]]) -> None:
    with file.open("a", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def other_estimate_is_found(
    package: Path, deployment: Deployment, table: str, old: str, new: str
) -> None:
    """Negative control of `estimates verify`: another number in one table of estimates."""
    copy = deployment.home.parent / "copy/public" / Path(*package.parts[-3:])
    shutil.copytree(package, copy)
    path = copy / f"data/{table}.csv"
    if path.is_file():
        path.write_text(path.read_text().replace(old, new, 1))
    else:
        path = path.with_suffix(".csv.gz")
        text = gzip.decompress(path.read_bytes()).decode()
        path.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))
    refuses("", "estimates", "verify", copy, code=4)


# Door counters, as an agency would: TIDES in, TIDES out.

EVENT_MARKS = tuple(f"CANARY{number:02d}Q" for number in range(15))  # one for each column
CLOCK = ("--zone", "America/Los_Angeles", "--accept-no-gain", "a sample")
PROTECT = ("--protect", "day")
LISTS = """  lists:
    route: domains/apc_routes.csv
    boarding_visit: domains/apc_visits.csv
    alighting_visit: domains/apc_visits.csv
  outside: drop"""
TABLES = """  by_route: {by: [route, tap_on_location], trips_at_most: 1}
  on_visits: {by: [boarding_visit]}
  off_visits: {by: [alighting_visit]}
  alightings:"""


def make_apc(deployment: Deployment) -> None:
    """Let `new` make a programme of a sample, and add tables by route and by stop visit."""
    tells("sample", "apc", "--weeks", WEEK, "--rows", 6000)
    feed = deployment.home / "apc_gtfs.zip"
    tells(
        "new",
        "apc",
        "--from",
        *sorted(deployment.landing("apc").glob("*.csv")),
        "--gtfs",
        feed,
        *CLOCK,
    )
    for of, name in (("route", "routes"), ("stop_visit", "visits")):
        out = deployment.include / f"domains/apc_{name}.csv"
        tells("domain", "lists", feed, "--of", of, "--out", out)
    shares = 'alightings: "1/8", by_route: "1/8", on_visits: "1/8", off_visits: "1/8"'
    for old, new in (
        ("  outside: drop", LISTS),
        ("  alightings:", TABLES),
        ("  landing:", "  columns: {route: trip_id_scheduled}\n  landing:"),
        ('alightings: "1/2"', shares),
        ('epsilon: "0.666666"', 'epsilon: "8"'),
        ('epsilon: "2"', 'epsilon: "24"'),
    ):
        deployment.edit("apc", old, new)


@feature("apc", *EVENT_MARKS, files="apc", is_real=True)
def door_counters(deployment: Deployment, real: Path) -> Story:
    """Each column gets a mark in a record of its own.

    Sums without bias lie within six standard deviations of the raw ones; rows are matched.
    """
    schemas = real / "tides_1.0"
    files = sorted(deployment.landing("apc").glob("*.csv"))
    assert is_valid(files[0], schemas / "passenger_events.schema.json")
    raw = pd.concat(pd.read_csv(file) for file in files)
    header, first, *_ = csv.reader(files[0].read_text().splitlines())
    assert len(header) == len(EVENT_MARKS)
    planted = [[f"planted-{n}", *first[1:]] for n in range(len(header))]
    for place, mark in enumerate(EVENT_MARKS):
        planted[place][place] = mark
    append(files[0], planted)
    package = yield
    assert unknown_contents(package) == ()
    private = private_bytes(deployment)
    assert any(mark.encode() in private for mark in EVENT_MARKS)
    for name in ("station_activities", "stop_visits"):
        assert is_valid(package / f"tides/{name}.csv", schemas / f"{name}.schema.json")
    assert "one boarding and one alighting" in (package / "release_card.md").read_text()
    planted = len(EVENT_MARKS)  # on Monday, at the first event's stop
    errors = pd.read_csv(package / "tides/stop_visits_errors.csv")
    for side, word in (("boarding_1", "boarded"), ("alighting_1", "alighted")):
        true = raw[raw.event_type == f"Passenger {word}"].event_count.sum()
        deviation = (errors[f"{side}_standard_deviation"] ** 2).sum() ** 0.5
        assert abs(errors[f"{side}_reconciled"].sum() - true) < SURE * deviation + planted
    visits = pd.read_csv(package / "tides/stop_visits.csv")
    stops = [f"s{n}" for n in range(6)]
    assert visits.stop_id[visits.trip_id_performed == "t0-10"].tolist()[:6] == stops
    ride = pd.read_csv(package / "gtfs_ride/board_alight.txt")
    assert ride.boardings.sum() == visits.boarding_1.sum()
    assert {*ride.record_use, *ride.source} == {0, 3}
    total = Package(package).total("visit", lambda row: row["tap"] == "on", "unbiased")
    assert total.value == pytest.approx(errors.boarding_1_reconciled.sum())
    both = Package(package).total("visit", column="unbiased")
    assert both.value == pytest.approx(total.value + errors.alighting_1_reconciled.sum())
    for path in ("README.md", "docs/GUIDE.md", "datapackage.json", "../../index.html"):
        said = (package / path).read_text().lower()
        assert "boardings and alightings are counted apart" in said
        assert "every trip is in both" not in said
    routes = pd.read_csv(package / "data/by_route.csv")
    by_stop = routes[routes.route.astype(str) == "1"].groupby("location").unbiased.sum()
    assert by_stop[[f"Stop {n}" for n in range(6)]].mean() > 5 * by_stop.iloc[6:].abs().mean()


# Categories of taps: a value that no public list has reaches no output.

# category: the column of TIDES that stands for it, and what its public list knows
COLUMNS = {
    "route": ("pattern_id", [f"p{n}" for n in range(12)]),
    "direction": ("fare_period", ["peak"]),
    "fare_product": ("fare_product", ["stored value"]),
    "vehicle_trip": ("trip_id_scheduled", [f"t{n}" for n in range(300)]),
}
CATEGORY_MARKS = {name: f"CANARY{number}Q" for number, name in enumerate(COLUMNS)}


def make_tides(deployment: Deployment) -> None:
    """Let `new` make a programme of a sample, and add a table by each category."""
    tells("sample", "tides", "--weeks", WEEK, "--rows", 2000)
    files = sorted(deployment.landing("tides").glob("*.csv"))
    tells(
        "new",
        "tides",
        "--from",
        *files,
        "--gtfs",
        deployment.home / "tides_gtfs.zip",
        *CLOCK,
        *PROTECT,
    )
    for name, (_, values) in COLUMNS.items():
        write_list(deployment, name, {value: f"label of {value}" for value in values})
    lists = ", ".join(f"{name}: domains/{name}.csv" for name in COLUMNS)
    columns = ", ".join(f"{name}: {column}" for name, (column, _) in COLUMNS.items())
    tables = "".join(f"  by_{name}: {{by: [{name}]}}\n" for name in COLUMNS)
    crossed = "  crossed: {by: [direction, tap_on_slot], trips_at_most: 4, per_cell_at_most: 4}\n"
    shares = "".join(f'by_{name}: "1/20", ' for name in COLUMNS)
    for old, new in (
        ("  outside:", f"  lists: {{{lists}}}\n  outside:"),
        ("  landing:", f"  columns: {{{columns}}}\n  landing:"),
        ("  on_time: ", f"{tables}{crossed}  on_time: "),
        ('on_time: "1/4"', f'{shares}crossed: "1/20", on_time: "1/8"'),
        ('on_location: "1/4"', 'on_location: "1/8"'),
    ):
        deployment.edit("tides", old, new)


@feature("tides", *CATEGORY_MARKS.values(), files="tides")
def categories_of_taps(deployment: Deployment, _: Path) -> Story:
    """Add a record for each category, of a card of its own, that names what no list has."""
    file = min(deployment.landing("tides").glob("*.csv"))
    with file.open(newline="") as stream:
        header, first, *_rows = csv.reader(stream)
    rows = []
    for name, (column, _values) in COLUMNS.items():
        fields = dict(zip(header, first, strict=True)) | {"fare_action": "Enter"}
        fields |= {"transaction_id": f"x-{name}", "token_id": f"x-{name}"}
        rows.append([*(fields | {column: CATEGORY_MARKS[name]}).values()])
    append(file, rows)
    yield
    private = private_bytes(deployment)
    assert all(mark.encode() in private for mark in CATEGORY_MARKS.values())


# The real SUBE day as TIDES 1.0, in and out: by line, and as station_activities.

MODES = {"COL": "bus", "SUB": "subway", "TRE": "train"}
ACTIONS = {"CHECK IN": "Enter", "CHECK OUT": "Exit", "": "Enter"}
LINE_MARK = "CANARY4711LINE"  # of the first record: no list has such a line
TIDES_COLUMNS = (
    *("transaction_id", "service_date", "event_timestamp", "location_ping_id", "amount"),
    *("currency_type", "fare_action", "trip_id_performed", "trip_id_scheduled", "pattern_id"),
    *("trip_stop_sequence", "scheduled_stop_sequence", "vehicle_id", "device_id", "fare_id"),
    *("stop_id", "num_riders", "fare_media_id", "rider_category", "fare_product"),
    *("fare_period", "fare_capped", "token_id", "balance"),
)


def as_tides(source: Path) -> pd.DataFrame:
    """The day as fare transactions: a tap with a card, a place and an action of TIDES."""
    made = []
    with source.open(newline="") as given:
        for row in csv.DictReader(given):
            action = ACTIONS.get(row["tipo_trx_tren"])
            if action and row["id_tarjeta"] and row["lat"] and row["lon"]:
                made.append(
                    {
                        "transaction_id": row["id"],
                        "service_date": DAY,
                        "event_timestamp": f"{DAY}T{int(row['hora']):02}:00:00-03:00",
                        "fare_action": action,
                        "amount": "0",
                        "fare_capped": "false",
                        "pattern_id": row["id_linea"],
                        "stop_id": place_of(row["lat"], row["lon"]),
                        "token_id": row["id_tarjeta"],
                        "mode": MODES[row["modo"]],
                    }
                )
    rows = pd.DataFrame(made, columns=[*TIDES_COLUMNS, "mode"])
    rows.loc[0, "pattern_id"] = LINE_MARK
    return rows


@feature("sube_tides", LINE_MARK, week=SUBE_WEEK, is_real=True, is_long=True)
def lines_of_sube(deployment: Deployment, real: Path) -> Story:
    """Groups of lines are public, whether any of them ever ran or not."""
    schemas = real / "tides_1.0"
    add(deployment, "sube_tides")
    (deployment.include / "domains/sube_grid.csv").write_text(grid())
    group = {str(n): f"{n // 100 * 100} to {n // 100 * 100 + 99}" for n in range(1, 600)}
    write_list(deployment, "sube_lines", group)
    folder = deployment.landing("sube_tides", SUBE_WEEK)
    folder.mkdir(parents=True)
    rows = as_tides(real / f"sube_taps/{DAY}_trx.csv")
    rows.to_csv(folder / f"{DAY}.csv", index=False)
    bare = deployment.home / "landing/bare.csv"
    rows[list(TIDES_COLUMNS)][::10].to_csv(bare, index=False)  # all are made alike
    assert is_valid(bare, schemas / "fare_transactions.schema.json")
    package = yield
    activities = pd.read_csv(package / "tides/station_activities.csv", dtype=str)
    few = deployment.home / "station_activities.csv"
    activities[::10].to_csv(few, index=False)  # all are made alike
    schema = schemas / "station_activities.schema.json"
    assert is_valid(few, schema)
    assert not activities.duplicated(json.loads(schema.read_bytes())["primaryKey"]).any()
    table = pd.read_csv(package / "data/lines.csv")
    day = table[table.service_date == DAY]
    number = pd.to_numeric(rows[rows.fare_action == "Enter"].pattern_id, errors="coerce")
    busiest = int((number // 100 * 100).value_counts().index[0])
    of_lines = day[day.route != "UNKNOWN"].groupby("route")["unbiased"].sum()
    assert of_lines.idxmax() == f"{busiest} to {busiest + 99}"
    assert LINE_MARK.encode() in private_bytes(deployment)


# The real stop list of Sydney Trains is the public domain: `new` from taps at its platforms.

CARDS, CENTRAL = 300, "Central Station"


@feature("sydney", is_real=True, is_long=True)
def platforms_of_sydney(deployment: Deployment, real: Path) -> Story:
    """Every card taps on at a platform of Central, and at some platform."""
    source = real / "nsw/stops.txt"
    stops = pd.read_csv(source, dtype=str).fillna("")
    chance = random.Random(4)  # noqa: S311 - made-up taps
    platforms = stops[stops.parent_station != ""]
    central = stops[stops.stop_name == CENTRAL].stop_id.iloc[0]
    platform_ids = platforms[platforms.parent_station == central].stop_id.tolist()
    every = [*platforms.stop_id]
    lines = ["card_id,tapped_at,place"]
    for day in ServiceWeek.parse(WEEK).days:
        for card in range(CARDS):
            lines.append(f"c{card},{day} 08:15:00,{chance.choice(platform_ids)}")
            lines.append(f"c{card},{day} 17:40:00,{chance.choice(every)}")
    land_lines(deployment.landing("sydney"), "taps.csv", lines)
    public = (
        "--gtfs",
        source,
        "--mode",
        "train",
        "--zone",
        "Australia/Sydney",
        "--accept-no-gain",
        "a sample",
        "--all-tap-on",
        *PROTECT,
    )
    tells("new", "sydney", "--from", deployment.landing("sydney") / "taps.csv", *public)
    package = yield
    table = pd.read_csv(package / "data/location.csv")
    table = table[table.tap == "on"]
    names = set(table.location) - {"UNKNOWN"}
    stations = set(stops[stops.stop_id.isin(set(stops.parent_station) - {""})].stop_name)
    assert len(names & stations) > 0.9 * len(stations) > 100
    # a card counts at most four trips a day, here two: one of them at Central
    central = table[table.location == CENTRAL].unbiased
    assert (central - CARDS).abs().max() < 0.3 * CARDS
    assert table[table.location == "UNKNOWN"].unbiased.mean() < 0.1 * CARDS


# Flows, and cells of one tap beside one marginal of the other.

ENDS = ("origin", "destination")


@feature("opal_flows", files="opal")
def flows(deployment: Deployment, _: Path) -> Story:
    package = yield
    for path in package.glob("data/*.csv*"):
        columns = set(pd.read_csv(path, nrows=1).columns)
        if {"location", "slot"} & columns:
            assert not any(name.startswith("destination") for name in columns)
    zones = pd.read_csv(package / "data/flows_of_zones.csv")
    regions = pd.read_csv(package / "data/flows_of_regions.csv")
    keys = ["mode", "day_period", *(f"{end}_region" for end in ENDS)]
    for end in ENDS:
        zones[f"{end}_region"] = zones[f"{end}_zone"].map(region_of)
    summed = zones.groupby(keys)["unbiased"].sum()
    assert (summed - regions.set_index(keys)["unbiased"]).abs().max() < 5  # rounded tenths
    assert zones["is_flow"].any()
    listed = zones[zones["is_flow"]].merge(regions, on=keys, suffixes=("", "_of_regions"))
    assert listed["is_flow_of_regions"].all()
    assert (zones["value"] >= 0).all()
    daily = pd.read_csv(package / "data/flows_of_zones_daily.csv")
    # sums of any cells have the declared noise
    total = Package(package).total(
        "flows_of_zones_daily", lambda row: row["mode"] == "train", "measured"
    )
    deviation = Package(package).draws["flows_of_zones", "count"]["standard_deviation"]
    assert total.standard_deviation == pytest.approx(deviation * total.cells**0.5)
    assert total.value == daily[daily["mode"] == "train"]["measured"].sum()
    other_estimate_is_found(package, deployment, "flows_of_zones", ",true,", ",false,")
    assert run_examples(package) == 7


def put_lone_marginal(deployment: Deployment, cells: str, lone: str) -> None:
    path = deployment.include / "programmes/opal.yaml"
    before, _, after = path.read_text().partition("tables:")
    mechanism, caps = after[after.index("mechanism:") :].split("caps:")
    tables = f"tables:\n  cells: {{by: {cells}}}\n  lone: {{by: {lone}}}\n"
    split = '  split: {cells: "1/2", lone: "1/2"}\n'
    path.write_text(f"{before}{tables}{mechanism[: mechanism.index('  split:')]}{split}caps:{caps}")


@feature("opal", files="opal", is_long=True)
def cells_of_tap_ons_beside_times_of_tap_offs(deployment: Deployment, _: Path) -> Story:
    """Of one mode, which rows do not name and shapes do."""
    put_lone_marginal(deployment, "[tap_on_slot, tap_on_location]", "[tap_off_slot]")
    deployment.edit("opal", "modes: [bus, ferry, light_rail, train]", "modes: [train]")
    for path in deployment.landing("opal").iterdir():
        header, *rows = path.read_text().splitlines(keepends=True)
        path.write_text("".join([header, *(row for row in rows if ",train," in row)]))
    package = yield
    other_estimate_is_found(package, deployment, "location_slot", ",0,", ",1,")
    on = pd.read_csv(package / "data/location.csv").query("tap == 'on'")
    assert "mode" not in on
    sums = on.groupby("location")["value"].sum().drop("UNKNOWN")
    file = package / "cells.geojson"
    shapes = [shape["properties"] for shape in json.loads(file.read_bytes())["features"]]
    assert {shape["location"]: shape["value"] for shape in shapes} == pytest.approx(dict(sums))
    asked = ("--table", "location", "--column", "value", "--h3", "6")
    regions = tells("package", "regions", package, *asked)
    cells = dict(line.split(",")[:2] for line in regions.splitlines()[1:])
    assert cells.pop("OUTSIDE") == "7"  # UNKNOWN on each day
    assert sum(map(int, cells.values())) == 7 * len(sums)
    index = (package.parents[1] / "explore/index.js").read_text()
    places = json.loads(index[index.index(",") + 1 : index.rindex(")")])["places"]
    assert {len(place) for place in places} == {4}  # each has its position
    assert unknown_contents(package) == ()
    file.write_text(file.read_text().replace('"value":', '"value":1', 1))
    assert any("is not that of its table" in said for said in unknown_contents(package))


@feature("opal", files="opal")
def cells_of_tap_offs_beside_places_of_tap_ons(deployment: Deployment, _: Path) -> Story:
    put_lone_marginal(deployment, "[tap_off_slot, tap_off_location]", "[tap_on_location]")
    other_estimate_is_found((yield), deployment, "location_slot", ",0,", ",1,")
