"""What one protection unit changes in the draws of a week: a typical unit, and the worst one.

A *change* is how far one cell of one draw moves. The worst unit is as strong as the declared
sensitivities allow; a unit of a day or more that nothing bounds has none. The typical one is a
stated assumption, the same for every programme: a commuter makes two trips a day, each in cells of
its own, on five days a week; a bus calls in half of the cells that its bound allows, half as far
from the centre of a sum as it could be, every day.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, sqrt

from turnstile.privacy.accounts import vectors
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import VEHICLE_UNITS, ProtectionUnit, scope_of
from turnstile.privacy.year_to_date import column_squared

TRIPS_A_DAY = 2
DAYS_A_WEEK = 5
_WIDE = 2  # scale from which on sums of discrete Gaussians are discrete Gaussians
_DAILY = (ProtectionUnit.TRIP, ProtectionUnit.CARD_DAY, ProtectionUnit.BUS_DAY)
_WORST = {
    ProtectionUnit.TRIP: "the trip that shows most",
    ProtectionUnit.CARD_DAY: "the day of a card that shows most within its bound",
    ProtectionUnit.CARD_WEEK: "the week of a card that shows most within its bound",
    ProtectionUnit.CARD: "the card that shows most within its bound, every week",
    ProtectionUnit.BUS_DAY: "the day of a bus that shows most within its bound",
    ProtectionUnit.BUS_WEEK: "the week of a bus that shows most within its bound",
    ProtectionUnit.BUS: "the bus that shows most within its bound, every week",
}
_TYPICAL = {
    ProtectionUnit.TRIP: "one trip",
    ProtectionUnit.CARD_DAY: f"a card's day of {TRIPS_A_DAY} trips",
    ProtectionUnit.CARD_WEEK: (
        f"a commuter's week ({TRIPS_A_DAY} trips a day on {DAYS_A_WEEK} days)"
    ),
    ProtectionUnit.CARD: (
        f"a daily commuter ({TRIPS_A_DAY} trips a day on {DAYS_A_WEEK} days a week)"
    ),
    ProtectionUnit.BUS_DAY: "the day of a bus in half of the cells that its bound allows",
    ProtectionUnit.BUS_WEEK: "the week of a bus in half of the cells that its bound allows",
    ProtectionUnit.BUS: "a bus in half of the cells that its bound allows, every day",
}


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


def name_of(unit: ProtectionUnit, *, is_worst: bool) -> str:
    """Return who is meant, in words."""
    if is_worst:
        return _WORST.get(unit, f"{unit.noun} that shows most within its bound")
    return _TYPICAL.get(unit, unit.noun)


def worst_changes(events: Sequence[DrawEvent], unit: ProtectionUnit) -> Changes | None:
    """Return the changes of the worst unit in a week; None where nothing bounds it.

    Of Laplace noise one large change shows more than many small ones of the same sum, so cells are
    filled to `linf` while `l1` lasts; of Gaussian noise the sum of squares alone matters.
    """
    found: Changes = Counter()
    for vector in vectors(events_of_one(events, unit)):
        event = vector[0]  # a bound holds over all pieces of a vector
        bound = dict(event.sensitivities).get(unit)
        if bound is None:
            return None
        if event.step > 1 and not unit.is_lifetime:  # its week is in later draws too
            bound = replace(bound, l2_squared=bound.l2_squared * column_squared() // event.step**2)
        for by in _worst(event, bound):
            found[Change(event.noise, event.scale, by)] += 1
    return found


def typical_changes(events: Sequence[DrawEvent], unit: ProtectionUnit) -> Changes:
    """Return the changes of the typical unit in a week."""
    is_bus = unit in VEHICLE_UNITS
    found: Changes = Counter()
    by_label: defaultdict[str, list[DrawEvent]] = defaultdict(list)
    for event in events_of_one(events, unit):
        by_label[event.label].append(event)
    for own in by_label.values():
        days = max(1, len({block.service_date for block in own[0].blocks}))
        active = 1 if unit in _DAILY else days if is_bus else min(days, DAYS_A_WEEK)
        draws = len(own) if days > 1 or is_bus else min(len(own), DAYS_A_WEEK)
        cells, step = _bus(own[0]) if is_bus else _card(own[0], unit)
        step *= _multiple(own[0], unit)
        found[Change(own[0].noise, own[0].scale, step * active)] += cells * draws
    return found


def summed_up(changes: Mapping[Change, int]) -> Changes:
    """Return changes that show as much, with the cells of a Gaussian change summed up into one.

    Their sum is all that a guess uses. A sum of m discrete Gaussians is one of sqrt(m) sigma but
    for a chance of 10 m e^(-pi^2 sigma^2) (Kairouz, Liu & Steinke 2021): 7e-17 m from sigma = 2 on.

    Examples:
        >>> summed_up({Change(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(3), 1): 4})
        Counter({Change(noise=<NoiseFamily.DISCRETE_GAUSSIAN: ...>, scale=Fraction(6, 1), by=4): 1})
    """
    found: Changes = Counter()
    for change, cells in changes.items():
        if change.noise.record.adds_up and change.scale >= _WIDE:
            scale = Fraction(sqrt(cells) * float(change.scale))  # a float64, as every draw's
            found[replace(change, scale=scale, by=cells * change.by)] += 1
        else:
            found[change] += cells
    return found


def events_of_one(events: Sequence[DrawEvent], unit: ProtectionUnit) -> list[DrawEvent]:
    """Return the draws that one instance of a unit can touch: those of its most charged scope."""
    by_scope: defaultdict[str, list[DrawEvent]] = defaultdict(list)
    for event in events:
        for scope in {scope_of(unit, block) for block in event.blocks} or {""}:
            by_scope[scope].append(event)
    return max(by_scope.values(), key=len, default=[])


def units_of_events(events: Iterable[DrawEvent]) -> list[ProtectionUnit]:
    """Return the units that draws know, from the finest."""
    known = {unit for event in events for unit, _ in event.sensitivities}
    return [unit for unit in ProtectionUnit if unit in known]


def _worst(event: DrawEvent, bound: Sensitivity) -> list[int]:
    """Return the changes of cells that a sensitivity allows and that show most."""
    if event.noise.record.is_pure:
        full, last = divmod(bound.l1, bound.linf)
    else:
        full, rest = divmod(bound.l2_squared, bound.linf**2)
        last = isqrt(rest)
    return [bound.linf] * full + ([last] if last else [])


def _card(event: DrawEvent, unit: ProtectionUnit) -> tuple[int, int]:
    """Return the cells of a typical card in a draw, and by how much it moves each."""
    if unit is ProtectionUnit.TRIP:
        return 1, 1
    bound = dict(event.sensitivities).get(ProtectionUnit.CARD_DAY)
    return (TRIPS_A_DAY if bound is None else min(TRIPS_A_DAY, bound.l1 // event.step)), 1


def _multiple(event: DrawEvent, unit: ProtectionUnit) -> int:
    """Return how far one record moves what is drawn of it, over the year where that carries it.

    Of Gaussian noise the sum of squares alone matters, so one change stands for those of all draws.
    """
    if event.step == 1:
        return 1
    if unit.is_lifetime:
        return event.step + sum(multiple for _, multiple in event.carried)
    return isqrt(column_squared()) + 1


def _bus(event: DrawEvent) -> tuple[int, int]:
    """Return the cells of a typical bus-day in a draw, and by how much it moves each."""
    bound = dict(event.sensitivities).get(ProtectionUnit.BUS_DAY)
    if bound is None:
        return 1, 1
    return max(1, bound.l0 // 2), max(1, bound.linf // 2)
