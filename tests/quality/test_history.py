"""Learned ranges: what is usual passes, what is not warns, and no figure leaves."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from turnstile.programme.spec import Programme
from turnstile.quality.checks import validate
from turnstile.quality.earlier_figures import (
    LEARNED_FROM_AT_LEAST,
    Figures,
    earlier_figures,
    keep,
    usual_frames,
)
from turnstile.quality.expectations import Outcome, judge
from turnstile.quality.findings import QualityReport, Severity
from turnstile.quality.rules import Frame, learned_rules
from turnstile.service_calendar import ServiceWeek

WEEK = ServiceWeek.parse("2016-W30")
LEARNED = {rule.name for rule in learned_rules()}
DAYS = 7
BUS, FERRY, FREE = "bus", "ferry", 0.0


def _week(back: int, *, bus: float = 4000, speed: float = 24, share: float = 0.01) -> Figures:
    """Figures of the week so many weeks before; Sundays have a quarter of the buses."""
    days = [WEEK.monday + timedelta(days=n - 7 * back) for n in range(DAYS)]
    wobble = (back * 37) % 11 - 5  # what differs from week to week
    counts = {
        (str(day), BUS): (bus + 40 * wobble) / (4 if day.weekday() == DAYS - 1 else 1)
        for day in days
    } | {(str(day), FERRY): FREE for day in days}
    speeds = {(str(day), "moving_speed_kmh_median"): speed + wobble / 10 for day in days}
    return Figures(28_000, counts, speeds, {"share_malformed_line": share + wobble / 1e4})


EARLIER = tuple(_week(back) for back in range(1, 9))
MONDAY, SUNDAY = str(WEEK.monday), str(WEEK.monday + timedelta(days=6))


def _not_usual(now: Figures, earlier: tuple[Figures, ...] = EARLIER) -> set[str]:
    frames = usual_frames(now, earlier)
    rules = tuple(rule for rule in learned_rules() if rule.frame in frames)
    outcomes = judge(rules, frames)
    assert Outcome.BROKEN_CHECK not in outcomes
    pairs = zip(rules, outcomes, strict=True)
    return {rule.name for rule, outcome in pairs if outcome is Outcome.NOT_KEPT}


def _with_count(day: str, name: str, count: float) -> Figures:
    now = _week(0)
    return replace(now, counts={**now.counts, (day, name): count})


def test_a_week_like_the_others_is_usual() -> None:
    assert _not_usual(_week(0)) == set()
    assert set(usual_frames(_week(0), EARLIER)) == {rule.frame for rule in learned_rules()}


@pytest.mark.parametrize(
    ("now", "rule"),
    [
        (_with_count(MONDAY, BUS, 2000), "counts_of_weekday_usual"),
        (_with_count(MONDAY, BUS, 8000), "counts_of_weekday_usual"),
        (_with_count(SUNDAY, BUS, 4000), "counts_of_weekday_usual"),  # a Monday's on a Sunday
        (_with_count(MONDAY, FERRY, 1), "counts_of_weekday_usual"),  # a mode that never ran
        (_week(0, speed=33), "speeds_of_weekday_usual"),
        (_week(0, speed=15), "speeds_of_weekday_usual"),
        (_week(0, share=0.03), "rejected_usual"),
    ],
)
def test_what_is_unlike_the_weeks_before_is_seen_by_its_rule(now: Figures, rule: str) -> None:
    assert _not_usual(now) == {rule}


def test_a_fault_that_was_never_met_is_seen_and_one_that_ends_is_no_fault() -> None:
    now = _week(0)
    new = replace(now, shares={**now.shares, "share_null_speed": 0.02})
    assert _not_usual(new) == {"rejected_usual"}
    assert _not_usual(_week(0, share=0.0005)) == set()


@pytest.mark.parametrize(("count", "is_usual"), [(0, True), (55, True), (56, False)])
def test_what_chance_does_to_a_small_count_is_usual(count: int, *, is_usual: bool) -> None:
    """Always 25 before: the spread is that of chance, 5, and six of it reach from -5 to 55."""
    few = [replace(week, counts=dict.fromkeys(week.counts, 25.0)) for week in (_week(0), *EARLIER)]
    now = replace(few[0], counts={**few[0].counts, (MONDAY, BUS): float(count)})
    assert (_not_usual(now, tuple(few[1:])) == set()) is is_usual


def test_one_odd_week_among_eight_hides_no_other_and_shifts_no_range() -> None:
    odd = (_week(1, bus=40_000, speed=60, share=0.9), *EARLIER[1:])
    assert _not_usual(_week(0), odd) == set()
    assert _not_usual(_with_count(MONDAY, BUS, 8000), odd) == {"counts_of_weekday_usual"}


def test_nothing_is_learned_from_few_weeks() -> None:
    assert usual_frames(_week(0, bus=1), EARLIER[: LEARNED_FROM_AT_LEAST - 1]) == {}
    assert usual_frames(_week(0, bus=1), EARLIER[:LEARNED_FROM_AT_LEAST]) != {}


def test_every_learned_rule_warns_and_none_stops() -> None:
    assert {rule.severity for rule in learned_rules()} == {Severity.WARN}


def test_no_learned_figure_is_among_the_arguments_of_a_check() -> None:
    """An argument may be printed by the library; figures and ranges are columns of the frame."""
    for rule in learned_rules():
        assert not any(type(value) in {int, float} for value in rule.arguments.values())


def test_figures_come_back_as_they_were_kept_and_do_not_print(tmp_path: Path) -> None:
    for back in (1, 3):
        folder = tmp_path / "opal" / str(WEEK.plus(-back))
        folder.mkdir(parents=True)
        keep(_week(back), folder)
        assert (folder / "figures.json").stat().st_mode & 0o077 == 0
    assert earlier_figures("opal", WEEK, tmp_path) == (_week(1), _week(3))
    assert earlier_figures("itms", WEEK, tmp_path) == ()
    assert repr(_week(1)) == "<private figures>"
    with pytest.raises(TypeError):
        pickle.dumps(_week(1))


MakeProgramme = Callable[..., Programme]


def _judged(zones: Any, programme: Programme) -> QualityReport:
    snapshot = zones.ingest(programme, str(WEEK))
    return validate(programme, WEEK, snapshot, private=zones.private)


def _pretend_earlier(private: Path, programme: Programme, factor: float) -> None:
    """Leave figures of eight weeks like the present one, but with so many times its rows."""
    record = json.loads((private / programme.name / str(WEEK) / "figures.json").read_text())
    for back in range(1, 9):
        folder = private / programme.name / str(WEEK.plus(-back))
        folder.mkdir(exist_ok=True)
        counts = [[_earlier(day, back), name, n * factor] for day, name, n in record["counts"]]
        speeds = [[_earlier(day, back), name, v] for day, name, v in record["speeds_kmh"]]
        written = record | {"counts": counts, "speeds_kmh": speeds}
        (folder / "figures.json").write_text(json.dumps(written))


def _earlier(day: str, weeks: int) -> str:
    return str(date.fromisoformat(day) - timedelta(weeks=weeks))


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_validation_learns_from_what_it_kept_and_reveals_no_figure(
    zones: Any,
    programme_of: MakeProgramme,
    name: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    programme = programme_of(name)
    zones.sample(name, str(WEEK), "--rows", "3000")
    first = _judged(zones, programme)
    assert not LEARNED & {finding.rule for finding in first.findings}
    _pretend_earlier(zones.private, programme, 1)
    usual = _judged(zones, programme)
    expected = LEARNED if name == "itms" else LEARNED - {"speeds_of_weekday_usual"}
    assert LEARNED & {finding.rule for finding in usual.findings} == expected
    assert usual.worst is None
    _pretend_earlier(zones.private, programme, 3)
    odd = _judged(zones, programme)
    assert {finding.rule for finding in odd.warnings} == {"counts_of_weekday_usual"}
    assert odd.passed
    rows = str(earlier_figures(name, WEEK.plus(1), zones.private)[0].total)
    out, err = capfd.readouterr()
    for text in (repr(odd), caplog.text, out, err):
        assert rows not in text
        assert not any(frame.value in text for frame in Frame if frame.value.startswith("usual_"))
