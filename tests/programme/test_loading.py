"""A programme file is read strictly: one sentence with file, line and field, or a whole record."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from turnstile.errors import InputError, ProgrammeError
from turnstile.measures.registry import Measure
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.spec import RetentionSpec, TableSpec
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"
OPAL = (Path(__file__).parents[1] / "support/programmes/opal.yaml").read_text()
ITMS = (INCLUDE / "programmes/itms.yaml").read_text()
MONTH = (INCLUDE / "programmes/itms_month.yaml").read_text()
SUBE = (Path(__file__).parents[1] / "pipeline/programmes/sube.yaml").read_text()


@pytest.mark.parametrize("name", ["opal", "opal_trip", "opal_2017", "itms"])
def test_the_programmes_that_come_with_the_product_are_read(name: str) -> None:
    assert load_programme(name, INCLUDE).name == name


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_they_keep_private_data_until_somebody_states_the_days(name: str) -> None:
    text = (INCLUDE / f"programmes/{name}.yaml").read_text()
    assert parse_programme(text, f"{name}.yaml").retention is None
    stated = parse_programme(text.replace("# retention:", "retention:"), f"{name}.yaml")
    assert stated.retention == RetentionSpec(backfill_days=60, raw_days=90, exact_days=200)


def test_amounts_are_exact() -> None:
    opal = parse_programme(OPAL, "opal.yaml")
    assert opal.mechanism.amount == Fraction(4)
    assert dict(opal.mechanism.split)["on_time"] == Fraction(1, 8)
    assert opal.caps[1].epsilon == Fraction(20)


def test_comments_and_layout_do_not_change_the_digest_but_content_does() -> None:
    digest = parse_programme(OPAL, "opal.yaml").digest
    assert (
        parse_programme("# seen\n" + OPAL.replace("  - {", "  -   {"), "opal.yaml").digest == digest
    )
    assert parse_programme(OPAL.replace("20", "21"), "opal.yaml").digest != digest


def test_a_programme_that_was_edited_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "programmes/opal.yaml"
    file.parent.mkdir()
    file.write_text(OPAL)
    first = load_programme("opal", tmp_path)
    assert load_programme("opal", tmp_path) is first  # every step of a week opens it
    file.write_text(OPAL.replace("20", "21"))
    assert load_programme("opal", tmp_path).digest != first.digest


def test_an_unknown_programme_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="itms.*opal"):
        load_programme("opel", INCLUDE)


OF_OPAL = [
    ("family:", "familly: x\nfamily:", "familly", "is unknown here"),
    ('epsilon: "4"\n  split', "epsilon: 4.0\n  split", "mechanism.epsilon", "must be exact"),
    (
        'epsilon: "4"\n  split',
        'epsilon: "-4"\n  split',
        "mechanism.epsilon",
        "no positive amount",
    ),
    (
        'epsilon: "4"\n  split',
        'epsilon: "1/0"\n  split',
        "mechanism.epsilon",
        "no positive amount",
    ),
    ("Australia/Sydney", "Australia/Sidney", "time.zone", "no IANA time zone"),
    ("  card_day: {trips_at_most: 10}\n", "", "caps[1].unit", "not bounded"),
    ("feed: opal_trips", "feed: opal", "source.feed", "is unknown; write one of"),
    ('"1/8"\n    on_location', '"1/4"\n    on_location', "mechanism.split", "add up to 9/8"),
    ("slot_minutes: 15", "slot_minutes: 7", "time.slot_minutes", "does not divide"),
    ("slot_minutes: 15", "slot_minutes: '15'", "time.slot_minutes", "an integer"),
    ("[tap_on_slot]}", "[tap_on_hour]}", "tables.on_time.by", "is unknown; use"),
    (
        "[tap_on_slot, tap_on_location]",
        "[tap_on_slot, tap_off_location]",
        "tables.on_time_location.by",
        "never linked",
    ),
    ("name: opal", "name: opel", "name", "the file's own name"),
    ("title:", "family: twice\ntitle:", "family", "stands twice"),
    ("week_starts: monday", "week_starts: sunday", "time.week_starts", "must be monday"),
    ("slots: all_day", 'slots: "21:00-09:00"', "domain.slots", "no stretch of a day"),
    ('landing: "opal/', 'landing: "../opal/', "source.landing", "below the landing zone"),
    ("trip: {contributes: 1}", "trip: {contributes: 2}", "units.trip.contributes", "must be 1"),
    (
        "trip, relation: add_remove, epsilon",
        "trip, rho: '1', epsilon",
        "caps[0].epsilon",
        "one of",
    ),
    ("missing_day: refuse", "missing_day: maybe", "source.missing_day", "is unknown; write"),
    ('weekly_at: "10:00"', 'weekly_at: "25:00"', "schedule.weekly_at", "no time of day"),
]
OF_ITMS = [
    (
        "limits_kmh: [40, 60]",
        "limits_kmh: [fast]",
        "tables.speeding.limits_kmh",
        "positive integers, km/h",
    ),
    (
        "measure: mean_speed, clamp_kmh: 65",
        "measure: count",
        "tables.speed.measure",
        "count is for trips",
    ),
    (
        "by: [slot, cell], measure: mean_speed",
        "by: [slot], measure: mean_speed",
        "tables.speed.by",
        "must be",
    ),
    ("h3_resolution: 7", "h3_resolution: 16", "domain.h3_resolution", "too large; write 0 to 15"),
    (
        "bus_day: {cells_at_most: 40}",
        "card_day: {trips_at_most: 40}",
        "units.card_day",
        "cannot be bounded",
    ),
    ("clamp_kmh: 65", "clamp_kmh: 0", "tables.speed.clamp_kmh", "too small"),
    ('south: "20.5"', 'south: "22.5"', "source.extent.south", "below north"),
    ('south: "20.5"', 'south: "-90.5"', "source.extent.south", "between -90 and 90"),
    ('east: "73.5"', 'east: "here"', "source.extent.east", "must be degrees"),
    ('east: "73.5"', 'est: "73.5"', "source.extent.east", "is missing"),
    ('east: "73.5"', 'east: "73.5", up: "1"', "source.extent.up", "is unknown"),
]
OF_MONTH = [
    (", first_day: 2021-11-15", "", "schedule.first_day", "first_day: is missing"),
    ("first_day: 2021-11-15", "first_day: monday", "schedule.first_day", "'monday' is no date"),
    ("period_days: 31", "period_days: 7", "schedule.first_day", "first_day: is unknown here"),
]
OF_SUBE = [
    ("CHECK OUT: exit", "CHECK OUT: leave", "source.action_names.CHECK OUT", "enter, exit"),
    ("DD/MM/YYYY", "DD.MM.YYYY", "source.date_form", "MM/DD/YYYY"),
    ("grid_decimals: 1", "grid_decimals: 4", "source.grid_decimals", "too large; write 0 to 3"),
    ("TRE: train", "TRE: tram", "source.mode_names", "none of the modes"),
]
BROKEN = [
    (name, text, *case)
    for name, text, cases in (
        ("opal", OPAL, OF_OPAL),
        ("itms", ITMS, OF_ITMS),
        ("itms_month", MONTH, OF_MONTH),
        ("sube", SUBE, OF_SUBE),
    )
    for case in cases
]


@pytest.mark.parametrize(("name", "text", "old", "new", "field", "rule"), BROKEN)
def test_a_broken_programme_is_one_sentence_with_file_line_and_field(
    name: str, text: str, old: str, new: str, field: str, rule: str
) -> None:
    assert old in text
    with pytest.raises(ProgrammeError) as failure:
        parse_programme(text.replace(old, new, 1), f"{name}.yaml")
    assert failure.value.exit_code == 2
    assert failure.value.field == field
    assert rule in str(failure.value)
    assert failure.value.where.startswith(f"{name}.yaml:")
    assert "\n" not in str(failure.value)


def test_the_line_is_that_of_the_field() -> None:
    line = next(n for n, text in enumerate(OPAL.splitlines(), 1) if "Australia/Sydney" in text)
    with pytest.raises(ProgrammeError) as failure:
        parse_programme(OPAL.replace("Australia/Sydney", "Mars/Base"), "opal.yaml")
    assert failure.value.where == f"opal.yaml:{line}"


@pytest.mark.parametrize("text", ["", "- a\n", "a: [b\n", "42\n"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(ProgrammeError, match="opal.yaml:"):
        parse_programme(text, "opal.yaml")


def test_telemetry_has_its_own_measures_and_limits() -> None:
    itms = parse_programme(ITMS, "itms.yaml")
    speed, speeding = itms.tables
    assert (speed.measure, speed.clamp_kmh) == (Measure.MEAN_SPEED, 65)
    assert speeding.statistics == ("over_40", "over_60")
    assert itms.bound_of(ProtectionUnit.BUS_DAY) is not None


@pytest.mark.parametrize(
    ("by", "year_from", "kind"),
    [
        ((), None, "total"),
        ((), ServiceWeek(2016, 27), ""),
        (("tap_on_slot",), None, ""),
        (("origin_zone", "day_period"), None, ""),
        (("destination_zone",), None, ""),
        (("origin_zone", "destination_zone"), None, "flow"),
    ],
)
def test_totals_and_flows_are_told_from_other_tables(
    by: tuple[str, ...], year_from: ServiceWeek | None, kind: str
) -> None:
    table = TableSpec("x", by, trips_max=9, year_from=year_from)
    assert (table.is_total, table.is_flow) == (kind == "total", kind == "flow")


def test_periods_of_another_length_are_counted_from_a_day_that_is_stated() -> None:
    month = parse_programme(MONTH, "itms_month.yaml")
    assert (month.schedule.period_days, month.schedule.first_day) == (31, date(2021, 11, 15))
