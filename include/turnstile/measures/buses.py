"""Numbers of bus-days in each cell, all of them or those beyond a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnstile.measures.kind import Kind

if TYPE_CHECKING:
    from turnstile.measures.kind import BusDays, Ints, Options


@dataclass(frozen=True, kw_only=True)
class Buses(Kind):
    """Each bus-day adds 1 to its cell."""


@dataclass(frozen=True, kw_only=True)
class Headway(Kind):
    """Bus-days, read as the minutes between two of them."""


@dataclass(frozen=True, kw_only=True)
class BusesOver(Kind):
    """Each bus-day that is beyond a limit adds 1 to its cell, for each limit apart.

    Args:
        column: of bus-days, what is held against a limit: a greatest speed, in thousandths of the
            limit's unit, or the number of a class.
        is_speed: whether it is a speed, which must be above the limit; a class may be it.
        prefix: of a statistic, before its limit.
        suffix: of the column of buses a day, behind it.
        label: column of the limit in estimates.
    """

    column: str
    prefix: str
    label: str
    suffix: str = ""
    is_speed: bool = False

    def statistics(self, options: Options) -> tuple[str, ...]:
        """Return one vector a limit."""
        return tuple(f"{self.prefix}_{limit}" for limit in options)

    def adds(self, options: Options, statistic: str, counted: BusDays) -> Ints:
        """Return 1 for each bus-day beyond the limit."""
        from turnstile.privacy.mechanisms.distinct_over_limit import over_limit

        limit = options[self.statistics(options).index(statistic)]
        if self.is_speed:
            return over_limit(counted[self.column], limit)
        found: Ints = (counted[self.column] >= limit).astype("int64")
        return found
