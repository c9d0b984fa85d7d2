"""A pair of taps between those of others: all small days of a card against what is declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import pytest
from bare_programme import bare_programme

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import Feed, SourceSpec
from turnstile.programme.spec import TableSpec
from turnstile.release.sensitivities import sensitivities
from turnstile.service_calendar import ServiceWeek

UNKNOWN, TAPS_MOST = "U", 5
TAPS = [(action, place) for action in ("enter", "exit") for place in ("A", UNKNOWN)]
Taps = Sequence[tuple[str, str]]


def joined(taps: Taps) -> list[tuple[str, str]]:
    """Origins and destinations, by the rule of PRIVACY 4.9: the next tap, if it is a tap-off."""
    following = [*taps, ("enter", "")][1:]
    return [
        (place, after[1] if after[0] == "exit" else UNKNOWN)
        for (action, place), after in zip(taps, following, strict=True)
        if action == "enter"
    ]


def farthest(axes: tuple[int, ...]) -> Sensitivity:
    """How far a pair of taps moves counts of these ends, over all days of a few taps."""
    found = [0, 0, 0, 0]
    for size in range(TAPS_MOST + 1):
        for taps in product(TAPS, repeat=size):
            before = Counter(tuple(row[n] for n in axes) for row in joined(taps))
            for first, second in combinations_with_replacement(range(size + 1), 2):
                for enter, leave in product(("A", UNKNOWN), repeat=2):
                    own = [*taps[:first], ("enter", enter), *taps[first:second], ("exit", leave)]
                    after = Counter(
                        tuple(row[n] for n in axes) for row in joined([*own, *taps[second:]])
                    )
                    moved = [abs(after[key] - before[key]) for key in after | before]
                    each = (sum(map(bool, moved)), sum(moved), sum(m * m for m in moved))
                    found = [max(a, b) for a, b in zip(found, (*each, max(moved)), strict=True)]
    return Sensitivity(l0=found[0], l1=found[1], l2_squared=found[2], linf=found[3])


@pytest.mark.parametrize(
    ("by", "axes", "reached"),
    [
        (("tap_on_location",), (0,), Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)),
        (("tap_off_location",), (1,), Sensitivity(l0=2, l1=3, l2_squared=5, linf=2)),
        (
            ("origin_zone", "destination_zone"),
            (0, 1),
            Sensitivity(l0=4, l1=5, l2_squared=9, linf=2),
        ),
    ],
)
def test_what_is_declared_is_never_passed_and_reached(
    by: tuple[str, ...], axes: tuple[int, ...], reached: Sensitivity
) -> None:
    table = TableSpec("taps", by)
    programme = bare_programme(
        source=SourceSpec(feed=Feed.TAPS, landing="small/{week}/*", modes=("bus",)),
        units=(),
        tables=(table,),
    )
    week = ServiceWeek(2016, 30)
    declared = dict(sensitivities(programme, (table,), "count", week.days))[ProtectionUnit.TRIP]
    found = farthest(axes)
    assert found == reached
    assert declared is not None
    assert found.l0 <= declared.l0
    assert (found.l1, found.linf) == (declared.l1, declared.linf)
    assert found.l2_squared <= declared.l2_squared
