"""Positions at the ends of the earth are kept; swapped ones are distinguished from wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from ingested_weeks import Read

from turnstile.programme.source_spec import Extent

SURAT = Extent(Fraction(20), Fraction(72), Fraction(22), Fraction(74))
FIJI = Extent(Fraction(-20), Fraction(177), Fraction(-15), Fraction(-178))
Judged = Callable[..., str]


@pytest.fixture
def judged(ingested: Read) -> Judged:
    """Return the rule that a position breaks, or `kept`."""

    def run(latitude: float, longitude: float, extent: Extent | None = None) -> str:
        header = "license_plate,observationDateTime,speed,latitude,longitude"
        line = f"v,2022-01-08 10:00:00,5,{latitude},{longitude}"
        _, counts = ingested(line, header=header, week="2022-W01", name="itms", extent=extent)
        assert counts.pop("rows_in") == 1
        (rule,) = counts
        return "kept" if rule == "rows_out" else rule

    return run


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [(90, 0), (-90, 180), (0, 180), (0, -180), (-17.5, 179.999999), (0.0, 0.000001), (1, 0)],
)
def test_poles_antimeridian_and_equator_are_places(
    judged: Judged, latitude: float, longitude: float
) -> None:
    assert judged(latitude, longitude) == "kept"


@pytest.mark.parametrize(
    ("latitude", "longitude", "rule"),
    [
        (0, 0, "coordinates_out_of_range"),  # what a receiver without a fix sends
        (90.0001, 181, "coordinates_out_of_range"),
        (21, 180.0001, "coordinates_out_of_range"),
        (-95, 95, "coordinates_out_of_range"),
        (151.2, -33.9, "coordinates_swapped"),
        (-90.0001, 10, "coordinates_swapped"),
    ],
)
def test_a_position_off_the_earth_is_named(
    judged: Judged, latitude: float, longitude: float, rule: str
) -> None:
    assert judged(latitude, longitude) == rule


@pytest.mark.parametrize(
    ("latitude", "longitude", "extent", "rule"),
    [
        (72.83, 21.17, SURAT, "coordinates_swapped"),  # on earth, in the Arctic
        (72.83, 21.17, None, "kept"),
        (21.17, 72.83, SURAT, "kept"),
        (19.0, 72.8, SURAT, "kept"),  # outside, and outside if swapped: the domain's to judge
        (178.4, -18.1, FIJI, "coordinates_swapped"),
        (-18.1, 178.4, FIJI, "kept"),
        (-18.1, -179.9, FIJI, "kept"),
        (-179.9, -18.1, FIJI, "coordinates_swapped"),
    ],
)
def test_with_an_extent_swapped_positions_are_reported_that_could_be_on_earth(
    judged: Judged, latitude: float, longitude: float, extent: Extent | None, rule: str
) -> None:
    assert judged(latitude, longitude, extent) == rule
