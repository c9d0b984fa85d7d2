"""Every measure that a programme can name, as plain data: one record each."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from turnstile.measures.buses import Buses, BusesOver, Headway, Mean
from turnstile.measures.count import Count
from turnstile.measures.kind import Kind

_NONE = Kind()  # a member that is looked up by its name has its record already


class Measure(StrEnum):
    """What a table says of each of its cells."""

    kind: Kind

    def __new__(cls, name: str, kind: Kind = _NONE) -> Self:
        """Make the text that the measure is, and hang its record on it."""
        measure = str.__new__(cls, name)
        measure._value_ = name
        measure.kind = kind
        return measure

    COUNT = "count", Count()
    MEAN_SPEED = "mean_speed", Mean(
        option="clamp_kmh", sums="speed_sum_milli", numbers="readings",
        noun="speed", unit="km/h", suffix="kmh", has_every_bus=True,
    )  # fmt: skip
    BUSES = "buses", Buses(has_every_bus=True)
    BUSES_OVER = "buses_over", BusesOver(
        option="limits_kmh", column="speed_max_milli", is_speed=True,
        prefix="over", suffix="_kmh", label="limit_kmh",
    )  # fmt: skip
    HEADWAY = "headway", Headway(has_every_bus=True)
    MEAN_DELAY = "mean_delay", Mean(
        option="clamp_minutes", sums="delay_sum_s", numbers="delays", is_delay=True,
        row_column="delay_s", states="delays", by_timetable=True,
        noun="delay", unit="minutes", suffix="minutes",
    )  # fmt: skip
    OCCUPANCY = "occupancy", BusesOver(
        option="at_least", column="fullest", row_column="occupancy", states="occupancy",
        prefix="class", label="occupancy_class",
    )  # fmt: skip


OF_SPEEDS = (Measure.MEAN_SPEED, Measure.BUSES_OVER)
"""What ITMS queries 1 and 2 ask of a cell: how fast buses are, and how many are faster than."""
USUAL = {True: Measure.COUNT, False: Measure.MEAN_SPEED}
"""By whether rows are of trips: what a table measures that does not say it."""
