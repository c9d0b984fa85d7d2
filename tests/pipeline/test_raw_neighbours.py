"""A search for neighbours over raw files: no unit moves a table farther than is declared.

Each run puts one unit on each of 24 service days, or of four weeks, into files of every form, and
compares every table of every day: so many pairs a run. On four days more nothing may move.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from planted_faults import FAULTS, FAULTS_OF_FORMS, Fault, planted
from raw_cases import CASES, drawn
from raw_lab import Form, Lab
from raw_neighbours import pairs_of, violations
from row_table import SEEDS
from trials_once import READ, trials_once

from turnstile.errors import InputError
from turnstile.pipeline.trials.canaries import observed_sensitivities
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.source_spec import Feed
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest import week

# Each feed and each form of files in every run of the tests; their product, further bounds and
# tables, when there is time.
OF_FEED_AND_FORM = frozenset(
    {
        "opal",
        "opal, coarse cells, Parquet",
        "opal, cards in many spellings",
        "taps, week by night, packed",
        "taps in UTF-16",
        "tides, Parquet",
        "passenger events, packed",
        "hired trips",
        "hired trips, each a unit, packed",
        "gates, workbook and Arrow",
        "counters of gates",
        "itms",
        "itms in miles, packed",
        "itms, week, Parquet",
        "delays of vehicle locations, packed",
        "gtfs, protobuf",
        "calls of trip updates, protobuf",
        "calls of ist-daten by night",
        "hfp, delays by route, Parquet",
        "siri, XML",
    }
)
BY_BUDGET = [
    pytest.param(case, marks=() if case in OF_FEED_AND_FORM else pytest.mark.long) for case in CASES
]
# Canaries write every form themselves: what differs in it alone is no case of theirs. Each unit is
# tried in every run; each feed is by the search, by its faults and by the weeks of its features.
OF_FORM_ALONE = frozenset(
    {
        *("opal, packed", "tides, Parquet", "passenger events, packed", "gtfs, Parquet"),
        *("gates, Parquet", "counters of gates, packed"),
        *(case for case in CASES if case.endswith((", protobuf", ", XML", ", workbook and Arrow"))),
    }
)
OF_UNIT = frozenset(
    {"opal", "taps, week by night, packed", "passenger events", "gtfs", "itms, week, Parquet"}
)
INCLUDE = Path(__file__).parents[2] / "include"
RUNS = 1  # of 24 pairs, or of four; the long search has 20,000
SEARCHES, PAIRS_OF_SEARCH = 10, 2_000
RUNS_OF_DRAWN = 4
RUNS_TO_FIND = 40
TURN = secrets.randbelow(10**4)  # of the canaries, another in every run


@pytest.fixture(scope="module", autouse=True)
def files_made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let a trial and its files be made once, and read once unless reading has a fault."""
    with trials_once(tmp_path_factory.mktemp("read")):
        yield


@pytest.fixture(scope="module")
def lab_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lab]:
    """The lab of each case, made once, before anything is wrong."""
    return cache(lambda case: CASES[case](tmp_path_factory.mktemp("lab")))


def test_each_feed_form_and_unit_has_a_case_in_every_run(tmp_path: Path) -> None:
    """Feeds and forms that only the long search knows would go unseen for long."""

    def kinds(names: Iterable[str]) -> set[Feed | Form | ProtectionUnit]:
        labs = [CASES[name](tmp_path) for name in names]
        return {kind for lab in labs for kind in (lab.programme.source.feed, lab.form, lab.unit)}

    assert kinds(OF_FEED_AND_FORM) == kinds(CASES)
    for alone in ("siri, XML", "gates, workbook and Arrow", "itms, week, Parquet"):
        assert kinds(OF_FEED_AND_FORM - {alone}) != kinds(CASES)
    assert {CASES[name](tmp_path).unit for name in OF_UNIT} == {
        unit for unit in ProtectionUnit if unit.days_max is not None
    }


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
        what, lab = drawn(f"{seed}/{number}", tmp_path / str(number))
        violation = next(violations(lab, RUNS_OF_DRAWN, seed=number), None)
        assert violation is None, f"seed {seed}, lab {number}, {what}: {violation}"
        pairs += RUNS_OF_DRAWN * pairs_of(lab)
        if pairs >= PAIRS_OF_SEARCH:
            break


# ------------------------------------------------------------ each fault put in, and found

PLANTED = [*planted()]
# Bounds that go wrong for some records of a unit: of every unit in every run. Of others one case.
OF_EVERY_UNIT = frozenset(
    {
        "a bound for each mode",
        "a bound for workdays, one for weekends",
        "no bound at weekends",
        "a bound for hours after midnight",
        "a bound for each file",
    }
)
# The search has three to find in every run.
SEARCHED = frozenset({"a bound for each mode", "swallowed line", "shape switch"})


def cases_of(is_in_every_run: Callable[[Fault, str], bool]) -> list[ParameterSet]:
    """Each fault with each case that shows it, the most of them when there is time."""
    return [
        pytest.param(
            fault,
            case,
            id=f"{fault.name}: {case}",
            marks=() if is_in_every_run(fault, case) else pytest.mark.long,
        )
        for fault, case in PLANTED
    ]


def test_the_faults_are_many_and_of_every_unit(tmp_path: Path) -> None:
    units = {CASES[case](tmp_path).unit for fault in FAULTS for case in fault.cases}
    assert units == {unit for unit in ProtectionUnit if unit.days_max is not None}
    assert len(FAULTS) >= 25


def test_a_fault_is_known_to_be_in_reading_by_what_it_replaces() -> None:
    """Files that were read without it would hide it; others count what was read before."""
    fault_of = {fault.name: fault for fault in FAULTS}
    for read, counted in (("swallowed line", "no bound"), ("shape switch", "counted twice")):
        assert fault_of[read].is_in_reading
        assert not fault_of[counted].is_in_reading


@pytest.mark.parametrize(
    ("fault", "case"),
    cases_of(lambda fault, case: fault.name in OF_EVERY_UNIT or case == fault.cases[0]),
)
def test_the_canaries_of_a_release_find_a_fault(
    fault: Fault, case: str, lab_of: Callable[[str], Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gate 8.3 with the fault in the product's own code: some table moves beyond its bound."""
    lab = lab_of(case)
    if fault.is_in_reading:
        monkeypatch.setattr(week, "ingest", READ)
    fault.put(monkeypatch)
    assert moved_too_far(lab, TURN), f"turn {TURN}"


@pytest.mark.parametrize(
    ("fault", "case"),
    cases_of(lambda fault, case: fault.name in SEARCHED and case == fault.cases[0]),
)
def test_the_search_finds_a_fault(
    fault: Fault, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault.put(monkeypatch)
    assert found_by_search(case, tmp_path)


def found_by_search(case: str, folder: Path) -> bool:
    try:
        return next(violations(CASES[case](folder), RUNS_TO_FIND, seed=1), None) is not None
    except InputError:  # what one unit's records did stopped the week
        return True


@pytest.mark.parametrize(
    ("fault", "case"),
    [
        pytest.param(fault, case, id=f"{fault.name}: {case}")
        for fault in FAULTS_OF_FORMS
        for case in fault.cases
    ],
)
def test_the_search_finds_a_fault_of_a_form(
    fault: Fault, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that canaries do not write."""
    fault.put(monkeypatch)
    assert found_by_search(case, tmp_path)


_OF_BOUND = (
    "no bound",
    "one too many",
    "no bound at weekends",
    "no bound on workdays",
    "a bound for each file",
)
_OF_CARDS = (
    *_OF_BOUND,
    "a bound for each mode",
    "no bound in the first mode",
    "no bound in the last mode",
    "no bound in the first mode alone",
    "a bound for each slot",
    "a bound for each place",
)
_OF_WEEKS = ("a bound for workdays, one for weekends", "a bound for each day of a week")
_OF_BUSES = (*_OF_BOUND, "a bound for each slot of buses", "a bound for each hexagon")
SHIPPED = {
    "opal": _OF_CARDS,
    "opal_sums": _OF_CARDS,
    "opal_year": (*_OF_CARDS, *_OF_WEEKS),
    "opal_flows": (*_OF_CARDS, *_OF_WEEKS),
    "opal_trip": ("a record that came twice", "counted twice"),
    "itms": _OF_BUSES,
    "itms_month": _OF_BUSES,
    "itms_survey": _OF_BUSES,
    "itms_delays": (*_OF_BUSES, "delays without a clamp"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, faults in SHIPPED.items() for fault in faults]
)
def test_the_canaries_of_a_shipped_programme_find_a_fault(
    name: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programme = load_programme(name, INCLUDE)
    lab = Lab(programme, load_domain(programme, INCLUDE), programme.mechanism.unit)
    (known,) = (candidate for candidate in FAULTS if candidate.name == fault)
    if known.is_in_reading:
        monkeypatch.setattr(week, "ingest", READ)
    known.put(monkeypatch)
    assert moved_too_far(lab, TURN), f"turn {TURN}"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case in OF_UNIT else pytest.mark.long)
        for case in CASES
        if case not in OF_FORM_ALONE
    ],
)
def test_the_canaries_of_a_release_stay_within_what_is_declared(
    case: str, lab_of: Callable[[str], Lab], record_property: Callable[[str, object], None]
) -> None:
    turn = 5
    if case not in OF_UNIT:
        turn = TURN
        record_property(SEEDS, (f"canaries, {case}", str(turn)))
    assert not moved_too_far(lab_of(case), turn), f"turn {turn}"


def moved_too_far(lab: Lab, turn: int) -> bool:
    """Whether some unit moved a draw's vector farther than is declared, or stopped the week."""
    events = make_plan(lab.programme, lab.domain, ServiceWeek(2016, 30)).events
    try:
        moves = observed_sensitivities(lab.programme, lab.domain, seed=turn)
    except InputError:
        return True
    declared = {(e.label, unit): bound for e in events for unit, bound in e.sensitivities}
    return any(
        not moved.is_within(bound)
        for key, moved in moves.items()
        if (bound := declared[key]) is not None
    )
