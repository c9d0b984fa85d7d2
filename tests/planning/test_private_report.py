"""The utility report stays private and counts suppression and bounds, not noise alone."""

from __future__ import annotations

import stat
from collections.abc import Callable
from datetime import date

import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

from turnstile.pipeline.steps import STEPS, step_named
from turnstile.programme.spec import Query
from turnstile_design.private_reports.trip_questions import Frames, answer

Cli = Callable[..., int]
DAY = date(2016, 7, 25)


def frames(counts: dict[tuple[str, str], int]) -> Frames:
    """Tables of one mode and day from counts by slot and place."""
    rows = [(DAY, "train", slot, place, n) for (slot, place), n in counts.items()]
    names = ["service_date", "mode", "tap_on_slot", "tap_on_location", "count"]
    cells = pd.DataFrame(rows, columns=names)
    keys = ["service_date", "mode"]
    return Frames(
        {
            "cells": cells,
            "time": cells.groupby([*keys, "tap_on_slot"])["count"].sum().reset_index(),
            "place": cells.groupby([*keys, "tap_on_location"])["count"].sum().reset_index(),
        }
    )


TRUE = frames({("08:00", "A"): 600, ("08:15", "B"): 300, ("12:00", "A"): 100})


@pytest.mark.parametrize("query", list(Query))
def test_the_truth_answers_every_query_without_error(query: Query) -> None:
    query_answer = answer(query, TRUE, TRUE, before=(TRUE, TRUE))
    assert query_answer.value == (1 if query is Query.TOP_STATIONS_BY_HOUR else 0)


@pytest.mark.parametrize("query", list(Query))
def test_tables_of_a_single_mode_which_do_not_name_it_are_answered_alike(query: Query) -> None:
    cut = frames({("08:00", "A"): 600, ("12:00", "A"): 100})
    named, bare = (
        answer(query, published, truth, before=(truth, truth)).value
        for published, truth in ((cut, TRUE), (without_mode(cut), without_mode(TRUE)))
    )
    assert named == bare


def without_mode(of: Frames) -> Frames:
    return Frames({name: table.drop(columns="mode") for name, table in of.tables.items()})


def test_a_suppressed_cell_is_an_error_of_its_whole_count() -> None:
    cut = frames({("08:00", "A"): 600, ("12:00", "A"): 100})
    assert answer(Query.DAILY_TOTALS_BY_PLACE, cut, TRUE).value == 0.5  # A exact, B gone
    assert answer(Query.TOP_STATIONS_BY_HOUR, cut, TRUE).value == pytest.approx(2 / 3)
    share = answer(Query.PEAK_SHARE, cut, TRUE).value
    assert share == pytest.approx(900 / 1000 - 600 / 700)
    change = answer(Query.WEEK_ON_WEEK_CHANGE, cut, TRUE, before=(TRUE, TRUE)).value
    assert change == pytest.approx((300**2 / 2) ** 0.5)


def test_a_change_without_a_week_before_has_no_answer() -> None:
    assert answer(Query.WEEK_ON_WEEK_CHANGE, TRUE, TRUE).value is None


def test_a_query_whose_table_is_not_published_has_no_answer() -> None:
    bare = Frames({"place": TRUE.tables["place"]})
    assert answer(Query.TOP_STATIONS_BY_HOUR, bare, bare).value is None
    assert answer(Query.PEAK_SHARE, bare, bare).value is None
    slots = Frames({"time": TRUE.tables["time"]})
    assert answer(Query.WEEK_ON_WEEK_CHANGE, slots, slots, before=(slots, slots)).value is None
    assert answer(Query.DAILY_TOTALS_BY_PLACE, slots, slots).value is None


def test_the_report_lies_in_the_private_zone_alone_and_prints_no_number(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("report", "opal", "--week", "2016-W31") == 2  # nothing is sealed yet
    assert "run turnstile run opal --week 2016-W31 first" in capsys.readouterr().err
    assert turnstile("report", "itms", "--week", WEEK) == 2
    spent = published.spent()
    capsys.readouterr()
    assert turnstile("report", "opal", "--week", WEEK) == 0
    path = published.home / "private/opal" / WEEK / "r0/utility_report.md"
    assert capsys.readouterr().out.strip() == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    for query in load_queries(text):
        assert query in set(Query)
    assert "| the week before was not released" in text
    for heading in ("Trips left out", "(k, gamma)-density", "alpha", "not for publication"):
        assert heading in text
    rules = shares(text, "## Trips left out by each rule")
    nothing, finest, every = (rules[name] for name in sorted(rules, key=rules.__getitem__))
    assert 0 < nothing < finest < every
    assert rules["a slot at a place: once_per_finest_cell (as it is)"] == finest
    lost = column(text, "## Trips left out of each table", 3)
    assert min(lost) <= finest <= max(lost)  # of all modes, between the least and the most of one
    assert published.spent() == spent  # reading the truth for oneself charges nothing
    public = [file for file in published.public.rglob("*") if "utility_report" in file.name]
    assert public == []
    assert turnstile("package", "verify", published.public / "opal" / WEEK / "r0") == 0


@pytest.mark.long
def test_trips_that_a_programme_drops_as_outside_count_as_left_out(
    landed: Deployment, turnstile: Cli
) -> None:
    landed.edit("opal", "outside: unknown", "outside: drop")
    landed.edit("opal", "slots: all_day", 'slots: "08:00-20:00"')
    for step in STEPS[: STEPS.index("draw") + 1]:
        step_named(step)("opal", WEEK, 0)
    assert turnstile("report", "opal", "--week", WEEK) == 0
    text = (landed.home / "private/opal" / WEEK / "r0/utility_report.md").read_text()
    trips = column(text, "## Trips left out of each table", 2)
    assert sum(trips) == 6 * 20_000  # all of them, in each table
    lost = column(text, "## Trips left out of each table", 3)
    assert min(lost) > 15  # per cent: what is early, late, or never tapped off


def column(text: str, heading: str, place: int) -> list[float]:
    """One column of the table under a heading, as numbers."""
    table = text.split(heading)[1].split("\n\n")[1].splitlines()[2:]
    return [float(line.split("|")[place + 1].strip(" %").replace(",", "")) for line in table]


def shares(text: str, heading: str) -> dict[str, float]:
    """A table of names and per cents under a heading."""
    table = text.split(heading)[1].split("\n\n")[1].splitlines()[2:]
    return dict(
        zip((line.split("|")[1].strip() for line in table), column(text, heading, 1), strict=True)
    )


def load_queries(text: str) -> list[str]:
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    queries = [name for name in rows if name in set(Query)]
    assert len(queries) == len(Query)
    return queries
