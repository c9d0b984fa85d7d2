"""Planning tables: by hand on a few buses, and private wherever they go."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import h3
import numpy as np
import pytest

from turnstile.estimates.vehicles.mean_intervals import RatioNoise
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_design.private_reports.bus_pairs import BusPairs
from turnstile_design.private_reports.exact_tables_of_buses import (
    NoiseOfK,
    NoiseOfMean,
    NoiseOfOver,
    cells_meeting,
    choice_of_k,
    hats_histogram,
    records_by_window,
    resolution_row,
)

ONE, TWO = (h3.str_to_int(cell) for cell in sorted(h3.grid_disk("8742d9d6bffffff", 1))[:2])
Pair = tuple[int, int, int, int, float, float]


def pairs_of(rows: list[Pair], days: int = 2, slots: int = 2) -> BusPairs:
    day, bus_day, slot, cell, mean, top = (np.array(column) for column in zip(*rows, strict=True))
    return BusPairs(day, bus_day, slot, cell, mean.astype(float), top.astype(float), days, slots)


def busy(cell: int, buses: int, slots: int = 2) -> list[Pair]:
    """On both days, so many buses in every slot of a cell."""
    return [
        (day, day * buses + bus, slot, cell, 20.0, 45.0)
        for day in range(2)
        for bus in range(buses)
        for slot in range(slots)
    ]


def test_cells_hats_and_buses_are_counted_as_in_the_report() -> None:
    rows = [*busy(ONE, 3), (0, 0, 1, TWO, 30.0, 30.0)]
    row = resolution_row(pairs_of(rows), 7)
    assert (row["cells"], row["hats"]) == (2, 3)
    assert row["mean_buses_per_hat_and_day"] == (4 * 3 + 1) / 5  # of observed HATs and days
    assert row["largest_hats_of_a_bus_day"] == 3


def test_the_base_condition_is_an_average_of_ten_buses_a_day_in_every_slot() -> None:
    assert cells_meeting(pairs_of(busy(ONE, 10))) == (h3.int_to_str(ONE),)
    assert cells_meeting(pairs_of(busy(ONE, 10)[1:])) == ()  # one bus and slot too few
    assert cells_meeting(pairs_of(busy(ONE, 30, slots=1))) == ()  # a slot without buses
    assert resolution_row(pairs_of(busy(ONE, 10)), 7)["share_meeting_condition"] == 1


def test_the_histogram_counts_every_bus_day_once() -> None:
    table = hats_histogram(pairs_of([*busy(ONE, 3), (0, 0, 1, TWO, 30.0, 30.0)]))
    assert dict(zip(table["hats"], table["bus_days"], strict=True)) == {1: 0, 2: 5, 3: 1}


def test_hours_are_split_at_the_slots_of_the_programme() -> None:
    table = records_by_window(np.arange(24), 9, 21)
    assert table["is_selected"].sum() == 12
    assert table.loc[table["is_selected"], "records"].sum() == sum(range(9, 21))


def noise(bound: int) -> NoiseOfK:
    ratio = RatioNoise(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(bound), Fraction(bound, 10))
    return NoiseOfK(
        bound, NoiseOfMean(ratio, clamp_kmh=65), NoiseOfOver(float(bound), limit_kmh=40)
    )


def test_a_smaller_k_means_less_noise_and_more_bias() -> None:
    rows = busy(ONE, 40, slots=6)
    fast = [(d, b, s, c, v + 20 * s, top) for d, b, s, c, v, top in rows]
    extra = [(0, 0, 1, TWO, 5.0, 50.0)]  # one bus-day visits one HAT more, at another speed
    table = choice_of_k(
        pairs_of([*fast, *extra], slots=6),
        [noise(bound) for bound in (1, 6, 7)],
    )
    small, middle, large = table.to_dict("records")
    assert large["share_of_pairs_kept"] == 1
    assert large["mean_speed_bias_kmh"] == large["speeding_bias_buses_a_day"] == 0
    assert small["share_of_bus_days_above_k"] == 1
    assert small["speeding_bias_buses_a_day"] > middle["speeding_bias_buses_a_day"] > 0
    assert middle["speeding_noise_buses_a_day"] == 3


def test_exact_pairs_refuse_to_be_copied_pickled_or_shown() -> None:
    pairs = pairs_of(busy(ONE, 3))
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="stay in the task"):
            leave(pairs)
    assert "20" not in repr(pairs)
