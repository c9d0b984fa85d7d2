"""A search for neighbours over raw files: no unit moves a table farther than is declared.

Each run puts one unit on each of 24 service days, or of four weeks, into files of every form, and
compares every table of every day: so many pairs a run. On four days more nothing may move.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest
from planted_faults import FAULTS, Fault, planted
from raw_cases import CASES, drawn
from raw_lab import Form, Lab
from raw_neighbours import pairs_of, violations
from row_table import SEEDS

from turnstile.errors import InputError
from turnstile.pipeline.canaries import observed_sensitivities
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import Feed
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

# One of each feed and form of files in every run of the tests; the others, of further bounds and
# tables, when there is time.
OF_FEED_AND_FORM = frozenset(
    {
        "opal",
        "opal, packed",
        "opal, coarse cells, Parquet",
        "taps",
        "taps, week by night, packed",
        "taps by night, Parquet",
        "tides",
        "tides, Parquet",
        "passenger events",
        "passenger events, packed",
        "itms",
        "itms, week, Parquet",
        "delays of vehicle locations, packed",
        "vehicle locations, Parquet",
        "gtfs",
        "gtfs, Parquet",
        "opal, cards in many spellings",
    }
)
BY_BUDGET = [
    pytest.param(case, marks=() if case in OF_FEED_AND_FORM else pytest.mark.long) for case in CASES
]
RUNS = 3  # of 24 pairs, or of four
SEARCHES, PAIRS_OF_SEARCH = 10, 2_000
RUNS_OF_DRAWN = 4
RUNS_TO_FIND = 8


def test_each_feed_and_form_has_a_case_in_every_run(tmp_path: Path) -> None:
    """Feeds and forms that only the long search knows would go unseen for long."""

    def kinds(names: Iterable[str]) -> set[tuple[Feed, Form]]:
        labs = [CASES[name](tmp_path) for name in names]
        return {(one.programme.source.feed, one.form) for one in labs}

    assert kinds(OF_FEED_AND_FORM) == kinds(CASES)


@pytest.mark.parametrize("case", BY_BUDGET)
def test_no_unit_moves_a_table_farther_than_is_declared(case: str, tmp_path: Path) -> None:
    assert next(violations(CASES[case](tmp_path), RUNS, seed=1), None) is None


@pytest.mark.long
@pytest.mark.parametrize("part", range(SEARCHES))
def test_no_unit_of_20_000_pairs_moves_a_table_farther_than_is_declared(
    part: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Any programme, feed, unit, form of files and of ids, day, and places outside."""
    seed, pairs = secrets.randbelow(10**6), 0
    record_property(SEEDS, (f"pairs, part {part}", str(seed)))
    for number in count():
        what, own = drawn(f"{seed}/{number}", tmp_path / str(number))
        found = next(violations(own, RUNS_OF_DRAWN, seed=number), None)
        assert found is None, f"seed {seed}, lab {number}, {what}: {found}"
        pairs += RUNS_OF_DRAWN * pairs_of(own)
        if pairs >= PAIRS_OF_SEARCH:
            break


# ------------------------------------------------------------ each fault put in, and found

PLANTED = [pytest.param(fault, case, id=f"{fault.name}: {case}") for fault, case in planted()]
# One of each kind is looked for in every run of the tests.
SEARCHED = frozenset({"a bound for each mode", "swallowed line", "shape switch"})


def test_the_faults_are_many_and_of_every_unit(tmp_path: Path) -> None:
    units = {CASES[case](tmp_path).unit for fault in FAULTS for case in fault.cases}
    assert units == {unit for unit in ProtectionUnit if unit.days_max is not None}
    assert len(FAULTS) >= 25


@pytest.mark.parametrize(("fault", "case"), PLANTED)
def test_the_canaries_of_a_release_find_a_fault(
    fault: Fault, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gate 8.3 with the fault in the product's own code: some table moves beyond its bound."""
    fault.put(monkeypatch)
    assert moved_too_far(CASES[case](tmp_path), seed=secrets.randbelow(10**4))


@pytest.mark.parametrize(
    ("fault", "case"),
    [
        pytest.param(*one.values, id=one.id, marks=marks)
        for one in PLANTED
        for marks in [() if one.values[0].name in SEARCHED else pytest.mark.long]
    ],
)
def test_the_search_finds_a_fault(
    fault: Fault, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault.put(monkeypatch)
    try:
        found = next(violations(CASES[case](tmp_path), RUNS_TO_FIND, seed=1), None)
    except InputError:  # what one unit's lines did stopped the week
        found = "stopped"
    assert found is not None


@pytest.mark.parametrize("case", BY_BUDGET)
def test_the_canaries_of_a_release_stay_within_what_is_declared(case: str, tmp_path: Path) -> None:
    assert not moved_too_far(CASES[case](tmp_path), seed=5)


def moved_too_far(own: Lab, seed: int) -> bool:
    """Whether some unit moved a draw's vector farther than is declared, or stopped the week."""
    events = make_plan(own.programme, own.domain, ServiceWeek(2016, 30)).events
    try:
        found = observed_sensitivities(own.programme, own.domain, seed=seed)
    except InputError:
        return True
    declared = {(e.label, unit): bound for e in events for unit, bound in e.sensitivities}
    return any(
        not moved.is_within(bound)
        for key, moved in found.items()
        if (bound := declared[key]) is not None
    )
