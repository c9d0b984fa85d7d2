"""A week of door counters through the product, as an agency would: TIDES in, TIDES out."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import frictionless
import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

from turnstile.programme.loading import load_programme
from turnstile.publishing.carried.sums import Package
from turnstile.publishing.contents_check import unknown_contents

Cli = Callable[..., int]
ROWS = 6000
LISTS = """  lists:
    route: domains/apc_routes.csv
    boarding_visit: domains/apc_visits.csv
    alighting_visit: domains/apc_visits.csv
  outside: drop"""
TABLES = """  by_route: {by: [route, tap_on_location], trips_at_most: 1}
  on_visits: {by: [boarding_visit]}
  off_visits: {by: [alighting_visit]}
  alightings:"""


def is_valid(file: Path, schema: Path) -> bool:
    with frictionless.system.use_context(trusted=True):
        own = frictionless.Schema(str(schema))
        return bool(frictionless.Resource(path=str(file), schema=own).validate().valid)


def plant(file: Path) -> list[str]:
    """Put a mark into each column, each in a record of its own."""
    header, first, *_ = csv.reader(file.read_text().splitlines())
    marks = [f"CANARY{number:02d}Q" for number in range(len(header))]
    with file.open("a", newline="") as stream:
        for place, mark in enumerate(marks):
            fields = [f"planted-{place}", *first[1:]]
            fields[place] = mark
            csv.writer(stream, lineterminator="\n").writerow(fields)
    return marks


@pytest.fixture
def apc(deployment: Deployment, turnstile: Cli) -> Deployment:
    """A week of events, and a programme by `new` with tables by route and by stop visit."""
    assert turnstile("sample", "apc", "--weeks", WEEK, "--rows", ROWS) == 0
    feed = deployment.home / "apc_gtfs.zip"
    files = sorted(deployment.landing("apc").glob("*.csv"))
    assert turnstile("new", "apc", "--from", *files, "--gtfs", feed) == 0
    for of, name in (("route", "routes"), ("stop_visit", "visits")):
        out = deployment.include / f"domains/apc_{name}.csv"
        assert turnstile("domain", "lists", feed, "--of", of, "--out", out) == 0
    deployment.edit("apc", "  outside: drop", LISTS)
    deployment.edit("apc", "  alightings:", TABLES)
    deployment.edit("apc", "  landing:", "  columns: {route: trip_id_scheduled}\n  landing:")
    deployment.edit(
        "apc",
        'alightings: "1/2"',
        'alightings: "1/8", by_route: "1/8", on_visits: "1/8", off_visits: "1/8"',
    )
    deployment.edit("apc", 'epsilon: "1"', 'epsilon: "8"')
    deployment.edit("apc", 'epsilon: "2"', 'epsilon: "8"')
    return deployment


def test_a_week_of_door_counters_is_published_as_tides(
    apc: Deployment, turnstile: Cli, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas = shared_data / "tides_1.0"
    files = sorted(apc.landing("apc").glob("*.csv"))
    assert is_valid(files[0], schemas / "passenger_events.schema.json")
    raw = pd.concat(pd.read_csv(file) for file in files)
    marks = plant(files[0])
    assert len(marks) == 15
    assert turnstile("check", "apc") == 0
    assert turnstile("run", "apc", "--week", WEEK) == 0
    package = apc.public / "apc" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    assert unknown_contents(package) == ()
    said = capsys.readouterr()
    public = b"".join(path.read_bytes() for path in package.rglob("*") if path.is_file())
    seen = public + said.out.encode() + said.err.encode()
    assert [mark for mark in marks if mark.encode() in seen] == []
    private = b"".join(p.read_bytes() for p in (apc.home / "private").rglob("*") if p.is_file())
    assert any(mark.encode() in private for mark in marks)
    for name in ("station_activities", "stop_visits"):
        assert is_valid(package / f"tides/{name}.csv", schemas / f"{name}.schema.json")
    assert "one boarding and one alighting" in (package / "release_card.md").read_text()
    _numbers_are_those_of_the_files(package, raw)


def _numbers_are_those_of_the_files(package: Path, raw: pd.DataFrame) -> None:
    """Sums without bias lie within six standard deviations of the raw ones; rows are matched."""
    planted = 15  # on Monday, at the first event's stop
    for side, word in (("boarding_1", "boarded"), ("alighting_1", "alighted")):
        errors = pd.read_csv(package / "tides/stop_visits_errors.csv")
        true = raw[raw.event_type == f"Passenger {word}"].event_count.sum()
        deviation = (errors[f"{side}_standard_deviation"] ** 2).sum() ** 0.5
        assert abs(errors[f"{side}_reconciled"].sum() - true) < 6 * deviation + planted
    visits = pd.read_csv(package / "tides/stop_visits.csv")
    assert visits.stop_id[visits.trip_id_performed == "t0-10"].tolist()[:6] == [
        f"s{n}" for n in range(6)
    ]
    found = Package(package).total("tables/on_visits", lambda _: True)
    assert found.value == pytest.approx(errors.boarding_1_reconciled.sum())
    routes = pd.read_csv(package / "tables/by_route.csv")
    own = routes[routes.route.astype(str) == "1"].groupby("tap_on_location").reconciled.sum()
    assert own[[f"Stop {n}" for n in range(6)]].mean() > 5 * own.iloc[6:].abs().mean()


def test_a_ride_pays_once_for_each_end_and_nothing_coarser_is_promised(
    apc: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_programme("apc", apc.include).source.feed.names_nobody
    assert turnstile("plan", "apc", "--week", WEEK) == 0
    said = capsys.readouterr().out
    loss = {words[0]: words[1] for line in said.splitlines() if len(words := line.split()) > 4}
    assert loss["trip"] == "8"
    assert loss["card_day"] == loss["card"] == "infinite"
    assert "Records name nobody" in said


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("outside: drop", "outside: unknown", "domain.outside"),
        ("trip: {contributes: 1}", "card_day: {trips_at_most: 4}", "units.card_day"),
        ("{by: [boarding_visit]}", "{by: [route]}", "tables.on_visits.by"),
        ("  missing_day:", "  without_card: own_unit\n  missing_day:", "source.without_card"),
        ("tides_passenger_events", "tides_fare_transactions", "tables.on_visits.by"),
    ],
)
@pytest.mark.usefixtures("apc")
def test_what_events_cannot_tell_is_refused(
    check_refuses: Callable[..., None], old: str, new: str, field: str
) -> None:
    check_refuses("apc", old, new, field)
