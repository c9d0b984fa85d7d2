"""A table of pixels says what the conversion of each position says, and is compared with it."""

from __future__ import annotations

import random

import h3
import numpy as np
import pytest
from numpy.typing import NDArray

from turnstile.counting.cells import OUTSIDE, cell_numbers, indices_in
from turnstile.counting.pixels import PixelTable
from turnstile.errors import IntegrityError

CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
LABELS = tuple(sorted(h3.grid_disk(CENTER, 3)))


def positions(number: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places of a city, many of them near others, some far away, some on the cells' borders."""
    source = random.Random(seed)  # noqa: S311 - positions, no noise
    stops = [(source.uniform(21.1, 21.24), source.uniform(72.76, 72.9)) for _ in range(12)]
    found = []
    for _ in range(number):
        latitude, longitude = source.choice(stops)
        found.append((source.gauss(latitude, 5e-4), source.gauss(longitude, 5e-4)))
    corners = [corner for label in LABELS for corner in h3.cell_to_boundary(label)]
    found += [(a + source.gauss(0, 1e-5), b + source.gauss(0, 1e-5)) for a, b in corners * 20]
    found += [(source.uniform(-90, 90), source.uniform(-180, 180)) for _ in range(200)]
    found += [(float("nan"), 72.8), (21.17, float("nan")), (91.0, 72.8), (21.17, 400.0)]
    latitudes, longitudes = np.array(found).T.copy()
    return latitudes, longitudes


@pytest.mark.parametrize("resolution", [7, 8])
def test_a_table_of_pixels_says_what_the_conversion_says(resolution: int) -> None:
    labels = LABELS
    if resolution > h3.get_resolution(CENTER):  # a list of two resolutions
        labels = tuple(sorted({*LABELS[4:], *h3.cell_to_children(LABELS[0], resolution)}))
    cells = cell_numbers(labels)
    table = PixelTable(cells, resolution)
    for seed in range(3):  # what one batch filled serves the next
        latitudes, longitudes = positions(20_000, seed)
        wanted = indices_in(cells, latitudes, longitudes, resolution=resolution)
        assert np.array_equal(table.indices(latitudes, longitudes), wanted)
        assert 0.1 < (wanted != OUTSIDE).mean() < 0.99
    assert (table._found >= OUTSIDE).sum() > 100


def test_a_table_of_pixels_says_what_the_h3_package_says() -> None:
    table = PixelTable(cell_numbers(LABELS), 7)
    latitudes, longitudes = (degrees[:20_000] for degrees in positions(20_000, 5))
    table.indices(latitudes, longitudes)
    found = table.indices(latitudes, longitudes)
    names = {name: index for index, name in enumerate(LABELS)}
    for place, latitude, longitude in zip(found[::7], latitudes[::7], longitudes[::7], strict=True):
        assert place == names.get(h3.latlng_to_cell(latitude, longitude, 7), OUTSIDE)


def test_a_wrong_pixel_is_seen() -> None:
    table = PixelTable(cell_numbers(LABELS), 7)
    latitudes, longitudes = (np.full(1000, degrees) for degrees in h3.cell_to_latlng(CENTER))
    table.indices(latitudes, longitudes)
    sure = table._found >= 0
    assert sure.any()
    table._found[sure] = (table._found[sure] + 1) % len(LABELS)
    with pytest.raises(IntegrityError, match="disagree"):
        table.indices(latitudes, longitudes)


def test_no_positions_have_no_cells() -> None:
    nothing = np.array([], dtype=np.float64)
    assert not len(PixelTable(cell_numbers(LABELS), 7).indices(nothing, nothing))
