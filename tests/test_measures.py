"""Measures are named in their room, and what one adds is what its record says."""

from __future__ import annotations

import shutil
from pathlib import Path

import measures as names_of_measures
import numpy as np
import pytest

from turnstile.measures.registry import Measure

BUS_DAYS = {
    "readings": np.array([2, 1, 4]),
    "speed_sum_milli": np.array([20_000, 130_000, 160_000]),
    "speed_max_milli": np.array([40_000, 130_000, 40_001]),
    "delays": np.array([0, 1, 2]),
    "delay_sum_s": np.array([0, -6_000, 240]),
    "fullest": np.array([0, 4, 5]),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    sources = Path(__file__).resolve().parents[1] / "include/turnstile"
    shutil.copytree(sources, tmp_path / "include/turnstile")
    return tmp_path


def test_no_other_module_names_a_measure(copy: Path) -> None:
    assert list(names_of_measures.faults(copy)) == []


@pytest.mark.parametrize(
    "line",
    ["is_mean = table.measure is Measure.MEAN_DELAY", "V = table.clamp_kmh", 'M = "buses_over"'],
)
def test_a_branch_on_a_measure_elsewhere_is_seen(copy: Path, line: str) -> None:
    card = copy / "include/turnstile/publishing/card.py"
    card.write_text(f"{card.read_text()}\n{line}\n")
    (fault,) = names_of_measures.faults(copy)
    assert fault.startswith("publishing/card.py names ")


def test_a_module_that_names_none_is_not_listed(copy: Path) -> None:
    listed = next(iter(names_of_measures.MAY_NAME))
    (copy / "include/turnstile" / listed).write_text("")
    (fault,) = names_of_measures.faults(copy)
    assert fault.startswith(f"{listed} names no measure")


@pytest.mark.parametrize(
    ("measure", "options", "added"),
    [
        (Measure.BUSES, (), {"buses": [1, 1, 1]}),
        (Measure.HEADWAY, (), {"buses": [1, 1, 1]}),
        (Measure.MEAN_SPEED, (65,), {"sum": [100 - 325, 325, 400 - 325], "buses": [1, 1, 1]}),
        # without a delay, 100 minutes early and clamped to 15, 2 minutes late
        (Measure.MEAN_DELAY, (15,), {"sum": [0, -150, 20], "buses": [0, 1, 1]}),
        (Measure.BUSES_OVER, (40, 60), {"over_40": [0, 1, 1], "over_60": [0, 1, 0]}),
        (Measure.OCCUPANCY, (3, 5), {"class_3": [0, 1, 1], "class_5": [0, 0, 1]}),
    ],
)
def test_each_bus_day_adds_what_its_measure_says(
    measure: Measure, options: tuple[int, ...], added: dict[str, list[int]]
) -> None:
    kind = measure.kind
    assert kind.statistics(options) == tuple(added)
    for statistic, expected in added.items():
        contributions = kind.adds(options, statistic, BUS_DAYS)
        assert (contributions.dtype, contributions.tolist()) == (np.int64, expected)


def test_a_mean_without_its_clamp_is_not_added_up() -> None:
    with pytest.raises(ValueError, match="unpack"):
        Measure.MEAN_SPEED.kind.adds((), "sum", BUS_DAYS)
