"""All small worlds of a programme's rows: none moves too far, and planted faults are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

from turnstile.cli import main
from turnstile.counting import reference
from turnstile.pipeline.trials import canaries
from turnstile.pipeline.trials import small_worlds as searched
from turnstile.pipeline.trials.small_worlds import Movement, moved_too_far, small_worlds
from turnstile.privacy import stability
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme import counting_chain
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Outside, Programme, TableSpec, UnitBound

ROOT = Path(__file__).parents[2]
Fault = Callable[[pytest.MonkeyPatch], None]
DAY, WEEKLY = ProtectionUnit.CARD_DAY, ProtectionUnit.CARD_WEEK


@pytest.fixture
def search_anew() -> Iterator[None]:
    """Nothing that a fault found, or hid, is remembered."""
    searched._farthest.cache_clear()
    counting_chain.chain_of_vector.cache_clear()
    yield
    searched._farthest.cache_clear()
    counting_chain.chain_of_vector.cache_clear()


def programme(name: str, folder: str = "include/programmes", **changes: object) -> Programme:
    path = ROOT / folder / f"{name}.yaml"
    return replace(parse_programme(path.read_text(), path.name), **changes)


def few(bound: UnitBound, *tables_by: tuple[str, ...]) -> Programme:
    """Trips of two modes, counted by few dimensions: seconds for all worlds."""
    tables = tuple(TableSpec("_".join(by), by) for by in tables_by)
    return programme("opal", units=(bound,), tables=tables)


def of_taps(outside: Outside, units: tuple[UnitBound, ...] = ()) -> Programme:
    base = programme("opal_trip", units=units)
    source, domain = replace(base.source, feed=Feed.TAPS), replace(base.domain, outside=outside)
    by = (("tap_on_location",), ("tap_off_location",), ("tap_on_location", "tap_off_location"))
    tables = tuple(TableSpec("_".join(axes), axes) for axes in by)
    return replace(base, source=source, domain=domain, tables=tables)


def of_rides() -> Programme:
    base = of_taps(Outside.DROP)
    source = replace(base.source, feed=Feed.TIDES_PASSENGER_EVENTS)
    by = (("tap_on_location",), ("tap_off_slot", "tap_off_location"), ("route", "tap_off_slot"))
    return replace(base, source=source, tables=tuple(TableSpec("_".join(b), b) for b in by))


def farthest(movements: tuple[Movement, ...], vector: str, unit: ProtectionUnit) -> Movement:
    candidates = [
        movement for movement in movements if movement.vector == vector and movement.unit is unit
    ]
    return max(candidates, key=lambda movement: movement.bound)


@pytest.mark.some(1)
@pytest.mark.parametrize("outside", Outside)
def test_a_pair_of_taps_and_a_ride_move_nothing_farther_than_composed(outside: Outside) -> None:
    """Nor does a record of a shipped programme, as `check` finds in `test_keys`."""
    assert moved_too_far(of_rides()) is None
    assert moved_too_far(of_taps(outside)) is None
    assert moved_too_far(of_taps(outside, (UnitBound(DAY, 2),))) is None


@pytest.mark.parametrize(
    ("own", "vector", "unit", "numbers"),
    [
        (few(UnitBound(DAY, 9), ("tap_on_slot",)), "tap_on_slot", DAY, (3, 3, 9, 3)),
        (
            few(UnitBound(WEEKLY, 9, once_per_cell=True), ("tap_on_slot",)),
            "tap_on_slot",
            WEEKLY,
            (3, 3, 3, 1),
        ),
        (of_rides(), "tap_on_location", ProtectionUnit.TRIP, (1, 1, 1, 1)),
        (of_rides(), "route_tap_off_slot", ProtectionUnit.TRIP, (1, 1, 1, 1)),
        (of_taps(Outside.DROP), "tap_on_location", ProtectionUnit.TRIP, (3, 3, 5, 2)),
        (of_taps(Outside.UNKNOWN), "tap_on_location", ProtectionUnit.TRIP, (1, 1, 1, 1)),
        (of_taps(Outside.UNKNOWN), "tap_off_location", ProtectionUnit.TRIP, (3, 3, 5, 2)),
        (
            of_taps(Outside.UNKNOWN),
            "tap_on_location_tap_off_location",
            ProtectionUnit.TRIP,
            (5, 5, 9, 2),
        ),
    ],
)
def test_what_is_composed_is_reached(
    own: Programme, vector: str, unit: ProtectionUnit, numbers: tuple[int, int, int, int]
) -> None:
    moved = farthest(small_worlds(own), f"{vector}/count", unit)
    assert moved.composed is not None
    assert searched._numbers(moved.composed) == numbers
    assert (moved.farthest.l1, moved.farthest.linf) == (moved.composed.l1, moved.composed.linf)
    assert moved.farthest.l2_squared == moved.composed.l2_squared


def scope_with(further: Callable[[reference.Row], object]) -> Fault:
    """A bound over a smaller piece than the programme's."""

    def put(patch: pytest.MonkeyPatch) -> None:
        judged = reference.ReferenceCount.judged

        def faulty(
            reference_count: reference.ReferenceCount, row: reference.Row
        ) -> reference.Judged:
            right = judged(reference_count, row)
            return right._replace(scope=(right.scope, further(row)))

        patch.setattr(reference.ReferenceCount, "judged", faulty)

    return put


def bound_off_by_one(patch: pytest.MonkeyPatch) -> None:
    lowest = reference.lowest
    patch.setattr(reference, "lowest", lambda rows, at_most: lowest(rows, at_most + 1))


def once_in_a_cell_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference, "lowest_of_each_cell", list)


def one_reading_is_one_bus(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference.ReferenceCount, "_one_of_each_cell", lambda _, rows: rows)


def mean_without_its_clamp(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference.ReferenceCount, "_amount", lambda _, row: row.total)


def a_row_for_each_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference.ReferenceCount, "_amount", lambda *_: 2)


def ends_that_are_not_coupled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stability.Filter, "after", lambda _, before: before)


def taps_that_part_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stability, "_PARTED_TRIPS", 0)


def join_over_cards(patch: pytest.MonkeyPatch) -> None:
    """The tap-off of one card ends the trip of another, which a coarser bound does not see."""
    join = replace(counting_chain.JOIN_OF_TAPS, within=("service_date",))
    patch.setattr(counting_chain, "JOIN_OF_TAPS", join)


def one_trip_displaces_none(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stability, "difference_of_counts", lambda sensitivity: sensitivity)


def limit_of_too_few_dimensions(patch: pytest.MonkeyPatch) -> None:
    """What is declared of a cell of two dimensions is taken for that of each."""
    patch.setattr(stability.Movement, "in_a_cell", lambda *_: 1)


_FEW_OF_DAY = few(UnitBound(DAY, 9), ("tap_on_slot",))
_FEW_OF_WEEK = few(UnitBound(WEEKLY, 9), ("tap_on_slot",))
_ONCE = few(UnitBound(DAY, 9, once_per_cell=True), ("tap_on_slot",), ("tap_on_location",))
_FINEST = few(
    UnitBound(DAY, 9, once_per_finest_cell=True),
    ("tap_on_slot",),
    ("tap_on_slot", "tap_on_location"),
)
FAULTS: dict[str, tuple[Programme, Fault, str]] = {
    "a bound per mode": (_FEW_OF_DAY, scope_with(lambda row: row.mode), "card_day"),
    "a weekly bound per mode": (_FEW_OF_WEEK, scope_with(lambda row: row.mode), "card_day"),
    "a weekly bound per day": (_FEW_OF_WEEK, scope_with(lambda row: row.day), "card_week"),
    "a bound per place": (_FEW_OF_DAY, scope_with(lambda row: row.labels), "card_day"),
    "a bound off by one": (_FEW_OF_DAY, bound_off_by_one, "card_day"),
    "once in a cell skipped": (_ONCE, once_in_a_cell_skipped, "card_day"),
    "once in the finest cell skipped": (_FINEST, once_in_a_cell_skipped, "card_day"),
    "a limit of too few dimensions": (_FINEST, limit_of_too_few_dimensions, "card_day"),
    "a trip that displaces none": (_FEW_OF_DAY, one_trip_displaces_none, "trip"),
    "drop declared as uncoupled": (of_taps(Outside.DROP), ends_that_are_not_coupled, "trip"),
    "taps that part nothing": (of_taps(Outside.UNKNOWN), taps_that_part_nothing, "trip"),
    "two rows for one end of a ride": (of_rides(), a_row_for_each_end, "trip"),
    "a bus per reading": (programme("itms"), one_reading_is_one_bus, "bus_day"),
    "a mean without its clamp": (programme("itms"), mean_without_its_clamp, "bus_day"),
    "a bus bound off by one": (programme("itms"), bound_off_by_one, "bus_day"),
}


def test_without_a_fault_none_of_these_moves_too_far() -> None:
    assert {moved_too_far(small_programme) for small_programme, _, _ in FAULTS.values()} == {None}


@pytest.mark.usefixtures("search_anew")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_with_vector_unit_and_size(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_programme, put, unit = FAULTS[fault]
    put(monkeypatch)
    said = moved_too_far(small_programme)
    assert said is not None
    assert f"one {unit} moves " in said
    assert "in a world of at most" in said


@pytest.mark.usefixtures("search_anew")
def test_a_join_over_cards_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    join_over_cards(monkeypatch)
    said = moved_too_far(of_taps(Outside.UNKNOWN, (UnitBound(DAY, 2),)))
    assert said is not None
    assert "one card_day moves " in said


@pytest.mark.usefixtures("search_anew")
def test_what_was_found_is_kept_by_its_digest_and_found_again_if_it_was_altered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trip_programme = programme("opal_trip")
    first = small_worlds(trip_programme, tmp_path / "small_worlds")
    (kept,) = (tmp_path / "small_worlds").iterdir()
    searched._farthest.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(searched, "worlds", lambda *_: pytest.fail("searched a second time"))
        assert small_worlds(trip_programme, tmp_path / "small_worlds") == first
        patch.setattr(searched, "code_version", lambda: "other code")
        with pytest.raises(pytest.fail.Exception):
            small_worlds(trip_programme, tmp_path / "small_worlds")
    for altered in ("{}", "[]", "", "no JSON"):
        kept.write_text(altered)
        assert small_worlds(trip_programme, tmp_path / "small_worlds") == first


@pytest.mark.usefixtures("search_anew")
def test_check_refuses_what_moves_too_far(
    landed: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bound_off_by_one(monkeypatch)
    assert main(["check", "itms"]) == 2
    assert "itms.yaml: tables: one bus_day moves speed/sum by" in capsys.readouterr().err
    assert landed.nothing_happened()


@pytest.mark.usefixtures("search_anew")
def test_preflight_refuses_it_before_any_charge(
    landed: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bound_off_by_one(monkeypatch)
    monkeypatch.setattr(canaries, "observed_sensitivities", lambda *_: {})
    assert main(["run", "itms", "--week", WEEK]) == 3
    said = capsys.readouterr().err
    assert "one bus_day moves speed/sum by" in said
    assert "nothing was charged" in said
    assert landed.nothing_happened()


def test_plan_shows_what_was_found_beside_what_is_composed(
    landed: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "itms", "--week", WEEK]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = next(line for line in lines if line.startswith("small worlds"))
    assert "composed" in heads
    row = next(
        line
        for line in lines
        if line.endswith("speed/sum") and line.startswith("one bus_day moves")
    )
    assert row.count("l1 975, l2^2 316875") == 2
    assert landed.nothing_happened()
