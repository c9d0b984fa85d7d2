"""What a programme says of its source is read strictly: actions, dates, grid, extent, units."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import DateForm, Extent, Feed, SpeedUnit, TapAction

ITMS = (Path(__file__).parents[2] / "include/programmes/itms.yaml").read_text()
SUBE = (Path(__file__).parents[1] / "pipeline/programmes/sube.yaml").read_text()


def test_a_mapping_of_taps_is_read_completely() -> None:
    source = parse_programme(SUBE, "sube.yaml").source
    assert source.feed is Feed.TAPS
    assert dict(source.action_names) == {
        "CHECK IN": TapAction.ENTER,
        "CHECK OUT": TapAction.EXIT,
        "USO": TapAction.ENTER,
        "CHECK OUT SIN CHECKIN": TapAction.NO_TAP,
    }
    assert source.date_form is DateForm.DAY_FIRST
    assert source.grid_decimals == 1
    assert dict(source.columns)["card_id"] == "id_tarjeta"


def test_an_extent_is_exact_and_need_not_be_there() -> None:
    extent = parse_programme(ITMS, "itms.yaml").source.extent
    assert extent == Extent(Fraction("20.5"), Fraction("72.2"), Fraction("21.9"), Fraction("73.5"))
    assert parse_programme(SUBE, "sube.yaml").source.extent is None


@pytest.mark.parametrize(
    ("feed", "unit"),
    [("tides_vehicle_locations", SpeedUnit.MS), ("itms", SpeedUnit.KMH)],
)
def test_a_source_that_states_no_speed_unit_has_the_one_of_its_feed(
    feed: str, unit: SpeedUnit
) -> None:
    text = ITMS.replace("  speed_unit: km/h\n", "").replace("feed: itms", f"feed: {feed}")
    assert parse_programme(text, "itms.yaml").source.speed_unit is unit
