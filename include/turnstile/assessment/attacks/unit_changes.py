"""What one protection unit changes in the draws of a week: a typical unit, and the worst one.

A *change* is how far one cell of one draw moves. The worst unit is as strong as the declared
sensitivities allow; a unit of a day or more that nothing bounds has none. The typical one is a
stated assumption, the same for every programme: a commuter makes two trips a day, each in cells of
its own, on five days a week; a bus calls in half of the cells that its bound allows, half as far
from the centre of a sum as it could be, every day.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.privacy.accounts import vectors
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import VEHICLE_UNITS, Block, ProtectionUnit, scope_of
from turnstile.privacy.year_to_date import column_squared

TRIPS_A_DAY = 2
DAYS_A_WEEK = 5
_DAILY = (ProtectionUnit.TRIP, ProtectionUnit.CARD_DAY, ProtectionUnit.BUS_DAY)


@dataclass(frozen=True, slots=True)
class Change:
    """How far one cell of one draw moves.

    Args:
        noise: family of the cell's noise.
        scale: of it.
        by: counts (or grid steps), >= 1.
    """

    noise: NoiseFamily
    scale: Fraction
    by: int


Changes = Counter[Change]


def worst_changes(
    events: Sequence[DrawEvent],
    unit: ProtectionUnit,
    scope: str | None = None,
    *,
    with_later: bool = True,
) -> Changes | None:
    """Return the changes of the worst unit in the draws of a release; None if nothing bounds it.

    Of Laplace noise one large change shows more than many small ones of the same sum, so cells are
    filled to `linf` while `l1` lasts; of Gaussian noise the sum of squares alone matters.

    Args:
        events: draws of one release.
        unit: whose records change.
        scope: piece of time that they are in; the one that most draws read by default.
        with_later: with the later weeks of the year that carry those records along.
    """
    changes: Changes = Counter()
    for event, multiple in _touched(events, unit, scope, with_later=with_later):
        bound = dict(event.sensitivities).get(unit)
        if bound is None:
            return None
        for by in _worst(event, bound, multiple):
            changes[Change(event.noise, event.scale, by)] += 1
    return changes


def typical_changes(
    events: Sequence[DrawEvent],
    unit: ProtectionUnit,
    scope: str | None = None,
    *,
    with_later: bool = True,
) -> Changes:
    """Return the changes of the typical unit in the draws of a release, as of `worst_changes`."""
    is_bus = unit in VEHICLE_UNITS
    changes: Changes = Counter()
    by_draw: defaultdict[tuple[str, Fraction], list[DrawEvent]] = defaultdict(list)
    for event, multiple in _touched(events, unit, scope, with_later=with_later, is_whole=False):
        by_draw[event.label, multiple].append(event)
    for (_, multiple), label_events in by_draw.items():
        days = max(1, len({block.service_date for block in label_events[0].blocks}))
        active = 1 if unit in _DAILY else days if is_bus else _travelled(days)
        draws = len(label_events) if days > 1 or is_bus else _travelled(len(label_events))
        cells, step = _bus(label_events[0]) if is_bus else _card(label_events[0], unit)
        by = _multiplied(step * active, multiple)
        changes[Change(label_events[0].noise, label_events[0].scale, by)] += cells * draws
    return changes


def scopes_of(events: Iterable[DrawEvent], unit: ProtectionUnit) -> list[str]:
    """Return the pieces of time that draws read new records of, in order."""
    return sorted({scope_of(unit, block) for event in events for block in event.blocks})


def draws_on(events: Iterable[DrawEvent], unit: ProtectionUnit, scope: str) -> list[DrawEvent]:
    """Return the draws of a release that hold records of a piece of time, carried along or new."""
    return [event for event in events if _multiple(event, unit, scope)]


def releases_on(
    held: Iterable[ChargedRelease], unit: ProtectionUnit, scopes: Sequence[str]
) -> list[ChargedRelease]:
    """Return the charged releases that hold records of one of these pieces of time."""
    return [
        release
        for release in held
        if any(draws_on(release.events, unit, scope) for scope in scopes)
    ]


def _multiple(event: DrawEvent, unit: ProtectionUnit, scope: str) -> int:
    """Return how many times a draw holds the records of a scope; 0 if it does not."""
    if scope in {scope_of(unit, block) for block in event.blocks}:
        return event.step
    modes = {block.mode for block in event.blocks}
    return max(
        (
            times
            for day, times in event.carried
            if scope in {scope_of(unit, Block(day, mode)) for mode in modes}
        ),
        default=0,
    )


def _touched(
    events: Sequence[DrawEvent],
    unit: ProtectionUnit,
    scope: str | None,
    *,
    with_later: bool,
    is_whole: bool = True,
) -> Iterator[tuple[DrawEvent, Fraction]]:
    """Yield the draws that hold a unit's records, and how far they are moved over the sensitivity.

    Args:
        events: draws of one release.
        unit: whose.
        scope: piece of time; the one that most draws read if None.
        with_later: with the root of the sum of squares over all draws of the year (Y1).
        is_whole: one draw for all pieces of a vector, over which a bound holds.
    """
    scope_events = _most_read(events, unit) if scope is None else draws_on(events, unit, scope)
    for event in [vector[0] for vector in vectors(scope_events)] if is_whole else scope_events:
        times = event.step if scope is None else _multiple(event, unit, scope)
        if event.step == 1 or unit.is_lifetime:  # whose sensitivity holds what is carried along
            yield event, Fraction(1)
        elif not with_later:
            yield event, Fraction(times, event.step)
        elif times == event.step:  # stands for the later weeks too
            yield event, Fraction(sqrt(column_squared()) / event.step)


def _most_read(events: Sequence[DrawEvent], unit: ProtectionUnit) -> list[DrawEvent]:
    """Return the draws of the scope that most draws read."""
    by_scope: defaultdict[str, list[DrawEvent]] = defaultdict(list)
    for event in events:
        for scope in {scope_of(unit, block) for block in event.blocks} or {""}:
            by_scope[scope].append(event)
    return max(by_scope.values(), key=len, default=[])


def _travelled(days: int) -> int:
    """Return on how many of so many days a commuter travels.

    Examples:
        >>> [_travelled(days) for days in (1, 5, 7, 30)]
        [1, 5, 5, 22]
    """
    weeks, rest = divmod(days, 7)
    return DAYS_A_WEEK * weeks + min(rest, DAYS_A_WEEK)


def units_of_events(events: Iterable[DrawEvent]) -> list[ProtectionUnit]:
    """Return the units that draws know, from the finest."""
    known = {unit for event in events for unit, _ in event.sensitivities}
    return [unit for unit in ProtectionUnit if unit in known]


def _worst(event: DrawEvent, bound: Sensitivity, multiple: Fraction) -> list[int]:
    """Return the changes of cells that a sensitivity allows and that show most."""
    if event.noise.record.is_pure:
        full, last = divmod(bound.l1, bound.linf)
    else:
        squares = int(bound.l2_squared * multiple**2)
        full, rest = divmod(squares, _multiplied(bound.linf, multiple) ** 2)
        last = isqrt(rest)
    return [_multiplied(bound.linf, multiple)] * full + ([last] if last else [])


def _multiplied(change: int, multiple: Fraction) -> int:
    """Return a change of a draw that holds it so many times."""
    return max(1, round(change * multiple))


def _card(event: DrawEvent, unit: ProtectionUnit) -> tuple[int, int]:
    """Return the cells of a typical card in a draw, and by how much it moves each."""
    step = event.step
    if unit.is_lifetime:
        step += sum(times for _, times in event.carried)
    bound = dict(event.sensitivities).get(ProtectionUnit.CARD_DAY)
    most = 1 if unit is ProtectionUnit.TRIP else TRIPS_A_DAY
    return (most if bound is None else min(most, bound.l1 // event.step)), step


def _bus(event: DrawEvent) -> tuple[int, int]:
    """Return the cells of a typical bus-day in a draw, and by how much it moves each."""
    bound = dict(event.sensitivities).get(ProtectionUnit.BUS_DAY)
    if bound is None:
        return 1, 1
    return max(1, bound.l0 // 2), max(1, bound.linf // 2)
