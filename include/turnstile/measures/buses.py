"""What bus-days add to their cells: 1 each, 1 if beyond a limit, or a clamped mean and 1."""

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
        beyond: Ints = (counted[self.column] >= limit).astype("int64")
        return beyond


@dataclass(frozen=True, kw_only=True)
class Mean(Kind):
    """Each bus-day adds its own clamped mean to the sum, and 1 to the buses, if it has one.

    Args:
        sums: column of bus-days, sums of readings: milli-km/h, or seconds.
        numbers: column of how many readings are in each sum; 0 where there is no mean.
        is_delay: whether it is of delays, which go as far below zero as above; else of speeds.
        noun: of what, in names of columns.
        unit: in words.
        suffix: of columns in this unit.
    """

    sums: str
    numbers: str
    noun: str
    unit: str
    suffix: str
    is_delay: bool = False

    def statistics(self, options: Options) -> tuple[str, ...]:
        """Return the sum, and the buses in it."""
        del options
        return ("sum", "buses")

    def adds(self, options: Options, statistic: str, counted: BusDays) -> Ints:
        """Return what each bus-day adds to the sum or to the buses."""
        import numpy as np  # programmes are read where nothing is counted

        from turnstile.privacy.mechanisms.bounded_mean import centered_delays, centered_steps

        numbers = counted[self.numbers]
        if statistic == "buses":
            return np.where(numbers > 0, 1, 0)
        (clamp,) = options
        centered = centered_delays if self.is_delay else centered_steps
        steps = centered(counted[self.sums], np.maximum(numbers, 1), clamp)
        return np.where(numbers > 0, steps, 0)

    def mean_range(self, options: Options) -> int | None:
        """Return V km/h, or 2D minutes."""
        return options[0] * (1 + self.is_delay) if options else None

    def least(self, options: Options) -> int:
        """Return the lower end of the range."""
        return -options[0] if self.is_delay else 0
