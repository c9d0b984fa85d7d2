"""What the three Opal programmes cost in error, by exact expectation and not by luck of a draw."""

from __future__ import annotations

from pathlib import Path

import opal_designs as designs
import opal_partitions as partitions
import pytest
import utility

SIZES = (3_000, 20_000, 100_000)
SIDE = (96, 40)  # slots, places


@pytest.mark.parametrize("number", SIZES)
def test_the_trip_programme_beats_the_release_of_2017_on_every_table(
    number: int,
) -> None:
    days = partitions.reference(number)
    source, ours = designs.expected_of_source(days), designs.expected_of_ours(days)
    for table, error in ours.items():
        assert error < source[table]


def test_at_20_000_trips_cells_are_three_times_and_marginals_twice_as_good() -> None:
    days = partitions.reference(20_000)
    source, ours = designs.expected_of_source(days), designs.expected_of_ours(days)
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
    number: int, figures: dict[str, float]
) -> None:
    expected = designs.expected_of_source(partitions.reference(number))
    assert expected == pytest.approx(figures, rel=0.04)
    # control: another partition has others
    other = designs.expected_of_source((partitions.generated_trips(number),))
    assert other != pytest.approx(figures, rel=0.2)


def test_no_trip_of_20_000_is_lost_on_the_full_domain() -> None:
    # Nothing is left out, so what is missing is the noise of the total: in the mean below 0.1 %.
    days = partitions.reference(20_000)
    *_, lost = utility.mean_errors(days, lambda exact: designs.ours(exact)[0])
    assert lost < 0.001


# 60 draws of 3,840 cells, 96 slots and 40 places: a mean square is off by 0.5, 3.4 and 4.9 % (one
# standard deviation), an RMSE by half of that. Eight of them, for Laplace squares have long tails.
WITHIN = {"cells": 0.025, "time": 0.14, "location": 0.2}


@pytest.mark.long
def test_drawn_errors_of_the_full_domain_are_the_expected_ones() -> None:
    days = partitions.reference(3_000)
    errors = utility.mean_errors(days, lambda exact: designs.ours(exact)[0])
    expected = designs.expected_of_ours(days)
    source = designs.expected_of_source(days)  # control: another design has others
    for (table, share), error in zip(WITHIN.items(), errors, strict=False):
        assert error == pytest.approx(expected[table], rel=share)
        assert error != pytest.approx(source[table], rel=share)


def test_drawn_errors_of_the_thresholded_cells_are_the_expected_ones() -> None:
    # of time and place one number beside the cut decides: too rare for so few draws
    days = partitions.reference(20_000)
    error, *_ = utility.mean_errors(days, lambda exact: designs.source(exact)[0])
    expected = designs.expected_of_source(days)["cells"]
    assert error == pytest.approx(expected, rel=WITHIN["cells"])
    assert error != pytest.approx(designs.expected_of_ours(days)["cells"], rel=WITHIN["cells"])


def test_where_nearly_nobody_travels_leaving_everything_out_is_nearer_than_noise() -> None:
    # Negative control, and an honest limit: 0.3 trips a cell. Cells alone, and only unclipped.
    cells = partitions.generated_trips(3_000)
    source, ours = designs.expected_of_source((cells,)), designs.expected_of_ours((cells,))
    assert source["lost"] > 0.99
    assert source["cells"] < ours["cells"]
    assert source["time"] > 3 * ours["time"]


@pytest.mark.parametrize("bound", [4, 10, 20])
def test_from_four_trips_on_the_card_day_programme_beats_the_papers_split(bound: int) -> None:
    errors = designs.card_errors(SIDE, bound)
    for table, error in errors[designs.OPAL].items():
        assert error < errors[designs.SPLIT][table]


def test_with_two_trips_a_card_day_the_papers_split_is_better_in_the_cells() -> None:
    errors = designs.card_errors(SIDE, 2)
    assert errors[designs.SPLIT]["cells"] < errors[designs.OPAL]["cells"]


def test_on_real_trains_whose_small_cells_are_gone_already_the_two_are_alike(
    shared_data: Path,
) -> None:
    for cells in partitions.released(shared_data / "opal_2016_release").values():
        source, ours = designs.expected_of_source((cells,)), designs.expected_of_ours((cells,))
        # What fell under the cut in 2017 is missing from the published table, so a second cut finds
        # little to drop, and its empty cells cost the source nothing.
        assert source["lost"] < 0.01
        for table, error in ours.items():
            assert error < 1.25 * source[table]
        assert ours["location"] < source["location"]
