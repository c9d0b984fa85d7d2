"""The accounting of the ITMS report, as the report states it, beside what it is worth. Pure.

"Data Anonymization via Differential Privacy" (version 1.0), section III E and F: epsilon of one HAT
and day is sensitivity/B; epsilon of a day is the sum of the K largest; both queries add up. These
figures are the source's, not a guarantee: cells, N, K and the largest speed are read from the data,
so they change with the bus that they should hide (docs/PRIVACY.md 10.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class SourceAccounting:
    """The source's figures; exact, for a bus on one day unless it says otherwise.

    Args:
        speed_hat_max: largest epsilon of one HAT and day, mean speed.
        speed_day: sum of the K largest, mean speed.
        speeding_hat: epsilon of one HAT and day, buses above the limit.
        speeding_day: K times that.
        days: days of the period.
    """

    speed_hat_max: Fraction
    speed_day: Fraction
    speeding_hat: Fraction
    speeding_day: Fraction
    days: int

    @property
    def cumulative(self) -> Fraction:
        """The source's Cumulative-Epsilon-Per-Day."""
        return self.speed_day + self.speeding_day

    @property
    def replaced_day(self) -> Fraction:
        """What replacing one bus-day would cost: up to K cells lose a bus and K others gain one."""
        return 2 * self.cumulative

    @property
    def present_every_day(self) -> Fraction:
        """What a bus that is present on every day of the period would cost."""
        return self.days * self.cumulative


def source_accounting(
    bus_days: Sequence[int], *, cells_of_a_bus: int, noise_b: Fraction, clamp_kmh: int, days: int
) -> SourceAccounting:
    """Return the source's figures from its inputs.

    Args:
        bus_days: N of every HAT: its distinct buses, added up over the days; at least 1 each.
        cells_of_a_bus: K, most HATs of a bus and day.
        noise_b: B, scale of the Laplace noise, > 0.
        clamp_kmh: largest speed less the smallest, km/h.
        days: of the period.

    Raises:
        ValueError: no HAT, or an input that is not positive.

    Examples:
        >>> found = source_accounting(
        ...     [468] * 89, cells_of_a_bus=89, noise_b=Fraction(1), clamp_kmh=65, days=31
        ... )
        >>> [round(float(x), 3) for x in (found.speed_day, found.speeding_day, found.cumulative)]
        [12.361, 2.871, 15.232]
    """
    smallest = min(Fraction(cells_of_a_bus), noise_b, Fraction(clamp_kmh), Fraction(days))
    if not bus_days or min(bus_days) < 1 or smallest <= 0:
        raise ValueError("N, K, B, the range of speeds and the days must all be positive")
    by_hat = sorted((Fraction(clamp_kmh, n) / noise_b for n in bus_days), reverse=True)
    speeding = Fraction(1, days) / noise_b
    return SourceAccounting(
        speed_hat_max=by_hat[0],
        speed_day=sum(by_hat[:cells_of_a_bus], Fraction(0)),
        speeding_hat=speeding,
        speeding_day=cells_of_a_bus * speeding,
        days=days,
    )
