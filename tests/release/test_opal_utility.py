"""What the three Opal programmes cost in error, by exact expectation and not by luck of a draw."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SIZES = (3_000, 20_000, 100_000)


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks/utility.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_utility", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", SIZES)
def test_the_trip_programme_beats_the_release_of_2017_on_every_table(
    bench: ModuleType, number: int
) -> None:
    days = bench.reference(number)
    source, ours = bench.expected_of_source(days), bench.expected_of_ours(days)
    for table, error in ours.items():
        assert error < source[table]


def test_at_20_000_trips_cells_are_three_times_and_marginals_twice_as_good(
    bench: ModuleType,
) -> None:
    days = bench.reference(20_000)
    source, ours = bench.expected_of_source(days), bench.expected_of_ours(days)
    assert source["cells"] >= 3 * ours["cells"]
    assert source["time"] >= 2 * ours["time"]
    assert source["location"] >= 2 * ours["location"]


@pytest.mark.parametrize(
    ("number", "figures"),
    [
        (3_000, {"cells": 1.88, "time": 12.4, "location": 12.8, "lost": 0.92}),
        (20_000, {"cells": 4.48, "time": 6.91, "location": 5.67, "lost": 0.46}),
    ],
)
def test_the_reference_partition_has_the_figures_that_it_was_fitted_to(
    bench: ModuleType, number: int, figures: dict[str, float]
) -> None:
    found = bench.expected_of_source(bench.reference(number))
    assert found == pytest.approx(figures, rel=0.04)
    other = bench.expected_of_source((bench.generated_trips(number),))  # another one has others
    assert other != pytest.approx(figures, rel=0.2)


def test_no_trip_of_20_000_is_lost_on_the_full_domain(bench: ModuleType) -> None:
    # Nothing is left out, so what is missing is the noise of the total: in the mean below 0.1 %.
    days = bench.reference(20_000)
    *_, lost = bench.mean_errors(days, lambda exact: bench.ours(exact)[0])
    assert lost < 0.001


@pytest.mark.parametrize("number", SIZES)
def test_drawn_errors_are_the_expected_ones(bench: ModuleType, number: int) -> None:
    days = bench.reference(number)[:10]
    drawn = bench.trip_errors(days)
    source, ours = bench.expected_of_source(days), bench.expected_of_ours(days)
    # of time and place one number beside the cut decides: too rare for so few draws
    assert drawn["opal_2017: thresholded"][0] == pytest.approx(source["cells"], rel=0.1)
    for place, table in enumerate(ours):
        own = drawn["opal_trip: full domain, least squares"][place]
        assert own == pytest.approx(ours[table], rel=0.1)


def test_where_nearly_nobody_travels_leaving_everything_out_is_nearer_than_noise(
    bench: ModuleType,
) -> None:
    # Negative control, and an honest limit: 0.3 trips a cell. Cells alone, and only unclipped.
    cells = bench.generated_trips(3_000)
    source, ours = bench.expected_of_source((cells,)), bench.expected_of_ours((cells,))
    assert source["lost"] > 0.99
    assert source["cells"] < ours["cells"]
    assert source["time"] > 3 * ours["time"]
    shown, _ = bench.presented(bench.exact_tables(cells))
    clipped = float(np.sqrt(np.mean((shown.cells - cells) ** 2)))
    assert clipped < source["cells"]


@pytest.mark.parametrize("bound", [4, 10, 20])
def test_from_four_trips_on_the_card_day_programme_beats_the_papers_split(
    bench: ModuleType, bound: int
) -> None:
    errors = bench.card_errors(bound)
    split = errors["source's split, full domain, as drawn"]
    ours = errors["opal: Gaussian, once in finest cells, least squares"]
    for theirs, own in zip(split[:3], ours[:3], strict=True):
        assert own < theirs


def test_with_two_trips_a_card_day_the_papers_split_is_better_in_the_cells(
    bench: ModuleType,
) -> None:
    errors = bench.card_errors(2)
    split = errors["source's split, full domain, as drawn"]
    assert split[0] < errors["opal: Gaussian, once in finest cells, least squares"][0]


def test_on_real_trains_whose_small_cells_are_gone_already_the_two_are_alike(
    bench: ModuleType, shared_data: Path
) -> None:
    for cells in bench.released(shared_data / "opal_2016_release").values():
        source, ours = bench.expected_of_source((cells,)), bench.expected_of_ours((cells,))
        # What fell under the cut in 2017 is missing from the published table, so a second cut finds
        # little to drop, and its empty cells cost the source nothing.
        assert source["lost"] < 0.01
        for table, error in ours.items():
            assert error < 1.25 * source[table]
        assert ours["location"] < source["location"]
