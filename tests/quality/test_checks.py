"""Validation of ingested weeks: what stops, what warns, and what never leaves the private zone."""

from __future__ import annotations

import json
import logging
import pickle
from collections import Counter
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest

from turnstile.programme.source_spec import MissingDay, SpeedUnit
from turnstile.programme.spec import Programme
from turnstile.quality.checks import load_report, validate
from turnstile.quality.expectations import Outcome, judge
from turnstile.quality.findings import Finding, QualityReport, Severity
from turnstile.quality.metrics import measure
from turnstile.quality.rules import RANGE, Rule, rules_of
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.snapshot import counts_of
from turnstile_samples import itms, opal

WEEK = "2016-W30"
CANARY = "3085999999999999"
MakeProgramme = Callable[..., Programme]


def _judged(zones: Any, programme: Programme, week: str = WEEK) -> QualityReport:
    snapshot = zones.ingest(programme, week)
    report = validate(programme, ServiceWeek.parse(week), snapshot, private=zones.private)
    assert load_report(snapshot) == report
    return report


def _not_kept(report: QualityReport) -> set[str]:
    return {finding.rule for finding in report.findings if not finding.passed}


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_a_clean_week_passes_without_a_warning(
    zones: Any, programme_of: MakeProgramme, name: str
) -> None:
    zones.sample(name, WEEK, "--rows", "3000")
    report = _judged(zones, programme_of(name))
    assert report.passed
    assert report.worst is None
    assert len(report.findings) > 20


# what ingest counts beside rows, the rules of validation that see it besides, and the worst of all
_SEEN_AS: dict[tuple[str, str], tuple[set[str], set[str], Severity]] = {
    ("opal", "duplicates"): ({"duplicates"}, set(), Severity.WARN),
    ("opal", "nulls"): ({"card_id_missing"}, set(), Severity.WARN),
    ("opal", "outliers"): ({"tap_off_before_tap_on"}, set(), Severity.WARN),
    ("opal", "late"): ({"outside_week"}, set(), Severity.WARN),
    ("opal", "missing-day"): (set(), {"days_present"}, Severity.ERROR),
    ("opal", "future"): ({"future_date"}, set(), Severity.WARN),
    ("opal", "unknown-mode"): ({"unknown_mode"}, {"unknown_mode_many"}, Severity.ERROR),
    ("itms", "duplicates"): ({"duplicates"}, set(), Severity.WARN),
    ("itms", "nulls"): ({"null_vehicle", "null_coordinates", "null_speed"}, set(), Severity.WARN),
    ("itms", "outliers"): (
        {"speed_out_of_range", "coordinates_out_of_range"},
        set(),
        Severity.WARN,
    ),
    ("itms", "late"): ({"outside_week"}, set(), Severity.WARN),
    ("itms", "missing-day"): (set(), {"days_present"}, Severity.ERROR),
    ("itms", "future"): ({"future_date"}, set(), Severity.WARN),
    ("itms", "wrong-unit"): (set(), {"speed_unit"}, Severity.ERROR),
}


@pytest.mark.parametrize(("name", "corruption"), _SEEN_AS)
def test_corruption_is_seen_by_ingest_and_by_a_named_rule(
    zones: Any, programme_of: MakeProgramme, name: str, corruption: str
) -> None:
    zones.sample(name, WEEK, "--rows", "3000", "--corruption", corruption)
    report = _judged(zones, programme_of(name))
    snapshot = zones.ingest(programme_of(name), WEEK)
    counted = {rule for rule, count in counts_of(snapshot).items() if count}
    of_ingest, of_rules, worst = _SEEN_AS[name, corruption]
    assert counted == of_ingest | {"rows_in", "rows_out"}
    assert len(snapshot.days) == (6 if corruption == "missing-day" else 7)
    assert (_not_kept(report), report.worst) == (of_ingest | of_rules, worst)
    assert report.passed is (worst is Severity.WARN)


def test_every_switch_of_a_feed_is_tried() -> None:
    of_feeds = (("opal", opal.CORRUPTIONS), ("itms", itms.CORRUPTIONS))
    switches = {(name, str(corruption)) for name, known in of_feeds for corruption in known}
    assert set(_SEEN_AS) == switches


def test_a_missing_day_may_be_published_with_a_gap_if_the_programme_says_so(
    zones: Any, programme_of: MakeProgramme
) -> None:
    zones.sample("opal", WEEK, "--rows", "3000", "--corruption", "missing-day")
    report = _judged(zones, programme_of("opal", missing_day=MissingDay.PUBLISH_WITH_GAP))
    assert report.passed
    assert {finding.rule for finding in report.warnings} == {"days_present"}


def test_a_day_below_the_floor_of_the_programme_stops_the_week(
    zones: Any, programme_of: MakeProgramme
) -> None:
    zones.sample("opal", WEEK, "--rows", "3000")
    report = _judged(zones, programme_of("opal", rows_per_day_at_least=300))
    assert _not_kept(report) == {"days_complete"}
    assert not report.passed


def test_a_day_whose_file_was_cut_is_warned_of(zones: Any, programme_of: MakeProgramme) -> None:
    """In either half; a day that ends a little earlier, with as many rows, is none."""
    zones.sample("opal", WEEK, "--rows", "3000")
    file = next(iter(sorted(zones.landing.rglob("*.csv"))))
    header, *lines = file.read_text().splitlines(keepends=True)
    halves = [line for line in lines if line.split(",")[3] < "10:00"]
    others = [line for line in lines if line not in halves]
    most = [line for line in lines if line.split(",")[3] < "22:30"]
    for kept, is_cut in ((halves, True), (others, True), (most, False)):
        file.write_text("".join((header, *kept)))
        report = _judged(zones, programme_of("opal"))
        assert report.passed
        assert ("days_whole" in {finding.rule for finding in report.warnings}) == is_cut


def test_kilometers_taken_for_meters_are_seen_too(zones: Any, programme_of: MakeProgramme) -> None:
    zones.sample("itms", WEEK, "--rows", "3000")
    report = _judged(zones, programme_of("itms", speed_unit=SpeedUnit.MS, speed_at_most_kmh=300))
    assert "speed_unit" in _not_kept(report)
    assert "not m/s" in report.refusal()


def test_an_empty_week_stops_and_no_check_is_broken(
    zones: Any, programme_of: MakeProgramme
) -> None:
    for name in ("opal", "itms"):
        header = {
            "opal": "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
            "tap_off_date,tap_off_time,tap_off_location\n",
            "itms": "license_plate,observationDateTime,speed,location.coordinates\n",
        }[name]
        zones.deliver(WEEK, {"a.csv": header})
        report = _judged(zones, programme_of(name))
        assert not report.passed
        assert {"rows_present", "days_present"} <= _not_kept(report)
        assert not any(finding.is_broken_check for finding in report.findings)


def test_an_unusual_volume_warns_against_the_weeks_before(
    zones: Any, programme_of: MakeProgramme
) -> None:
    programme = programme_of("opal")
    for week, rows in (("2016-W28", "3000"), ("2016-W29", "3100")):
        zones.sample("opal", week, "--rows", rows)
        assert "volume_usual" not in _not_kept(_judged(zones, programme, week))
    zones.sample("opal", WEEK, "--rows", "1000")
    report = _judged(zones, programme)
    assert _not_kept(report) == {"volume_usual"}
    assert report.worst is Severity.WARN
    zones.sample("opal", "2016-W31", "--rows", "9000")
    assert "volume_usual" in _not_kept(_judged(zones, programme, "2016-W31"))


def test_a_week_that_stops_is_no_measure_for_later_weeks(
    zones: Any, programme_of: MakeProgramme
) -> None:
    programme = programme_of("opal")
    zones.sample("opal", "2016-W29", "--rows", "300", "--corruption", "missing-day")
    assert not _judged(zones, programme, "2016-W29").passed
    assert not list(zones.private.rglob("figures.json"))
    zones.sample("opal", WEEK, "--rows", "3000")
    assert _judged(zones, programme).worst is None


def test_a_planted_card_is_in_no_finding_no_message_and_no_log(
    zones: Any,
    programme_of: MakeProgramme,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    zones.sample("opal", WEEK, "--rows", "3000", "--corruption", "unknown-mode")
    bad = f"{CANARY},{CANARY},2031-01-01,08:00,{CANARY},,,\n"
    file = next((zones.landing / WEEK).iterdir())
    file.write_text(file.read_text() + bad + f"{CANARY},bus\n{CANARY},bus,2016-07-25,99:00,A,,,\n")
    programme = programme_of("opal")
    report = _judged(zones, programme)
    snapshot = zones.ingest(programme, WEEK)
    output = capfd.readouterr()
    written = (snapshot.folder / "quality.json").read_text()
    for text in (repr(report), report.refusal(), written, caplog.text, output.out, output.err):
        assert CANARY not in text
    assert not report.passed


def test_findings_hold_no_number_of_the_data(zones: Any, programme_of: MakeProgramme) -> None:
    """The same findings come from twice the data: nothing in them counts."""
    texts = []
    for rows, aside in (("3000", "small"), ("6000", "large")):
        zones.sample("itms", WEEK, "--rows", rows, "--corruption", "nulls,duplicates")
        snapshot = zones.ingest(programme_of("itms"), WEEK)
        week = ServiceWeek.parse(WEEK)
        validate(programme_of("itms"), week, snapshot, private=zones.private)
        texts.append((snapshot.folder / "quality.json").read_text())
        (zones.landing / WEEK).rename(zones.root / aside)
    assert texts[0] == texts[1]
    assert {
        type(value) for finding in json.loads(texts[0])["findings"] for value in finding.values()
    } == {
        str,
        bool,
    }


def test_exact_figures_do_not_print_and_cannot_be_pickled(
    zones: Any, programme_of: MakeProgramme
) -> None:
    zones.sample("opal", WEEK, "--rows", "300")
    programme = programme_of("opal")
    snapshot = zones.ingest(programme, WEEK)
    metrics = measure(programme, ServiceWeek.parse(WEEK), snapshot, private=zones.private)
    assert repr(metrics) == "<private metrics>"
    with pytest.raises(TypeError):
        pickle.dumps(metrics)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("week", "files", "zone"),
    [
        ("2021-W52", ("surat_itms/suratITMS.csv", "surat_itms/suratITMS_30minsTest.csv"), None),
        ("2022-W01", ("surat_itms/suratTestLarge.zip",), None),
        (
            "2016-W47",
            tuple(f"capmetro_bus_gps/2016-11-{day}.csv" for day in range(24, 28)),
            "America/Chicago",
        ),
        ("2015-W10", ("capmetro_bus_gps/2015-03-08.csv",), "America/Chicago"),
    ],
)
def test_the_real_files_pass_where_a_gap_is_allowed_and_stop_where_not(
    zones: Any,
    programme_of: MakeProgramme,
    shared_data: Path,
    week: str,
    files: tuple[str, ...],
    zone: str | None,
) -> None:
    source: dict[str, Any] = {}
    if zone:
        source["columns"] = (("vehicle_id", "vehicle_id"), ("observed_at", "timestamp"))
        # by their own positions: miles an hour in 2015, metres a second in 2016
        source["speed_unit"] = SpeedUnit.MPH if week.startswith("2015") else SpeedUnit.MS
    zones.deliver(week, {Path(file).name: (shared_data / file).read_bytes() for file in files})
    gap = programme_of("itms", zone=zone, missing_day=MissingDay.PUBLISH_WITH_GAP, **source)
    report = _judged(zones, gap, week)
    assert report.passed, report.refusal()
    is_named_by_day = zone is not None  # else no file says which day is missing, and rows may not
    assert ("days_present" in _not_kept(report)) is is_named_by_day
    strict = _judged(zones, programme_of("itms", zone=zone, **source), week)
    assert not strict.passed
    if zone:
        wrong = programme_of("itms", zone=zone, **(source | {"speed_unit": SpeedUnit.KMH}))
        assert "speed_unit" in _not_kept(_judged(zones, wrong, week))
    if week == "2016-W47":  # whole days: of one alone another zone leaves too little of the week
        wrong = programme_of("itms", zone="Asia/Kolkata", **source)
        assert "clock" in _not_kept(_judged(zones, wrong, week))


@pytest.mark.parametrize(
    ("zone", "quiet_hours", "is_named"),
    [
        ("Asia/Kolkata", None, False),
        ("Asia/Kolkata", (22 * 60, 6 * 60), False),  # over midnight
        ("Asia/Kolkata", (10 * 60, 14 * 60), True),
        ("America/Los_Angeles", None, True),  # buses of the night
        ("America/Los_Angeles", (11 * 60, 16 * 60), False),
        ("America/Los_Angeles", (22 * 60, 6 * 60), True),
    ],
)
def test_the_clock_is_judged_by_the_hours_that_are_said_to_be_quiet(
    zones: Any,
    programme_of: MakeProgramme,
    zone: str,
    quiet_hours: tuple[int, int] | None,
    *,
    is_named: bool,
) -> None:
    zones.sample("itms", WEEK, "--rows", "3000")
    report = _judged(zones, programme_of("itms", zone=zone, quiet_hours=quiet_hours))
    assert ("clock" in _not_kept(report)) is is_named


def _finding(**fields: Any) -> Finding:
    usual = {"rule": "r", "severity": Severity.ERROR, "passed": False, "sentence": "say so"}
    return Finding(**(usual | fields))


def test_a_broken_check_stops_the_week_even_if_its_rule_would_only_warn() -> None:
    broken = _finding(severity=Severity.WARN, is_broken_check=True)
    report = QualityReport("opal", WEEK, (broken,))
    assert not report.passed
    assert "the check itself failed, the data are not judged" in report.refusal()


def test_a_warning_does_not_stop_the_week() -> None:
    report = QualityReport("opal", WEEK, (_finding(severity=Severity.WARN), _finding(passed=True)))
    assert report.passed
    assert report.worst is Severity.WARN
    assert len(report.warnings) == 1


def test_ranges_are_judged_by_their_figures_whatever_stands_beside_them(
    programme_of: MakeProgramme,
) -> None:
    ranges = [rule for rule in rules_of(programme_of("opal")) if rule.expectation == RANGE]
    random = Random(1)  # noqa: S311 - makes no noise; of this seed all three outcomes are seen
    seen = Counter[Outcome]()
    rare = (0.005, 2.5, nan, None, inf, -1, 50, "x", True)
    for _ in range(4):
        length = random.choice((0, 1, 7))
        columns = {
            str(rule.arguments["column"]): [
                random.choice(rare if random.random() < 0.05 else (0, 0, 1)) for _ in range(length)
            ]
            for rule in ranges
            if random.random() < 0.95
        }
        frames = dict.fromkeys((rule.frame for rule in ranges), pd.DataFrame(columns))
        judged = judge(tuple(ranges), frames)
        assert judged == tuple(_in_range(rule, columns) for rule in ranges)
        seen.update(judged)
    assert set(seen) == set(Outcome)


def _in_range(rule: Rule, columns: dict[str, list[Any]]) -> Outcome:
    """What a range tells of a column: nothing if it lacks or holds a text; no value is kept."""
    figures = columns.get(str(rule.arguments["column"]), ["lacks"])
    if any(isinstance(figure, str) for figure in figures):
        return Outcome.BROKEN_CHECK
    least, most = (rule.arguments[name] for name in ("min_value", "max_value"))
    is_kept = all(
        (least is None or figure >= least) and (most is None or figure <= most)
        for figure in figures
        if figure is not None and figure == figure  # noqa: PLR0124 - not a number
    )
    return Outcome.KEPT if is_kept else Outcome.NOT_KEPT
