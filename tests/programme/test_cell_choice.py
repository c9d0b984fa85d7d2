"""Cells chosen from noisy counts cover every point once, fine where traffic is dense."""

from __future__ import annotations

import h3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.counting.cells import OUTSIDE, ancestors_of, cell_numbers, indices_in, resolutions_of
from turnstile_design.private_reports.cell_choice import dense_cells, owner, partition

CENTER = h3.latlng_to_cell(21.17, 72.83, 8)
AREA = sorted(h3.grid_disk(CENTER, 5))
LEAST = 10.0
COUNTS = st.lists(st.floats(-30, 60), min_size=len(AREA), max_size=len(AREA))
POINTS = st.lists(st.tuples(st.floats(21.05, 21.3), st.floats(72.7, 72.95)), max_size=30)


def counts_of(traffic: list[float]) -> dict[str, list[float]]:
    return {cell: [amount, amount] for cell, amount in zip(AREA, traffic, strict=True)}


@settings(max_examples=60, deadline=None)
@given(traffic=COUNTS, points=POINTS)
def test_every_point_of_the_area_lies_in_exactly_one_cell(
    traffic: list[float], points: list[tuple[float, float]]
) -> None:
    cells = partition(counts_of(traffic), LEAST, coarsest=6)
    assert all(owner(cell, frozenset(cells)) in cells for cell in AREA)
    points = [*points, *(h3.cell_to_latlng(cell) for cell in AREA)]
    latitudes, longitudes = np.array(points).T.copy()
    numbers = cell_numbers(cells)
    places = indices_in(numbers, latitudes, longitudes, resolution=8)
    for place, (latitude, longitude) in zip(places.tolist(), points, strict=True):
        expected = owner(h3.latlng_to_cell(latitude, longitude, 8), frozenset(cells))
        assert (cells[place] if place != OUTSIDE else None) == expected


@settings(max_examples=60, deadline=None)
@given(traffic=COUNTS)
def test_only_dense_cells_are_fine_and_only_thin_rests_take_them_back(
    traffic: list[float],
) -> None:
    counts = counts_of(traffic)
    cells = frozenset(partition(counts, LEAST, coarsest=6))
    held = dict.fromkeys(cells, 0.0)
    for cell, (amount, _) in counts.items():
        held[str(owner(cell, cells))] += amount
    fine = {cell for cell in cells if h3.get_resolution(cell) > 6}
    assert all(held[cell] >= LEAST - 1e-9 for cell in fine)
    for coarse in cells - fine:  # a thin rest holds nothing that it could take back
        if held[coarse] < LEAST - 1e-9:
            assert not any(h3.cell_to_parent(cell, 6) == coarse for cell in fine)


def test_what_is_sparse_is_judged_together_by_what_is_left_of_its_parent() -> None:
    children = sorted(h3.cell_to_children(h3.cell_to_parent(CENTER, 7), 8))
    parent, grandparent = h3.cell_to_parent(CENTER, 7), h3.cell_to_parent(CENTER, 6)
    counts = {child: [2.0] for child in children} | {children[0]: [50.0]}
    assert partition(counts, 12.0, coarsest=7) == tuple(sorted([children[0], parent]))
    assert partition(counts, 12.0, coarsest=6) == tuple(sorted([children[0], parent]))
    assert partition(counts, 12.1, coarsest=6) == (grandparent,)  # 12 are a thin rest


def test_a_thin_rest_takes_back_the_sparsest_cells_and_no_more() -> None:
    children = sorted(h3.cell_to_children(h3.cell_to_parent(CENTER, 7), 8))
    parent = h3.cell_to_parent(CENTER, 7)
    amounts = [1.0, 1.0, 1.0, 1.0, 20.0, 30.0, 40.0]
    counts = {child: [amount] for child, amount in zip(children, amounts, strict=True)}
    for least, first_listed in ((4.0, 4), (5.0, 5), (15.0, 5), (25.0, 6)):
        expected = tuple(sorted([parent, *children[first_listed:]]))
        assert partition(counts, least, coarsest=7) == expected


def test_a_list_with_a_gap_leaves_points_outside() -> None:
    # Negative control of the coverage: without its coarsest cells the partition has holes.
    cells = partition(counts_of([0.0] * len(AREA)), LEAST, coarsest=6)
    assert all(h3.get_resolution(cell) == 6 for cell in cells)
    assert {owner(cell, frozenset(cells[1:])) for cell in AREA} >= {None}


def test_cells_of_two_resolutions_or_a_finer_coarsest_one_are_refused() -> None:
    with pytest.raises(ValueError, match="one resolution"):
        partition({CENTER: [1.0], h3.cell_to_parent(CENTER, 7): [1.0]}, LEAST, coarsest=6)
    with pytest.raises(ValueError, match="not coarser"):
        partition({CENTER: [1.0]}, LEAST, coarsest=9)


def test_the_base_condition_asks_every_slot() -> None:
    counts = {"a": [10.0, 30.0], "b": [9.9, 90.0], "c": [11.0, 10.0]}
    assert dense_cells(counts, 10) == ("a", "c")


@given(st.floats(-89, 89), st.floats(-180, 180), st.integers(0, 15), st.integers(0, 15))
def test_ancestors_by_bits_are_those_of_the_h3_package(
    latitude: float, longitude: float, resolution: int, other: int
) -> None:
    fine, coarse = max(resolution, other), min(resolution, other)
    cell = h3.latlng_to_cell(latitude, longitude, fine)
    numbers = cell_numbers((cell,))
    assert resolutions_of(numbers).tolist() == [fine]
    expected = cell_numbers((h3.cell_to_parent(cell, coarse),))
    assert ancestors_of(numbers, coarse).tolist() == expected.tolist()
