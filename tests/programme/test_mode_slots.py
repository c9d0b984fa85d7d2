"""Slots of each mode come from a public file of hours, or from one stretch of the day."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.errors import ProgrammeError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.mode_slots import clock, hours_csv, slots_by_mode
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.spec import Outside, Programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek, minute_of

INCLUDE = Path(__file__).resolve().parents[2] / "include"
HOURS = "mode,first,last\nbus,03:52,26:03\ntrain,05:30,24:00\nferry,00:00,24:00\n"
WEEK = ServiceWeek(2016, 30)


@pytest.fixture
def include(tmp_path: Path) -> Path:
    (tmp_path / "include/domains").mkdir(parents=True)
    stops = "mode,location,area\nbus,b1,2000\ntrain,t1,Central\n"
    (tmp_path / "include/domains/stops.csv").write_text(stops)
    return tmp_path / "include"


def opal(include: Path, hours: str = HOURS, **domain: object) -> Programme:
    """The programme with two modes, and the hours that a test writes."""
    (include / "domains/hours.csv").write_text(hours)
    text = (INCLUDE / "programmes/opal.yaml").read_text()
    text = text.replace("opal_locations.csv", "stops.csv").replace("all_day", "domains/hours.csv")
    text = text.replace("[bus, ferry, light_rail, train]", "[bus, train]")
    programme = parse_programme(text, "opal.yaml")
    return replace(programme, domain=replace(programme.domain, **domain))


def test_each_mode_has_the_slots_of_its_own_hours_widened_to_full_slots(include: Path) -> None:
    domain = load_domain(opal(include), include)
    train = domain.dimension("train", "tap_on_slot").labels
    assert (train[0], train[-2:], len(train)) == ("05:30", ("23:45", "UNKNOWN"), 74 + 1)
    bus = domain.dimension("bus", "tap_off_slot").labels
    # until 26:03 is until 02:03 on the clock, of every day; from 02:15 to 03:45 nothing runs
    assert bus[:10] == (*(clock(15 * n) for n in range(9)), "03:45")
    assert bus[-2:] == ("23:45", "UNKNOWN")


def test_a_mode_that_runs_all_day_has_no_unknown_time_of_tap_on(include: Path) -> None:
    hours = "mode,first,last\nbus,04:00,28:00\ntrain,04:00,27:45\n"
    domain = load_domain(opal(include, hours), include)
    assert len(domain.dimension("bus", "tap_on_slot").labels) == 96
    assert domain.dimension("bus", "tap_on_slot").unknown is None
    assert domain.dimension("train", "tap_on_slot").unknown == 95


def test_no_mode_has_an_unknown_slot_where_rows_outside_are_dropped(include: Path) -> None:
    domain = load_domain(opal(include, outside=Outside.DROP), include)
    assert domain.dimension("train", "tap_on_slot").unknown is None


def test_other_hours_are_another_domain_another_version_and_another_plan(include: Path) -> None:
    programme = opal(include)
    first = load_domain(programme, include)
    assert first.digest == load_domain(programme, include).digest
    later = opal(include, HOURS.replace("05:30", "05:45"))
    second = load_domain(later, include)
    assert programme.digest == later.digest  # the text of the programme is the same
    assert first.digest != second.digest
    assert first.version.split(", ")[0] == second.version.split(", ")[0]
    assert first.version.split(", ")[1] != second.version.split(", ")[1]
    plans = [make_plan(programme, domain, WEEK).digest for domain in (first, second)]
    assert plans[0] != plans[1]


def test_a_programme_without_a_file_of_hours_has_the_same_slots_in_all_modes() -> None:
    programme = load_programme("opal", INCLUDE)
    slots, version = slots_by_mode(programme, INCLUDE)
    assert version is None
    assert set(slots) == set(programme.source.modes)
    assert {len(mode_slots) for mode_slots in slots.values()} == {96}


@pytest.mark.parametrize(
    ("old", "new", "field", "where", "rule"),
    [
        ("train,05:30,24:00\n", "", "mode", "domains/hours.csv", "no hours of mode 'train'"),
        ("ferry,00:00", "bus,00:00", "mode", "domains/hours.csv:4", "listed twice"),
        ("03:52", "3:52", "first", "domains/hours.csv:2", "no time of service"),
        ("03:52", "03:60", "first", "domains/hours.csv:2", "no time of service"),
        ("26:03", "49:00", "last", "domains/hours.csv:2", "no time of service"),
        ("26:03", "02:03", "last", "domains/hours.csv:2", "hours after midnight as 24:00"),
        ("26:03", "", "last", "domains/hours.csv:2", "is empty"),
        ("first", "from", "first", "domains/hours.csv", "no such column"),
    ],
)
def test_a_broken_file_of_hours_is_one_sentence_with_file_line_and_field(
    include: Path, old: str, new: str, field: str, where: str, rule: str
) -> None:
    assert old in HOURS
    programme = opal(include, HOURS.replace(old, new, 1))
    with pytest.raises(ProgrammeError, match=rule) as error:
        load_domain(programme, include)
    assert (error.value.field, error.value.where) == (field, where)


def test_a_file_of_hours_that_is_not_there_or_not_public_is_refused(include: Path) -> None:
    for name, rule in (("domains/none.csv", "no file include/"), ("../h.csv", "lies outside of")):
        with pytest.raises(ProgrammeError, match=rule) as error:
            load_domain(opal(include, service_hours=name), include)
        assert error.value.field == "domain.slots"


def test_hours_by_mode_are_not_for_telemetry() -> None:
    text = (INCLUDE / "programmes/itms.yaml").read_text()
    old = 'slots: "09:00-21:00"'
    assert old in text
    with pytest.raises(ProgrammeError, match="is for trips") as error:
        parse_programme(text.replace(old, "slots: domains/hours.csv"), "itms.yaml")
    assert error.value.field == "domain.slots"


SPANS = st.tuples(st.integers(0, 1439), st.integers(1, 1440))


@given(span=SPANS, margin=st.integers(0, 60), length=st.sampled_from([15, 30, 60, 240]))
def test_what_is_written_covers_every_minute_of_service_and_no_idle_slot(
    span: tuple[int, int], margin: int, length: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first, last = span[0], span[0] + span[1]
    include = tmp_path_factory.mktemp("include")
    (include / "domains").mkdir()
    text = hours_csv({"bus": (clock(first), clock(last))}, margin_minutes=margin)
    programme = opal(include, text)
    programme = replace(
        programme,
        source=replace(programme.source, modes=("bus",)),
        time=replace(programme.time, slot_minutes=length),
    )
    labels = slots_by_mode(programme, include)[0]["bus"]
    served = {minute % 1440 // length for minute in range(first - margin, last + margin + 1)}
    assert [minute_of(label) // length for label in labels] == sorted(served)
    assert labels == tuple(sorted(labels, key=time.fromisoformat))
