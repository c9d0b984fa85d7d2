"""What a programme says of its source is read strictly: actions, dates, grid, extent, units."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from turnstile.errors import ProgrammeError
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


@pytest.mark.parametrize(
    ("old", "new", "field", "rule"),
    [
        ("CHECK OUT: exit", "CHECK OUT: leave", "source.action_names.CHECK OUT", "enter, exit"),
        ("DD/MM/YYYY", "DD.MM.YYYY", "source.date_form", "MM/DD/YYYY"),
        ("grid_decimals: 1", "grid_decimals: 4", "source.grid_decimals", "too fine"),
        ("TRE: train", "TRE: tram", "source.mode_names", "none of the modes"),
    ],
)
def test_a_broken_mapping_is_reported_with_its_field(
    old: str, new: str, field: str, rule: str
) -> None:
    assert old in SUBE
    with pytest.raises(ProgrammeError, match=rule) as failure:
        parse_programme(SUBE.replace(old, new, 1), "sube.yaml")
    assert failure.value.field == field


@pytest.mark.parametrize(
    ("old", "new", "side", "rule"),
    [
        ('south: "20.5"', 'south: "22.5"', "south", "below north"),
        ('south: "20.5"', 'south: "-90.5"', "south", "between -90 and 90"),
        ('east: "73.5"', 'east: "here"', "east", "must be degrees"),
        ('east: "73.5"', 'est: "73.5"', "east", "is missing"),
        ('east: "73.5"', 'east: "73.5", up: "1"', "up", "is unknown"),
    ],
)
def test_a_broken_extent_is_reported_with_its_side(
    old: str, new: str, side: str, rule: str
) -> None:
    assert old in ITMS
    with pytest.raises(ProgrammeError, match=rule) as failure:
        parse_programme(ITMS.replace(old, new, 1), "itms.yaml")
    assert failure.value.field == f"source.extent.{side}"
