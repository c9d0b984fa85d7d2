from __future__ import annotations

import random

import h3
import numpy as np
import pytest

from turnstile.counting.cells import OUTSIDE, cell_numbers, indices_in


def agreed(positions: list[tuple[float, float]], resolution: int) -> list[bool]:
    """Tell for each position whether it lies in the cell that the h3 package names."""
    names = [
        h3.latlng_to_cell(latitude, longitude, resolution) for latitude, longitude in positions
    ]
    labels = tuple(sorted(set(names)))
    latitudes, longitudes = np.array(positions, dtype=np.float64).T.copy()
    places = indices_in(cell_numbers(labels), latitudes, longitudes, resolution=resolution)
    return [
        place != OUTSIDE and labels[place] == name
        for place, name in zip(places, names, strict=True)
    ]


def on_the_globe(number: int, seed: int) -> list[tuple[float, float]]:
    source = random.Random(seed)  # noqa: S311 - positions, no noise
    return [
        (np.degrees(np.arcsin(source.uniform(-1, 1))), source.uniform(-180, 180))
        for _ in range(number)
    ]


@pytest.mark.parametrize("resolution", [0, 5, 6, 7, 8, 9, 15])
def test_positions_all_over_the_globe_lie_where_the_h3_package_says(resolution: int) -> None:
    assert all(agreed(on_the_globe(3000, resolution), resolution))


def test_gps_positions_of_a_city_lie_where_the_h3_package_says() -> None:
    source = random.Random(1)  # noqa: S311 - positions, no noise
    city = [
        (round(source.uniform(21.05, 21.3), 6), round(source.uniform(72.7, 72.95), 6))
        for _ in range(20_000)
    ]
    assert all(agreed(city, 7))


@pytest.mark.parametrize(
    "position",
    [(0, 0), (90, 0), (-90, 0), (90, 180), (10, 180), (10, -180), (0, 179.999999), (-0.0, -0.0)],
)
def test_poles_the_antimeridian_and_the_origin_lie_where_the_h3_package_says(
    position: tuple[float, float],
) -> None:
    assert agreed([position], 7) == [True]


def test_a_corner_belongs_to_any_of_its_cells_and_a_tenth_of_a_meter_decides() -> None:
    corners: list[tuple[float, float]] = []
    inward: list[tuple[float, float]] = []
    for position in on_the_globe(300, 2):
        cell = h3.latlng_to_cell(*position, 7)
        middle = h3.cell_to_latlng(cell)
        for corner in h3.cell_to_boundary(cell):
            if abs(middle[1] - corner[1]) < 180:  # not across the antimeridian
                corners.append(corner)
                inward.append(towards(middle, corner))
    assert all(agreed(inward, 7))
    # Negative control: on the corner itself rounding decides, and the two packages do differ.
    assert not all(agreed(corners, 7))


def towards(middle: tuple[float, float], corner: tuple[float, float]) -> tuple[float, float]:
    """Return a position some 0.1 m from a corner, on the way to the middle."""
    share = 1e-4
    return (
        corner[0] + share * (middle[0] - corner[0]),
        corner[1] + share * (middle[1] - corner[1]),
    )


@pytest.mark.parametrize(
    "position", [(float("nan"), 1), (1, float("inf")), (91, 1), (1, 181), (22.5, 72.83)]
)
def test_a_position_that_is_none_or_lies_elsewhere_is_outside(
    position: tuple[float, float],
) -> None:
    cells = cell_numbers(tuple(sorted(h3.grid_disk(h3.latlng_to_cell(21.17, 72.83, 7), 1))))
    latitudes, longitudes = np.array([[position[0]], [position[1]]], dtype=np.float64)
    assert indices_in(cells, latitudes, longitudes, resolution=7).tolist() == [OUTSIDE]


def test_names_keep_their_order_as_numbers() -> None:
    labels = tuple(sorted(h3.grid_disk(h3.latlng_to_cell(21.17, 72.83, 7), 5)))
    numbers = cell_numbers(labels)
    assert (np.diff(numbers.astype(np.int64)) > 0).all()
    assert [h3.int_to_str(int(number)) for number in numbers] == list(labels)
