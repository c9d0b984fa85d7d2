"""Sixty broken programmes: each problem is found in one run of `check`, alone and among others."""

from __future__ import annotations

import random
import shutil
from itertools import combinations
from pathlib import Path

import pytest

from turnstile.cli import main
from turnstile.programme.problems import problems_of

INCLUDE = Path(__file__).parents[2] / "include"
OPAL = (INCLUDE / "programmes/opal.yaml").read_text()
ITMS = (INCLUDE / "programmes/itms.yaml").read_text()
# (what stands in the file, what is written in its place, the field that the complaint names)
OF_OPAL = (
    ("name: opal", "name: opel", "name"),
    ("title:", "titel:", "title"),
    ("family: opal_cards ", "family: [a] ", "family"),
    ("feed: opal_trips", "feed: opal_trip", "source.feed"),
    ('"opal/{week}/*"', '"opal/*"', "source.landing"),
    ('"opal/{week}/*"', '"/opal/{week}/*"', "source.landing"),
    ("[bus, ferry, light_rail, train]", "[]", "source.modes"),
    ("[bus, ferry, light_rail, train]", "[bus, bus]", "source.modes"),
    ("missing_day: refuse", "missing_day: refused", "source.missing_day"),
    ("missing_day: refuse", "grid_decimals: 9", "source.grid_decimals"),
    ("missing_day: refuse", "speed_at_most_kmh: 0", "source.speed_at_most_kmh"),
    ("missing_day: refuse", "mode_names: {B: buss}", "source.mode_names"),
    ("missing_day: refuse", "marker: opal/{week}/done", "source.marker"),
    ("missing_day: refuse", "marker: opal/done", "source.marker"),
    ("missing_day: refuse", "files_at_least: many", "source.files_at_least"),
    ("missing_day: refuse", "timetable: domains/x.zip", "source.timetable"),
    ("{by: [tap_on_slot]}", "{by: [route]}", "tables.on_time.by"),
    ("{by: [tap_on_slot]}", "{by: [stop]}", "tables.on_time.by"),
    ("missing_day: refuse", "feeed: x", "source.feeed"),
    (
        "missing_day: refuse",
        "extent: {south: 9, north: 1, west: 0, east: 1}",
        "source.extent.south",
    ),
    ("Australia/Sydney", "Australia/Sidney", "time.zone"),
    ("slot_minutes: 15", "slot_minutes: 7", "time.slot_minutes"),
    ("slot_minutes: 15", "slot_minutes: 0", "time.slot_minutes"),
    ("slot_minutes: 15", "slot_minute: 15", "time.slot_minutes"),
    ("week_starts: monday", "week_starts: sunday", "time.week_starts"),
    ("week_starts: monday", 'day_starts: "25:00"', "time.day_starts"),
    ("slots: all_day", "slots: some", "domain.slots"),
    ("outside: unknown", "outside: unknwn", "domain.outside"),
    ("  outside: unknown", "  outside: drop\n  outside: drop", "domain.outside"),
    ("locations: domains/opal_locations.csv", "locations: [a]", "domain.locations"),
    ("trips_at_most: 6", "trips_at_most: 0", "units.card_day.trips_at_most"),
    ("trips_at_most: 6", "trip_at_most: 6", "units.card_day.trips_at_most"),
    (
        "once_per_finest_cell: true}",
        "once_per_finest_cell: 1}",
        "units.card_day.once_per_finest_cell",
    ),
    ("missing_day: refuse", "file: {zone: UTC}", "source.file.zone"),
    (
        "once_per_finest_cell: true}",
        "once_per_finest_cell: true, once_per_cell: true}",
        "units.card_day.once_per_finest_cell",
    ),
    ("card_day: {trips", "cardday: {trips", "units.cardday"),
    ("{by: [tap_on_slot]}", "{by: [slot]}", "tables.on_time.by"),
    ("[tap_on_slot]}", "[tap_on_slot, tap_off_slot]}", "tables.on_time.by"),
    ("{by: [tap_on_slot]}", "{by: [tap_on_slot], measure: buses}", "tables.on_time.measure"),
    (
        "{by: [tap_on_slot]}",
        "{by: [tap_on_slot], per_cell_at_most: 2}",
        "tables.on_time.per_cell_at_most",
    ),
    ("{by: [tap_on_slot]}", "{by: [boarding_visit]}", "tables.on_time.by"),
    (
        "  slots: all_day",
        "  lists: {boarding_visit: domains/x.csv}\n  slots: all_day",
        "domain.lists.boarding_visit",
    ),
    (
        "  slots: all_day",
        "  lists: {stop_visit: domains/x.csv}\n  slots: all_day",
        "domain.lists.stop_visit",
    ),
    ("peak_share, ", "peak_shore, ", "meant_for"),
    ("kind: dense_gaussian", "kind: dense_gauss", "mechanism.kind"),
    ("kind: dense_gaussian", "kind: continuous_laplace", "mechanism.kind"),
    ("  unit: card_day\n", "  unit: trip\n", "mechanism.unit"),
    ('rho: "1/12"', "rho: 0.125", "mechanism.rho"),
    ('rho: "1/12"', 'rho: "1/0"', "mechanism.rho"),
    ('on_time: "1/8"', 'on_time: "1/4"', "mechanism.split"),
    ("  - {unit: card_day, ", "  - {unit: card_dy, ", "caps[0].unit"),
    ('rho: "48"', 'rho: "48", epsilon: "3"', "caps[1].epsilon"),
    ("window_weeks: 52", "window_weeks: 0", "caps[1].window_weeks"),
    ("window_weeks: 52", "windowweeks: 52", "caps[1].windowweeks"),
    ('"10:00"', '"ten"', "schedule.weekly_at"),
    ("final_after_days: 0", "final_after_days: -1", "schedule.final_after_days"),
    ("approval: {required: false}", "approval: {required: no way}", "approval.required"),
    ("approval: {required: false}", "approval: {persons: 0}", "approval.persons"),
    ("approval: {required: false}", "approval: yes", "approval"),
    ("licence: CC-BY-4.0", "licence:", "publish.licence"),
    ("contact: open", "contract: open", "publish.contact"),
)
OF_ITMS = (
    ("modes: [bus]", "modes: [bus, tram]", "source.modes"),
    ("speed_unit: km/h", "speed_unit: leagues", "source.speed_unit"),
    ("missing_day: refuse", "without_card: drop", "source.without_card"),
    ("h3_resolution: 7", "h3_resolution: 16", "domain.h3_resolution"),
    ('slots: "09:00-21:00"', 'slots: "21:00-09:00"', "domain.slots"),
    ("bus_day: {cells", "card_day: {cells", "units.card_day"),
    ("measure: mean_speed", "measure: mean_sped", "tables.speed.measure"),
    ("speed:    {by: [slot, cell]", "speed: {by: [cell, slot]", "tables.speed.by"),
    ("speed:    {by: [slot, cell]", "speed: {by: [slot, cell, rout]", "tables.speed.by"),
    ("speed:    {by: [slot, cell]", "speed: {by: [slot, cell, route]", "tables.speed.by"),
    ("speed:    {by: [slot, cell]", "speed: {by: [slot, stop]", "tables.speed.by"),
    ("missing_day: refuse", "stop_within_m: 60", "source.stop_within_m"),
    ("speed_unit: km/h", "timetable: domains/x.zip", "source.timetable"),
    ("h3_resolution: 7", "h3_resolution: 7\n  lists: {rout: domains/x.csv}", "domain.lists.rout"),
    (
        "h3_resolution: 7",
        "h3_resolution: 7\n  lists: {fare_product: domains/x.csv}",
        "domain.lists.fare_product",
    ),
    (
        "measure: mean_speed, clamp_kmh: 65",
        "measure: mean_delay, clamp_minutes: soon",
        "tables.speed.clamp_minutes",
    ),
    (
        "measure: mean_speed, clamp_kmh: 65",
        "measure: mean_delay, clamp_minutes: 0",
        "tables.speed.clamp_minutes",
    ),
    ("limits_kmh: [40, 60]", "limits_kmh: [fast]", "tables.speeding.limits_kmh"),
    ("clamp_kmh: 65", "clamp_kmh: fast", "tables.speed.clamp_kmh"),
    ('south: "20.5"', 'south: "a"', "source.extent.south"),
    ("h3_resolution: 7", "h3_resolution: 7\n  h3_coarsest: 8", "domain.h3_coarsest"),
    ("measure: mean_speed", "trips_at_most: 2, measure: mean_speed", "tables.speed.trips_at_most"),
    (
        "  unit: bus_day\n",
        "  unit: bus_day\n  joint_marginals: true\n",
        "mechanism.joint_marginals",
    ),
    ("time: {zone", "meant_for: [peak_share]\ntime: {zone", "meant_for"),
)
CASES = [(OPAL, *case) for case in OF_OPAL] + [(ITMS, *case) for case in OF_ITMS]


def fields(text: str, name: str) -> list[str]:
    """Return the fields that are complained of."""
    return [problem.field for problem in problems_of(text, name).problems]


def file_of(text: str) -> str:
    """Return the name of the file that a text is made from."""
    return "opal.yaml" if "opal_cards" in text or "the Opal release" in text else "itms.yaml"


def test_there_are_sixty() -> None:
    assert len(CASES) >= 60
    assert all(old in text for text, old, _, _ in CASES)


@pytest.mark.parametrize("text", [OPAL, ITMS], ids=["opal", "itms"])
def test_a_file_in_order_has_no_problem(text: str) -> None:
    checked = problems_of(text, file_of(text))
    assert checked.problems == ()
    assert checked.programme is not None
    assert not checked.mended


@pytest.mark.parametrize(("text", "old", "new", "field"), CASES, ids=[case[2] for case in CASES])
def test_each_problem_is_found_alone(text: str, old: str, new: str, field: str) -> None:
    assert fields(text.replace(old, new, 1), file_of(text)) == [field]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("contact:", "synthetic_rows: true\n  contact:", "publish.synthetic_rows"),
        (" on_time:", ' "on/time":', "tables.on/time"),
        (" on_time:", f" {'long' * 40}:", f"tables.{'long' * 40}"),
    ],
)
def test_what_no_package_could_hold_is_refused_before_it_is_drawn(
    old: str, new: str, field: str
) -> None:
    """It was charged, and failed where the package is made."""
    assert field in fields(OPAL.replace(old, new), "opal.yaml")


def test_the_begin_of_a_day_that_is_advised_is_one_of_its_slots() -> None:
    time = 'slot_minutes: 180, day_starts: "04:00"'
    text = OPAL.replace("slot_minutes: 15", time)
    (problem,) = problems_of(text, "opal.yaml").problems
    assert 'write "03:00"' in problem.rule
    assert fields(text.replace("04:00", "03:00"), "opal.yaml") == []


@pytest.mark.parametrize("seed", range(6))
def test_all_problems_of_a_file_are_found_at_once(seed: int) -> None:
    text, expected = OPAL, set()
    for old, new, field in random.Random(seed).sample(OF_OPAL, len(OF_OPAL)):  # noqa: S311
        section = field.partition(".")[0].partition("[")[0]
        if section not in {f.partition(".")[0].partition("[")[0] for f in expected}:
            text = text.replace(old, new, 1)
            expected.add(field)
    assert len(expected) >= 10
    assert expected <= set(fields(text, "opal.yaml"))


def test_two_problems_of_one_section_are_both_found() -> None:
    cases = [c for c in OF_OPAL if c[2].startswith(("source.", "caps")) and c[2] != "source.feed"]
    pairs = [pair for pair in combinations(cases, 2) if pair[0][0] != pair[1][0]]
    for first, second in random.Random(1).sample(pairs, 25):  # noqa: S311
        text = OPAL.replace(first[0], first[1], 1).replace(second[0], second[1], 1)
        assert {first[2], second[2]} <= set(fields(text, "opal.yaml")), (first, second)


TWELVE = (
    ("name: opal", "name: opel", "name", "rename one of the two"),
    ("title:", "titel:", "title", "is titel meant for it?"),
    ("feed: opal_trips", "feed: opal_trip", "source.feed", "did you mean opal_trips?"),
    ("missing_day: refuse", "feeed: x", "source.feeed", "is unknown here"),
    ("slot_minutes: 15", "slot_minutes: 7", "time.slot_minutes", "write 15, 30 or 60"),
    ("outside: unknown", "outsid: unknown", "domain.outsid", "did you mean outside?"),
    ("trips_at_most: 6", "trips_at_most: 0", "units.card_day.trips_at_most", "write 1 or more"),
    ("{by: [tap_on_slot]}", "{by: [slot]}", "tables.on_time.by", "use some of tap_on_slot"),
    ('rho: "1/12"', "rho: 0.125", "mechanism.rho", "write it in quotes"),
    ("window_weeks: 52", "windowweeks: 52", "caps[1].windowweeks", "did you mean window_weeks?"),
    ('"10:00"', '"ten"', "schedule.weekly_at", 'write "10:00"'),
    ("contact: open", "contract: open", "publish.contact", "is contract meant for it?"),
)


def test_twelve_faults_are_named_in_one_reading_with_line_path_and_nearest_key() -> None:
    text = OPAL
    for old, new, _, _ in TWELVE:
        assert old in text
        text = text.replace(old, new, 1)
    problems = {problem.field: problem for problem in problems_of(text, "opal.yaml").problems}
    assert problems.keys() == {field for _, _, field, _ in TWELVE}
    lines = text.splitlines()
    for _, new, field, said in TWELVE:
        assert said in problems[field].rule
        line = lines[int(problems[field].where.removeprefix("opal.yaml:")) - 1]
        is_missing = problems[field].rule.startswith("is missing")
        assert is_missing or new.split("\n")[0] in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not YAML"),
        ("- a\n- b\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("a: \x00", "is not YAML"),
        ("a: &x {b: *x}\n", "write it out"),
        ("? [a, b]\n: c\n", "a key that is no text"),
        ("a: !!python/object:os.system {}\n", "is missing"),
    ],
)
def test_what_is_no_programme_at_all_is_one_sentence(text: str, said: str) -> None:
    assert said in str(problems_of(text, "x.yaml").problems[0])


def test_the_command_names_every_problem_and_then_the_missing_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(INCLUDE, tmp_path / "include", ignore=shutil.ignore_patterns("turn*"))
    broken = OPAL.replace("CC-BY-4.0", "").replace("opal_locations", "nowhere").replace("48", "x")
    (tmp_path / "include/programmes/opal.yaml").write_text(broken)
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(tmp_path / "include"))
    assert main(["check", "opal"]) == 2
    said = capsys.readouterr().err
    for field in ("publish.licence", "caps[1].rho", "domain.locations"):
        assert field in said
    assert main(["check"]) == 2
    assert main(["check", "itms"]) == 0
