"""A table of pixels says what the conversion of a position says, or leaves it to the conversion."""

from __future__ import annotations

import random
from dataclasses import replace

import duckdb
import h3
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from turnstile.counting.cells import OUTSIDE, cell_numbers, indices_in
from turnstile.counting.pixels import PixelTable, pixel_table
from turnstile.errors import IntegrityError

CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
LABELS = tuple(sorted(h3.grid_disk(CENTER, 3)))


def positions(number: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places of a city, many of them near others, some far away, some on the cells' borders."""
    source = random.Random(seed)  # noqa: S311 - positions, no noise
    stops = [(source.uniform(21.1, 21.24), source.uniform(72.76, 72.9)) for _ in range(12)]
    points = []
    for _ in range(number):
        latitude, longitude = source.choice(stops)
        points.append((source.gauss(latitude, 5e-4), source.gauss(longitude, 5e-4)))
    corners = [corner for label in LABELS for corner in h3.cell_to_boundary(label)]
    points += [(a + source.gauss(0, 1e-5), b + source.gauss(0, 1e-5)) for a, b in corners * 20]
    points += [(source.uniform(-90, 90), source.uniform(-180, 180)) for _ in range(200)]
    points += [(float("nan"), 72.8), (21.17, float("nan")), (91.0, 72.8), (21.17, 400.0)]
    latitudes, longitudes = np.array(points).T.copy()
    return latitudes, longitudes


def by_pixels(
    table: PixelTable, latitudes: NDArray[np.float64], longitudes: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the cells that the engine finds, and which positions it leaves to the conversion."""
    with duckdb.connect() as connection:
        connection.register("pixels", pa.table(table.known))
        places = np.arange(len(latitudes))
        given = {"place": places, "latitude": latitudes, "longitude": longitudes}
        connection.register("given", pa.table(given))
        query = f"SELECT place, cell FROM ({table.cell_sql('given', 'pixels')}) ORDER BY place"
        columns = connection.execute(query).fetchnumpy()
    assert np.array_equal(columns["place"], places)
    cells = np.ma.masked_array(columns["cell"])
    return cells.filled(OUTSIDE).astype(np.int64), np.ma.getmaskarray(cells)


@pytest.mark.parametrize("resolution", [7, 8])
def test_a_table_of_pixels_says_what_the_conversion_says(resolution: int) -> None:
    labels = LABELS
    if resolution > h3.get_resolution(CENTER):  # a list of two resolutions
        labels = tuple(sorted({*LABELS[4:], *h3.cell_to_children(LABELS[0], resolution)}))
    cells = cell_numbers(labels)
    table = pixel_table(tuple(cells.tolist()), resolution)
    latitudes, longitudes = positions(60_000, resolution)
    wanted = indices_in(cells, latitudes, longitudes, resolution=resolution)
    indices, is_left = by_pixels(table, latitudes, longitudes)
    assert np.array_equal(indices[~is_left], wanted[~is_left])
    assert 0.1 < (wanted != OUTSIDE).mean() < 0.99
    in_city = np.hypot(latitudes - 21.17, longitudes - 72.83) < 0.07
    assert is_left[in_city].mean() < 0.2  # many of these lie on corners
    assert OUTSIDE in indices[~is_left]
    assert len(set(indices[~is_left])) > 4


@pytest.mark.parametrize("center", [(21.17, 72.83), (-33.87, 151.2), (59.9, 10.7), (64.1, -21.9)])
def test_positions_anywhere_agree_and_few_are_left(center: tuple[float, float]) -> None:
    labels = sorted(h3.grid_disk(h3.latlng_to_cell(*center, 8), 6))
    cells = cell_numbers(tuple(labels))
    source = random.Random(7)  # noqa: S311 - positions, no noise
    places = [
        (center[0] + source.gauss(0, 0.03), center[1] + source.gauss(0, 0.05))
        for _ in range(90_000)
    ]
    latitudes, longitudes = np.array(places).T.copy()
    indices, is_left = by_pixels(pixel_table(tuple(cells.tolist()), 8), latitudes, longitudes)
    wanted = indices_in(cells, latitudes, longitudes, resolution=8)
    assert np.array_equal(indices[~is_left], wanted[~is_left])
    assert is_left[wanted != OUTSIDE].mean() < 0.05


def test_a_table_of_pixels_says_what_the_h3_package_says() -> None:
    table = pixel_table(tuple(cell_numbers(LABELS).tolist()), 7)
    latitudes, longitudes = (degrees[:20_000] for degrees in positions(20_000, 5))
    indices, is_left = by_pixels(table, latitudes, longitudes)
    names = {name: index for index, name in enumerate(LABELS)}
    places = np.flatnonzero(~is_left)[::7]
    for place in places:
        name = h3.latlng_to_cell(latitudes[place], longitudes[place], 7)
        assert indices[place] == names.get(name, OUTSIDE)
    assert len(places) > 1000


@pytest.mark.parametrize("spoiled", ["first", "c"])
def test_a_wrong_pixel_is_seen(spoiled: str) -> None:
    cells = cell_numbers(LABELS)
    table = pixel_table(tuple(cells.tolist()), 7)
    table.compare(cells, 7)
    column = table.known[spoiled]
    wrong = (column + 1) % len(LABELS) if spoiled == "first" else column - 0.5
    with pytest.raises(IntegrityError, match="disagree"):
        replace(table, known=table.known | {spoiled: wrong}).compare(cells, 7)


def test_where_pixels_cannot_be_every_position_is_converted() -> None:
    for center in ((89.5, 0.0), (0.0, 179.99)):
        cells = cell_numbers(tuple(sorted(h3.grid_disk(h3.latlng_to_cell(*center, 7), 2))))
        table = pixel_table(tuple(cells.tolist()), 7)
        _, is_left = by_pixels(table, np.array([center[0]]), np.array([center[1]]))
        assert is_left.all()


def test_no_positions_have_no_cells() -> None:
    nothing = np.array([], dtype=np.float64)
    table = pixel_table(tuple(cell_numbers(LABELS).tolist()), 7)
    assert not len(by_pixels(table, nothing, nothing)[0])
