"""What the canaries of a release try: every case of the bounds, told apart on one run."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import chain, combinations
from pathlib import Path

import pytest
from raw_cases import CASES

from turnstile.pipeline.trials.canaries import raw_files
from turnstile.pipeline.trials.canary_grammar import (
    Case,
    Group,
    Way,
    groups_of_days,
    groups_of_records,
    groups_of_weeks,
    placed,
    twice,
)
from turnstile.pipeline.trials.canary_units import trials_of
from turnstile.sources.feeds.layout import FeedLayout
from turnstile.sources.feeds.made_ids import spellings
from turnstile.sources.feeds.made_records import MadeTrip
from turnstile.sources.feeds.raw_records import records_of
from turnstile.sources.feeds.registry import LAYOUTS

MONDAY = date(2016, 5, 2)
MODES = ("bus", "ferry", "light_rail", "train", "tram")
BOUND = 6
WORKDAY, WEEKEND = frozenset({"workday"}), frozenset({"weekend"})


def kinds(case: Case) -> frozenset[str]:
    """What days a unit travels on."""
    return frozenset("weekend" if day > 4 else "workday" for day in case.weekdays)


def sets_of(modes: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Every set of modes but the empty one."""
    sizes = range(1, len(modes) + 1)
    return set(chain.from_iterable(combinations(modes, size) for size in sizes))


def above(groups: list[Group], days: frozenset[str]) -> set[tuple[str, ...]]:
    """The sets of modes of units that offer more than the bound, nothing shared, on such days."""
    cases = [case for group in groups for case in group if kinds(case) == days]
    return {case.modes for case in cases if case.way is Way.APART and case.number > 2 * BOUND}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_set_of_modes_travels_on_workdays_and_at_weekends(number: int) -> None:
    modes = MODES[:number]
    groups = groups_of_days(modes, BOUND)
    assert above(groups, WORKDAY) == above(groups, WEEKEND) == sets_of(modes)
    assert above(groups_of_weeks(modes, BOUND, [7]), WORKDAY | WEEKEND) >= sets_of(modes)


def test_of_many_modes_each_travels_alone_and_all_others_do() -> None:
    alone = {(mode,) for mode in MODES}
    others = {tuple(other for other in MODES if other != mode) for mode in MODES}
    assert above(groups_of_days(MODES, BOUND), WORKDAY) == alone | others | {MODES}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_each_mode_comes_in_every_way_and_all_at_the_bound_and_one_above(number: int) -> None:
    modes = MODES[:number]
    for groups in (groups_of_days(modes, BOUND), groups_of_weeks(modes, BOUND, [5, 7])):
        cases = [case for group in groups for case in group]
        ways = {(case.modes, case.way) for case in cases if case.number > BOUND}
        assert ways >= {((mode,), way) for mode in modes for way in Way}
        assert {case.number for case in cases if case.modes == modes} >= {BOUND, BOUND + 1}


def test_a_week_is_tried_on_days_of_one_kind_on_few_days_and_on_all() -> None:
    cases = [case for group in groups_of_weeks(MODES[:3], BOUND, [5, 7]) for case in group]
    assert {kinds(case) for case in cases} == {WORKDAY, WEEKEND, WORKDAY | WEEKEND}
    assert {day for case in cases for day in case.weekdays} == {*range(7)}
    assert {len(case.weekdays) for case in cases} >= {2, 5, 7}


def test_units_of_one_day_share_no_mode_and_have_all_of_them() -> None:
    """So a change of a table is that of one unit."""
    every = [
        *groups_of_days(MODES, BOUND),
        *groups_of_weeks(MODES, BOUND, [7]),
        *groups_of_records(MODES, are_apart=True),
    ]
    for group in every:
        assert sorted(mode for case in group for mode in case.modes) == sorted(MODES)
        assert len({case.weekdays for case in group}) == 1


def test_each_group_has_days_of_its_own_and_of_its_kind() -> None:
    groups = [*twice(groups_of_days(MODES, BOUND))]
    of_days = placed(groups, MONDAY, is_of_week=False)
    assert len(of_days) == len(groups)
    assert all(kinds(group[0]) == WEEKEND for day, group in of_days.items() if day.weekday() > 4)
    assert all(kinds(group[0]) == WORKDAY for day, group in of_days.items() if day.weekday() < 5)
    weeks = placed(groups, MONDAY, is_of_week=True)
    assert [*weeks] == [MONDAY + timedelta(weeks=n) for n in range(len(groups))]


@pytest.mark.parametrize("case", ["opal by night", "opal, week by night", "itms by night"])
def test_every_unit_above_its_bound_that_shares_nothing_travels_after_midnight(
    case: str, tmp_path: Path
) -> None:
    lab = CASES[case](tmp_path)
    (trial,) = trials_of(lab.programme, lab.domain, 3)
    late = {
        (row.card if isinstance(row, MadeTrip) else row.vehicle, row.day)
        for row in trial.records
        if (row.on_second or 0 if isinstance(row, MadeTrip) else row.second) >= 86_400
    }
    apart = [
        days for first, days in trial.scopes.items() if trial.groups[first][0].way is Way.APART
    ]
    assert apart
    assert all({day for _, day in late} & {*days} for days in apart)


@pytest.mark.parametrize("case", ["opal, cards in many spellings", "gtfs, buses of digits"])
def test_each_spelling_comes_in_both_files(case: str, tmp_path: Path) -> None:
    lab = CASES[case](tmp_path)
    (trial,) = trials_of(lab.programme, lab.domain, 3)
    form = lab.programme.source.id_form
    assert form is not None
    files = raw_files(lab.programme, [], trial.records, hostile=False)
    for name in ("canary 0", "canary 1"):
        for spelling in spellings(name, form):
            assert str(spelling).encode() in files["a.csv"]
            assert json.dumps(spelling).encode() in files["b.ndjson"]


def test_a_feed_that_makes_no_records_fails_where_its_module_is_imported() -> None:
    given = {"shape": None, "names": (), "fields_of": None, "typed_sql": None}
    with pytest.raises(TypeError, match="'made'"):
        FeedLayout(**given)
    assert FeedLayout(**given, made=lambda *_: []).made(None, None, {}) == []


@pytest.mark.parametrize("case", ["opal", "taps", "tides", "passenger events", "itms", "gtfs"])
def test_a_feed_writes_columns_that_it_reads(case: str, tmp_path: Path) -> None:
    lab = CASES[case](tmp_path)
    (trial, *_) = trials_of(lab.programme, lab.domain, 3)
    layout = LAYOUTS[lab.programme.source.feed]
    read = {*layout.columns_of(dict(layout.names)), *dict(layout.names), *lab.programme.listed}
    for record in records_of(lab.programme, trial.records[:8]):
        assert {*record} <= read | {"riders", "service_date"}
