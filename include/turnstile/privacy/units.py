"""Protection units: whose presence is hidden, and which pieces of the ledger one of them touches.

PRIVACY 1: neighboring data sets differ by all records of one unit (add/remove). A *scope* is the
disjoint piece of time (and, for a trip, of mode and batch) that one instance of a unit can touch;
losses on different scopes of a unit compose in parallel, losses on one scope add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from turnstile.service_calendar import ServiceWeek


class ProtectionUnit(StrEnum):
    """What one neighboring step adds or removes, from the finest unit to the coarsest."""

    TRIP = "trip"
    CARD_DAY = "card_day"
    CARD_WEEK = "card_week"
    CARD = "card"
    BUS_DAY = "bus_day"
    BUS_WEEK = "bus_week"
    BUS = "bus"


class NeighboringRelation(StrEnum):
    """Add/remove is canonical; replace-one is published beside it, at twice its loss."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"


CARD_UNITS = (
    ProtectionUnit.TRIP,
    ProtectionUnit.CARD_DAY,
    ProtectionUnit.CARD_WEEK,
    ProtectionUnit.CARD,
)
VEHICLE_UNITS = (ProtectionUnit.BUS_DAY, ProtectionUnit.BUS_WEEK, ProtectionUnit.BUS)


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """A disjoint piece of the private data: every row belongs to one, by that row alone.

    A trip belongs to the block of its tap-on's service day, even when it ends after midnight.
    """

    service_date: date
    mode: str
    batch: str = "b0"


def scope_of(unit: ProtectionUnit, block: Block) -> str:
    """Name the piece of the ledger that one instance of a unit can touch.

    Examples:
        >>> scope_of(ProtectionUnit.TRIP, Block(date(2016, 7, 25), "bus"))
        '2016-07-25/bus/b0'
        >>> scope_of(ProtectionUnit.CARD_WEEK, Block(date(2016, 7, 25), "bus"))
        '2016-W30'
        >>> scope_of(ProtectionUnit.CARD, Block(date(2016, 7, 25), "bus"))
        'ever'
    """
    if unit is ProtectionUnit.TRIP:
        return f"{block.service_date}/{block.mode}/{block.batch}"
    if unit in (ProtectionUnit.CARD_DAY, ProtectionUnit.BUS_DAY):
        return str(block.service_date)
    if unit in (ProtectionUnit.CARD_WEEK, ProtectionUnit.BUS_WEEK):
        return str(ServiceWeek.containing(block.service_date))
    return "ever"
