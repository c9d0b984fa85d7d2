"""Bounds over a week, and of a table of its own: nobody moves a vector farther than charged."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.bounding_rule import rule_of
from turnstile.programme.spec import TableSpec
from turnstile.release.sensitivities import sensitivities

if TYPE_CHECKING:
    from conftest import Lab

MONDAY = date(2016, 7, 25)
DAYS = tuple(MONDAY + timedelta(days=number) for number in range(3))
PLACES = {"bus": ("b1", "b3"), "train": ("t1", "t2")}
TOTALS = TableSpec("totals", (), trips_max=4, per_cell_max=2)
Row = tuple[object, ...]
Unit = ProtectionUnit


def trip(card: str, day: date, chance: random.Random) -> Row:
    """A trip of few cells, so that many meet; one in four ends after midnight."""
    mode = chance.choice(sorted(PLACES))
    on, off = (chance.choice(PLACES[mode]) for _ in range(2))
    ends = day + timedelta(days=chance.random() < 0.25)
    minutes = (360 * chance.randrange(2) for _ in range(2))
    return (card, mode, day, next(minutes), on, ends, next(minutes), off, "b0")


def weekly(lab: Lab, at_most: int, *, finest: bool, coarse: int | None) -> Lab:
    """The lab with a bound on a card's week, and a table of totals with its own."""
    bounded = lab.bounded(Unit.CARD_WEEK, at_most, finest=finest, coarse=coarse)
    programme = replace(bounded.programme, tables=(*bounded.programme.tables, TOTALS))
    return replace(bounded, programme=programme)


def changes(lab: Lab, before: Sequence[Row], after: Sequence[Row]) -> dict[str, np.ndarray]:
    """What moved each table, its days side by side."""
    counts = lab.count(before, days=DAYS), lab.count(after, days=DAYS)
    return {
        table.name: np.concatenate(
            [counts[1][table.name, "count", d] - counts[0][table.name, "count", d] for d in DAYS]
        )
        for table in lab.programme.tables
    }


def is_within(change: np.ndarray, bound: Sensitivity) -> bool:
    size = np.abs(change)
    return bool(
        size.sum() <= bound.l1
        and (size**2).sum() <= bound.l2_squared
        and size.max() <= bound.linf
        and np.count_nonzero(size) <= bound.l0
    )


def neighbors(chance: random.Random) -> dict[Unit, tuple[list[Row], list[Row]]]:
    """Three pairs of weeks: with and without a trip, a card's day, a card's week."""
    full = [trip("a", chance.choice(DAYS), chance) for _ in range(chance.randrange(3, 12))]
    others = [trip("b", chance.choice(DAYS), chance) for _ in range(3)]
    one_day = [row for row in full if row[2] != DAYS[0]]
    return {
        Unit.TRIP: ([*others, *full[1:]], [*others, *full]),
        Unit.CARD_DAY: ([*others, *one_day], [*others, *full]),
        Unit.CARD_WEEK: (others, [*others, *full]),
    }


@pytest.mark.parametrize(
    "rule", [(False, None), (True, None), (True, 2)], ids=["any", "finest", "coarse"]
)
def test_no_unit_moves_a_week_farther_than_is_charged(
    rule: tuple[bool, int | None], trip_lab: Lab
) -> None:
    chance, (finest, coarse) = random.Random(str(rule)), rule  # noqa: S311 - a seeded search
    for number in range(4):
        lab = weekly(trip_lab, 2 + number, finest=finest, coarse=coarse)
        for unit, pair in neighbors(chance).items():
            moved = changes(lab, *pair)
            for table in lab.programme.tables:
                charged = dict(sensitivities(lab.programme, [table], "count", DAYS))[unit]
                assert charged is not None
                assert is_within(moved[table.name], charged)


def test_a_weekly_bound_that_is_kept_by_day_is_seen(trip_lab: Lab) -> None:
    # Negative control: the same number of trips on each day passes what is charged for the week.
    chance = random.Random(1)  # noqa: S311
    lab, by_day = (trip_lab.bounded(unit, 2) for unit in (Unit.CARD_WEEK, Unit.CARD_DAY))
    rows = [trip("a", day, chance) for day in DAYS for _ in range(4)]
    for table in lab.programme.tables:
        charged = dict(sensitivities(lab.programme, [table], "count", DAYS))[Unit.CARD_WEEK]
        assert charged is not None
        assert is_within(changes(lab, [], rows)[table.name], charged)
        assert not is_within(changes(by_day, [], rows)[table.name], charged)


def test_the_week_of_a_card_keeps_its_bound_and_its_cells(trip_lab: Lab) -> None:
    chance = random.Random(2)  # noqa: S311
    lab = weekly(trip_lab, 5, finest=True, coarse=2)
    counted = lab.count([trip("a", day, chance) for day in DAYS for _ in range(9)], days=DAYS)
    rows = {name: sum(int(counted[name, "count", day].sum()) for day in DAYS)
            for name in {table.name for table in lab.programme.tables}}  # fmt: skip
    assert rows.pop("totals") == 4
    assert set(rows.values()) == {5}
    most = {table.name: max(int(counted[table.name, "count", day].max()) for day in DAYS)
            for table in lab.programme.tables}  # fmt: skip
    assert max(most.values()) <= 2
    assert most["tap_on_slot_tap_on_location"] == 1


def test_a_table_with_a_bound_of_its_own_has_a_rule_of_its_own(trip_lab: Lab) -> None:
    lab = weekly(trip_lab, 5, finest=True, coarse=None)
    rules = Counter(rule_of(lab.programme, table) for table in lab.programme.tables)
    assert sorted(rules.values()) == [1, 6]
    charged = dict(sensitivities(lab.programme, [TOTALS], "count", DAYS))[Unit.CARD_WEEK]
    assert charged == Sensitivity(l0=4, l1=4, l2_squared=8, linf=2)


def test_a_bus_week_is_bounded_over_its_days(bus_lab: Lab) -> None:
    chance = random.Random(3)  # noqa: S311
    lab = bus_lab.bounded(Unit.BUS_WEEK, 4)
    corners = [(21.17, 72.83), (21.19, 72.83), (21.15, 72.83)]

    def reading(bus: str, day: date) -> Row:
        minute, corner = 540 + 60 * chance.randrange(2), chance.choice(corners)
        instant = np.datetime64(f"{day}T00:00") + np.timedelta64(chance.randrange(1440), "m")
        speed = chance.choice((0, 60_000))
        return (bus, instant.item(), day, minute, *corner, speed, "bus", "b0")

    others = [reading("b", day) for day in DAYS]
    readings = [reading("a", day) for day in DAYS for _ in range(6)]
    one_day = [row for row in readings if row[2] != DAYS[0]]
    for unit, before in ((Unit.BUS_WEEK, others), (Unit.BUS_DAY, [*others, *one_day])):
        counts = lab.count(before, days=DAYS), lab.count([*others, *readings], days=DAYS)
        for table in lab.programme.tables:
            for statistic in table.statistics:
                moved = (
                    counts[1][table.name, statistic, None] - counts[0][table.name, statistic, None]
                )
                charged = dict(sensitivities(lab.programme, [table], statistic, DAYS))[unit]
                assert charged is not None
                assert is_within(moved, charged)
    buses = (
        counts[1]["speed", "buses", None].sum()
        - lab.count(others, days=DAYS)["speed", "buses", None].sum()
    )
    assert buses == 4
