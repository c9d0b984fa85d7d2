"""Protection units: whose presence is hidden, and which pieces of the ledger one of them touches.

PRIVACY 1: neighboring data sets differ by all records of one unit (add/remove). A *scope* is the
disjoint piece of time (and, for a trip, of mode and batch) that one instance of a unit can touch;
losses on different scopes of a unit compose in parallel, losses on one scope add up. A unit is one
record: a line of `ProtectionUnit`, from which everything else about it follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Self

from turnstile.service_calendar import DAYS_PER_WEEK, ServiceWeek


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """A disjoint piece of the private data: every row belongs to one, by that row alone.

    A trip belongs to the block of its tap-on's service day, even when it ends after midnight.
    """

    service_date: date
    mode: str
    batch: str = "b0"


class Subject(StrEnum):
    """Whose records a unit is made of."""

    CARD = "card"
    BUS = "bus"


def _block(block: Block) -> str:
    """Name the block itself."""
    return f"{block.service_date}/{block.mode}/{block.batch}"


def _day(block: Block) -> str:
    """Name the service day."""
    return str(block.service_date)


def _week(block: Block) -> str:
    """Name the service week."""
    return str(ServiceWeek.containing(block.service_date))


def _ever(_: Block) -> str:
    """Name all of time."""
    return "ever"


class ProtectionUnit(StrEnum):
    """What one neighboring step adds or removes; of each subject from the finest to the coarsest.

    A record holds: name; who it is, in words; subject; service days that one instance can touch at
    most (0: it is a single record, None: any number); scope of a block; key under `units` of a
    programme that bounds its records, if it can be bounded by itself.
    """

    noun: str
    subject: Subject
    days_max: int | None
    scope: Callable[[Block], str]
    bound_key: str | None

    def __new__(  # noqa: PLR0913, PLR0917 - a record is made from its fields
        cls,
        name: str,
        noun: str = "",
        subject: Subject = Subject.CARD,
        days_max: int | None = None,
        scope: Callable[[Block], str] = _ever,
        bound_key: str | None = None,
    ) -> Self:
        """Make the text that the unit is, and hang its record on it."""
        unit = str.__new__(cls, name)
        unit._value_ = name
        unit.noun, unit.subject, unit.days_max = noun, subject, days_max
        unit.scope, unit.bound_key = scope, bound_key
        return unit

    TRIP = "trip", "a trip", Subject.CARD, 0, _block, "contributes"
    CARD_DAY = "card_day", "the day of a card", Subject.CARD, 1, _day, "trips_at_most"
    CARD_WEEK = (
        "card_week",
        "the week of a card",
        Subject.CARD,
        DAYS_PER_WEEK,
        _week,
        "trips_at_most",
    )
    CARD = "card", "a card", Subject.CARD, None, _ever, None
    BUS_DAY = "bus_day", "the day of a bus", Subject.BUS, 1, _day, "cells_at_most"
    BUS_WEEK = "bus_week", "the week of a bus", Subject.BUS, DAYS_PER_WEEK, _week, "cells_at_most"
    BUS = "bus", "a bus", Subject.BUS, None, _ever, None

    @property
    def is_record(self) -> bool:
        """Whether one instance is a single record."""
        return self.days_max == 0

    @property
    def is_lifetime(self) -> bool:
        """Whether one instance is all records of a card or bus ever."""
        return self.days_max is None


def units_of(subject: Subject) -> tuple[ProtectionUnit, ...]:
    """Return the units of a subject, from the finest to the coarsest."""
    return tuple(unit for unit in ProtectionUnit if unit.subject is subject)


CARD_UNITS = units_of(Subject.CARD)
VEHICLE_UNITS = units_of(Subject.BUS)


class NeighboringRelation(StrEnum):
    """Add/remove is canonical; replace-one stands beside it: twice the epsilon, four times rho."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"


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
    return unit.scope(block)
