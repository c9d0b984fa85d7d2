"""Places that no public list has stop a week before the charge, and the look names them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from city_week import WEEK, Form, readings, roads_txt, taps

RULE = "unlisted_places"


def _renamed(city: Any, records: Any, name: Any) -> None:
    """Deliver taps whose stops are called otherwise."""
    file = city.deliver(records, Form())
    head, *lines = file.read_text().splitlines()
    at = head.split(",").index("parada")
    rows = [line.split(",") for line in lines]
    for number, row in enumerate(rows):
        row[at] = name(number, row[at])
    file.write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n")


def _stops(city: Any) -> str:
    """What look and release say; the week must not be charged."""
    code, said, record = city.look()
    assert code == 2
    assert any(one["key"] == "source.columns" and one["must"] for one in record["decisions"])
    assert RULE in said
    told = f"{RULE}: rows lie at places that the public list or area does not have"
    return str(city.run_stops(told))


def test_a_feed_of_stations_that_nobody_knows_stops_and_the_private_page_names_them(
    city: Any,
) -> None:
    city.new(taps(), Form())
    _renamed(city, taps(), lambda _, stop: f"9{stop}")
    said = _stops(city)
    assert "9s" not in said
    page = (city.home / f"private/city/{WEEK}/snapshots/look/look.md").read_text()
    assert "'bus 9s1'" in page


def test_buses_with_exchanged_coordinates_stop_without_an_extent(city: Any) -> None:
    moved = [replace(reading, longitude=reading.longitude + 90) for reading in readings()]
    city.roads.write_text(roads_txt(-7.75))  # where either number may be a latitude
    city.new(moved, Form(), "--speed-unit", "km/h")
    assert city.look()[0] == 0
    exchanged = [replace(one, latitude=one.longitude, longitude=one.latitude) for one in moved]
    city.deliver(exchanged, Form())
    assert "latitude and longitude exchanged?" in _stops(city)


@pytest.mark.some(1)
@pytest.mark.parametrize("every", [33, 75])
def test_two_in_a_hundred_may_be_nowhere_and_a_stated_share_may_be_more(
    city: Any, every: int
) -> None:
    records = [tap for tap in taps() if tap.enters]
    city.new(taps(), Form())
    _renamed(city, records, lambda number, stop: stop if number % every else "elsewhere")
    assert (RULE in city.look()[1]) is (every < 50)
    if every < 50:
        city.edit("\nsource:\n", '\nsource:\n  set_aside_at_most: {unknown_place: "1/20"}\n')
    assert city.look()[0] == 0
    assert city.tells("run", "city", "--week", WEEK)[0] == 0
    assert city.is_published
