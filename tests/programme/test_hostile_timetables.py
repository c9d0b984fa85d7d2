"""A timetable that lacks something, or says something odd, is read or refused by name."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from turnstile.assessment.attacks.timetable_feed import read_timetable
from turnstile.errors import TurnstileError
from turnstile.programme.domain.building import BuildRules, LocationName, build_domain
from turnstile.programme.domain.gtfs_lists import ListOf, NamedBy, list_csv
from turnstile.programme.domain.public_sources import read_stops
from turnstile.programme.gtfs.timetable import read_calls
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile_samples.tides import ZONE, write_gtfs

INCLUDE = Path(__file__).resolve().parents[2] / "include"
DAYS = ServiceWeek.parse("2016-W30").days
VALUES = ("", "x", "0", "9" * 30, "-1", "99:99:99", "1e9", "\ufffd", "20161301", "=1+1")
TABLES = ("agency", "stops", "routes", "trips", "stop_times", "calendar")
Members = Mapping[str, bytes]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Members:
    path = tmp_path_factory.mktemp("feed") / "feed.zip"
    write_gtfs(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    # a year in place of a century, whose days are listed in every reading
    return members | {"calendar.txt": members["calendar.txt"].replace(b"20991231", b"20161231")}


def without_parts(good: Members) -> Iterator[tuple[str, Members]]:
    """Yield feeds in which a table, all its rows or one of its columns is missing."""
    for name, content in good.items():
        header, _, _ = content.partition(b"\n")
        yield f"no {name}", {other: good[other] for other in good if other != name}
        yield f"nothing in {name}", {**good, name: b""}
        yield f"no row in {name}", {**good, name: header + b"\n"}
        for column, changed in columns_of(content, None):
            yield f"no {column} in {name}", {**good, name: changed}


def with_values(good: Members) -> Iterator[tuple[str, Members]]:
    """Yield feeds in which a column says something odd in its first row, or in all."""
    for name, content in good.items():
        for value in VALUES:
            for is_first in (True, False):
                for column, changed in columns_of(content, value, is_first=is_first):
                    yield f"{value!r} as {column} in {name}", {**good, name: changed}


def columns_of(
    content: bytes, value: str | None, *, is_first: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Yield each column of a table, and the table with it changed, or removed."""
    rows = list(csv.reader(io.StringIO(content.decode())))
    for at, column in enumerate(rows[0]):
        sink = io.StringIO()
        for number, row in enumerate(rows):
            is_changed = number == 1 if is_first else number > 0
            cells = [value] if value is not None and is_changed else [row[at]]
            kept = cells if value is not None else []
            csv.writer(sink).writerow([*row[:at], *kept, *row[at + 1 :]])
        yield column, sink.getvalue().encode()


def readings(folder: Path) -> Iterator[Callable[[], object]]:
    """Yield everything that the product does with a feed, here `domains/feed.zip`."""
    feed = folder / "domains/feed.zip"
    rules = BuildRules(LocationName("stop_id"), (), 25.0)
    yield lambda: build_domain(read_stops(feed, None).stops, (), rules)
    yield lambda: read_stops(feed, "bus")
    for of in ListOf:
        for by in NamedBy:
            yield lambda of=of, by=by: list_csv(feed, of, by)
    yield lambda: read_timetable(feed, DAYS)
    shipped = load_programme("itms", INCLUDE)
    programme = replace(
        shipped,
        source=replace(shipped.source, timetable="domains/feed.zip"),
        time=replace(shipped.time, zone=ZoneInfo(ZONE)),
    )
    yield lambda: read_calls(programme, folder)
    yield lambda: read_calls(programme, folder, DAYS)


def outcomes(folder: Path, members: Members) -> list[str]:
    """Return what came of each reading: `ok`, or a sentence of ours."""
    path = folder / "domains/feed.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    verdicts = []
    for act in readings(folder):
        try:
            act()
        except TurnstileError as refused:
            assert "feed.zip" in str(refused)  # noqa: PT017 - either way is right
            verdicts.append(str(refused))
        else:
            verdicts.append("ok")
    return verdicts


def test_the_good_timetable_is_read_in_every_way(good: Members, tmp_path: Path) -> None:
    assert {*outcomes(tmp_path, good)} == {"ok"}


def crashes_and_refusals(folder: Path, cases: Iterator[tuple[str, Members]]) -> tuple[set, set]:
    """Return the cases that raised what is not ours, and those that some reading refused."""
    crashed, refused = set(), set()
    for case, members in cases:
        try:
            verdicts = outcomes(folder, members)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            crashed.add(f"{case}: {type(error).__name__}")
        else:
            if {*verdicts} != {"ok"}:
                refused.add(case)
    return crashed, refused


@pytest.mark.long
def test_what_a_timetable_lacks_is_said(good: Members, tmp_path: Path) -> None:
    crashed, refused = crashes_and_refusals(tmp_path, without_parts(good))
    assert crashed == set()
    assert {f"no {table}.txt" for table in TABLES} <= refused
    assert {"no stop_id in stops.txt", "no route_type in routes.txt"} <= refused
    assert "no agency_url in agency.txt" not in refused


@pytest.mark.long
def test_what_a_timetable_says_oddly_is_read_or_refused(good: Members, tmp_path: Path) -> None:
    crashed, refused = crashes_and_refusals(tmp_path, with_values(good))
    assert crashed == set()
    assert refused
