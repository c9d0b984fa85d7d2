"""Weeks in which history misleads: what estimates must not spoil, and where they may lose a little.

Each scenario has rates of this week, rates of earlier weeks, and the cells that it is about. An
error is compared with that of the drawn numbers clipped at 0, over the table and over those cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from estimate_weeks import OPAL, YEARLY, Floats, Noise, Random
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
EVENTS = 30
EVENT_SDS, EVENT_SLOTS = 4, 20
EARLIER_WEEKS = 7
TABLE_LIMIT = 1.02


class Harm(Enum):
    """How much more error than clipped numbers is allowed in the affected cells."""

    TABLE = 1.02
    PLACES_AND_DAYS = 1.05
    HOURS = 1.25
    QUARTER = 2.7


@dataclass(frozen=True)
class Scenario:
    """One hostile week.

    Args:
        name: for people.
        harm: limit in the affected cells.
        rates: of this week, shape (places, days, slots).
        earlier: rates of each earlier week.
        affected: cells that it is about.
        noises: of the earlier weeks.
        gap: day that is a stated gap in some earlier weeks; None if none.
    """

    name: str
    harm: Harm
    rates: Floats
    earlier: tuple[Floats, ...]
    affected: Mask
    noises: tuple[Noise, ...] = (OPAL,) * EARLIER_WEEKS
    gap: int | None = None


def scenarios(rates: Floats, coins: Random) -> Iterator[Scenario]:
    """Yield the hostile weeks of a table of rates."""
    yield from _of_places_and_days(rates)
    yield from _of_tables(rates, coins)
    yield from _of_hours(rates, coins)
    usual = (rates,) * EARLIER_WEEKS
    everywhere = np.ones(rates.shape, dtype=np.bool_)
    noises = (OPAL, YEARLY, YEARLY, OPAL, YEARLY, YEARLY, OPAL)
    yield Scenario("changed scale", Harm.TABLE, rates, usual, everywhere, noises)
    gap_day = _cells(rates, days=[3])
    yield Scenario("gap day in earlier weeks", Harm.PLACES_AND_DAYS, rates, usual, gap_day, gap=3)


def _of_places_and_days(rates: Floats) -> Iterator[Scenario]:
    """Yield weeks in which stations or days are other than they were."""
    places = np.argsort(-rates.sum(axis=(1, 2)))
    some, busiest, two = places[5:25], places[:20], places[20:40]
    usual = (rates,) * EARLIER_WEEKS

    def changed(name: str, affected: Mask, now: Floats, before: Floats | None = None) -> Scenario:
        earlier = usual if before is None else (before,) * EARLIER_WEEKS
        return Scenario(name, Harm.PLACES_AND_DAYS, now, earlier, affected)

    strike = rates.copy()
    strike[:, 2] *= 0.1
    yield changed("strike", _cells(rates, days=[2]), strike)
    closed = rates.copy()
    closed[some] = 0
    yield changed("closed stations", _cells(rates, places=some), closed)
    yield changed("new stations", _cells(rates, places=some), rates, closed)
    swapped = rates.copy()
    swapped[busiest], swapped[two] = rates[two], rates[busiest]
    yield changed("swapped stations", _cells(rates, places=[*busiest, *two]), swapped)
    holiday = rates.copy()
    holiday[:, 0] = rates[:, 6]
    yield changed("holiday", _cells(rates, days=[0]), holiday)
    summer = rates.copy()
    summer[:, 6] = np.roll(rates[:, 6], rates.shape[2] // 24, axis=1)
    yield changed("summer time", _cells(rates, days=[6]), summer)


def _of_tables(rates: Floats, coins: Random) -> Iterator[Scenario]:
    """Yield weeks whose whole table is other than it was, or none."""
    everywhere, usual = np.ones(rates.shape, dtype=np.bool_), (rates,) * EARLIER_WEEKS
    nothing = np.zeros(rates.shape)
    permuted = rates[coins.permutation(len(rates))]
    yield Scenario("all places permuted", Harm.TABLE, permuted, usual, everywhere)
    none = (nothing,) * EARLIER_WEEKS
    yield Scenario("pure noise", Harm.TABLE, nothing, none, everywhere)
    yield Scenario("empty week", Harm.TABLE, nothing, usual, everywhere)
    wild = [coins.exponential(rates.mean(), rates.shape) for _ in range(EARLIER_WEEKS + 1)]
    yield Scenario("structureless", Harm.TABLE, wild[0], tuple(wild[1:]), everywhere)


def _of_hours(rates: Floats, coins: Random) -> Iterator[Scenario]:
    """Yield weeks with events at single places."""
    usual, slots = (rates,) * EARLIER_WEEKS, rates.shape[2]
    giant = _cells(rates, places=[7], days=[5])
    giant[..., : slots * 3 // 4] = False
    yield Scenario("one giant event", Harm.HOURS, rates + 2000 * giant, usual, giant)
    for name, harm, length in (
        ("events of five hours", Harm.HOURS, EVENT_SLOTS),
        ("bursts of a quarter", Harm.QUARTER, 1),
    ):
        affected = np.zeros(rates.shape, dtype=np.bool_)
        for place in coins.permutation(len(rates))[:EVENTS]:
            start = int(coins.integers(slots // 4, slots - length))
            affected[place, coins.integers(rates.shape[1]), start : start + length] = True
        risen = rates + EVENT_SDS * OPAL.cells * affected
        yield Scenario(name, harm, risen, usual, affected)


def _cells(rates: Floats, *, places: object = slice(None), days: object = slice(None)) -> Mask:
    """Mark the cells of some places on some days."""
    mask = np.zeros(rates.shape, dtype=np.bool_)
    of_days = np.zeros(rates.shape[1], dtype=np.bool_)
    of_days[days] = True
    mask[places] = of_days[None, :, None]
    return mask
