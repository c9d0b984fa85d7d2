"""A pair of taps between those of others: all small days of a card against what is declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import pytest
from bare_programme import bare_programme

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.sensitivities import records_at_most
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import Feed, SourceSpec
from turnstile.programme.spec import DomainSpec, Outside, TableSpec
from turnstile.release.sensitivities import sensitivities
from turnstile.service_calendar import ServiceWeek

UNKNOWN = "U"
Taps = Sequence[tuple[str, str]]


def joined(taps: Taps) -> list[tuple[str, str]]:
    """Origins and destinations, by the rule of PRIVACY 4.9: the next tap, if it is a tap-off."""
    following = [*taps, ("enter", "")][1:]
    return [
        (place, after[1] if after[0] == "exit" else UNKNOWN)
        for (action, place), after in zip(taps, following, strict=True)
        if action == "enter"
    ]


def counted(taps: Taps, axes: tuple[int, ...], *, drops: bool) -> Counter[tuple[str, ...]]:
    """Counts of these ends; a trip that lacks a label at either may be dropped."""
    rows = (row for row in joined(taps) if not (drops and UNKNOWN in row))
    return Counter(tuple(row[n] for n in axes) for row in rows)


def farthest(axes: tuple[int, ...], *, drops: bool) -> Sensitivity:
    """How far a pair of taps moves counts of these ends, over all days of a few taps."""
    places, taps_most = (("A", "B", UNKNOWN), 3) if drops else (("A", UNKNOWN), 5)
    maxima = [0, 0, 0, 0]
    for size in range(taps_most + 1):
        for taps in product(product(("enter", "exit"), places), repeat=size):
            before = counted(taps, axes, drops=drops)
            for first, second in combinations_with_replacement(range(size + 1), 2):
                for enter, leave in product(places, repeat=2):
                    head = [*taps[:first], ("enter", enter), *taps[first:second], ("exit", leave)]
                    after = counted([*head, *taps[second:]], axes, drops=drops)
                    moved = [abs(after[key] - before[key]) for key in after | before] or [0]
                    each = (sum(map(bool, moved)), sum(moved), sum(m * m for m in moved))
                    maxima = [max(a, b) for a, b in zip(maxima, (*each, max(moved)), strict=True)]
    return Sensitivity(*maxima)


ON, OFF, FLOW = ("tap_on_location",), ("tap_off_location",), ("origin_zone", "destination_zone")


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("by", "axes", "others", "outside", "reached"),
    [
        (ON, (0,), (OFF,), Outside.UNKNOWN, (1, 1, 1, 1)),
        (OFF, (1,), (ON,), Outside.UNKNOWN, (2, 3, 5, 2)),
        (FLOW, (0, 1), (), Outside.UNKNOWN, (4, 5, 9, 2)),
        (ON, (0,), (OFF,), Outside.DROP, (2, 3, 5, 2)),
        (ON, (0,), (FLOW,), Outside.DROP, (2, 3, 5, 2)),
        (OFF, (1,), (ON,), Outside.DROP, (2, 3, 5, 2)),
    ],
)
def test_what_is_declared_is_never_passed_and_reached(
    by: tuple[str, ...],
    axes: tuple[int, ...],
    others: tuple[tuple[str, ...], ...],
    outside: Outside,
    reached: tuple[int, int, int, int],
) -> None:
    sensitivity = farthest(axes, drops=outside is Outside.DROP)
    assert sensitivity == Sensitivity(*reached)
    declared = declared_of(by, *others, outside=outside)
    assert (sensitivity.l1, sensitivity.linf) == (declared.l1, declared.linf)
    assert sensitivity.l0 <= declared.l0
    assert sensitivity.l2_squared <= declared.l2_squared


def declared_of(*tables_by: tuple[str, ...], outside: Outside) -> Sensitivity:
    """What is declared for a trip of the first of these tables."""
    tables = tuple(TableSpec(f"taps_{n}", by) for n, by in enumerate(tables_by))
    programme = bare_programme(
        source=SourceSpec(feed=Feed.TAPS, landing="small/{week}/*", modes=("bus",)),
        domain=DomainSpec("domains/stops.csv", None, None, 0, 0, 1440, outside),
        units=(),
        tables=tables,
    )
    days = ServiceWeek(2016, 30).days
    declared = dict(sensitivities(programme, tables[:1], "count", days))[ProtectionUnit.TRIP]
    assert declared is not None
    return declared


def test_a_tap_on_that_no_table_of_ends_can_drop_is_one_record() -> None:
    assert declared_of(ON, outside=Outside.DROP) == records_at_most(1)
