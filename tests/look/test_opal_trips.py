"""Trips as `opal_trips` has them: of one mode that no column names, with dates of any form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from city_week import STOPS, WEEK, ZONE, Form, taps

GIVEN = ("--protect", "day", "--zone", ZONE.key, "--accept-no-gain", "made")


def _lines(modes: tuple[str, ...], day: str) -> Iterator[str]:
    ends = [f"tap_{end}_{part}" for end in ("on", "off") for part in ("date", "time", "location")]
    yield ",".join(["card_id", *(["mode"] if modes else []), *ends])
    trips = taps()
    for number, (on, off) in enumerate(zip(trips[::2], trips[1::2], strict=True)):
        parts = [
            f"{tap.at.astimezone(ZONE):{day},%H:%M},{STOPS[tap.place][0]}" for tap in (on, off)
        ]
        yield ",".join([on.card, *(modes and [modes[number % len(modes)]]), *parts])


def _deliver(city: Any, *modes: str, day: str = "%Y-%m-%d") -> Path:
    file: Path = city.put("a.csv", "\n".join(_lines(modes, day)) + "\n")
    return file


def _new(city: Any, file: Path, *more: str) -> None:
    given = ("--gtfs", city.stops, "--mode", "bus", *GIVEN)
    code, said = city.tells("new", "city", "--from", file, *given, *more)
    assert (code, "feed opal_trips" in said) == (0, True), said


def test_trips_of_one_mode_need_not_name_it(city: Any) -> None:
    _new(city, _deliver(city))
    assert city.tells("check", "city")[0] == 0
    assert city.look()[1].splitlines()[-1] == "ready"
    city.goes_on()
    city.edit("\nsource:\n", "\nsource:\n  without_mode: bus\n")  # who states it is not refused
    assert city.look()[1].splitlines()[-1] == "ready"


def test_trips_without_a_mode_under_several_are_asked_about(city: Any) -> None:
    """Negative control."""
    _new(city, _deliver(city))
    city.edit(r"modes: \[bus\]", "modes: [bus, train]")
    assert "to decide: source.without_mode: records name no mode" in city.look()[1]


def test_the_modes_that_trips_name_are_read(city: Any) -> None:
    """Negative control: a mode that the list lacks does not count as the only one of it."""
    _new(city, _deliver(city, "bus", "train"))
    assert "source.mode_names" in city.look()[1]


def _rows(city: Any) -> list[dict[str, Any]]:
    """Let the tasks read the week; return its trips."""
    city.goes_on()
    week = city.home / f"private/city/{WEEK}"
    snapshot = (week / "r0/snapshot").read_text()[:12]
    rows = pq.read_table(week / "snapshots" / snapshot / "rows", partitioning=None)
    return sorted(rows.to_pylist(), key=str)


def test_dates_of_trips_are_asked_proposed_and_read(city: Any) -> None:
    _new(city, _deliver(city, "bus", day="%d/%m/%Y"))
    assert "to decide: source.date_form" in city.look()[1]
    line = "date_form: DD/MM/YYYY"
    assert city.lines()["source.date_form"] == line
    city.edit(r"date_form: \S+", "date_form: MM/DD/YYYY")
    assert city.lines()["source.date_form"] == line  # a wrong answer is found too
    city.run_stops("source.date_form")
    city.adopt(line)
    assert city.look()[1].splitlines()[-1] == "ready"
    read = _rows(city)
    _deliver(city, "bus")
    assert _rows(city) == read
    assert len(read) == len(taps()) // 2


def test_dates_with_a_year_first_ask_nothing(city: Any) -> None:
    """Negative control."""
    _new(city, _deliver(city, "bus"))
    assert "date_form" not in city.yaml.read_text()
    assert city.look()[1].splitlines()[-1] == "ready"


def test_taps_with_no_end_anywhere_have_no_unknown_one(city: Any) -> None:
    enters = [tap for tap in taps() if tap.enters]
    city.new(enters, Form(words=()), "--all-tap-on")
    code, said, record = city.look()
    assert code == 0, said
    assert record["sections"]["Judgement"] == ["- every rule is kept"]
    city.goes_on()


def test_taps_whose_ends_are_lost_are_warned_of(city: Any) -> None:
    """Negative control: a column says which taps are ends."""
    enters = [tap for tap in taps() if tap.enters]
    city.new(enters, Form())
    assert "- `unknown_taps` warns: " in "\n".join(city.look()[2]["sections"]["Judgement"])
