"""Vehicles that speak another unit than their feed, or share an id, stop the week."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from city_week import KMH, Form, Reading, readings


def _some(unit: str, buses: int, step_s: int) -> list[Reading]:
    """Ten buses; so many of them write another unit where others write km/h."""
    some = readings(10, step_s=step_s)
    others = {f"bus{n}" for n in range(buses)}
    return [replace(one, kmh=one.kmh * KMH[unit]) if one.bus in others else one for one in some]


def _new(city: Any, records: list[Reading]) -> None:
    city.roads.write_text(_wide())
    city.new(records, Form(), "--speed-unit", "km/h")


def _wide() -> str:
    """Stops of a region: buses of positions minutes apart come far."""
    ways = range(-40, 41)
    lines = [f"r{a}.{b},{30.25 + a / 50:.2f},{-97.75 + b / 50:.2f}" for a in ways for b in ways]
    return "\n".join(["stop_id,stop_lat,stop_lon", *lines]) + "\n"


@pytest.mark.some(1)
@pytest.mark.parametrize("step_s", [30, 300, 120])
def test_three_buses_of_ten_in_miles_an_hour_stop_the_week(city: Any, step_s: int) -> None:
    _new(city, _some("mph", 3, step_s))
    code, said, record = city.look()
    assert code == 2
    assert "to decide: source.speed_unit" in said
    (title,) = (one for one in record["sections"] if one.startswith("Vehicles of another unit"))
    assert {line.split(":")[0] for line in record["sections"][title]} == {
        "- bus0",
        "- bus1",
        "- bus2",
    }
    assert "bus0" not in said
    city.run_stops("source.set_aside_at_most.unknown_unit")


def test_a_feed_in_another_unit_is_proposed_it_where_positions_are_minutes_apart(
    city: Any,
) -> None:
    _new(city, _some("m/s", 10, 300))
    line = city.lines()["source.speed_unit"]
    assert line.startswith("speed_unit: m/s   #")
    city.adopt(line)
    assert city.look()[0] == 0
    city.deliver(_some("m/s", 3, 300), Form())
    assert "source.speed_unit" not in city.lines()  # most say what is stated


@pytest.mark.some(1)
@pytest.mark.parametrize("step_s", [30, 300])
def test_buses_of_one_unit_go_on_and_a_stated_share_too(city: Any, step_s: int) -> None:
    """Negative control."""
    _new(city, _some("km/h", 3, step_s))
    assert city.look()[0] == 0
    city.deliver(_some("mph", 1, step_s), Form())
    assert city.look()[0] == 2
    city.edit("\nsource:\n", '\nsource:\n  set_aside_at_most: {unknown_unit: "1/5"}\n')
    assert city.look()[0] == 0


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("step_s", "named", "shared"),
    [
        (30, lambda _, bus: f"bus{bus // 2}", 5),
        (300, lambda _, bus: f"bus{bus // 2}", 5),
        (30, lambda n, bus: f"bus{bus}/{n}", 0),
        (30, lambda _, bus: "0" if bus < 2 else f"bus{bus}", 1),
    ],
    ids=["two under one", "two under one, minutes apart", "new each time", "a word for none"],
)
def test_ids_that_are_not_one_vehicle_stop_the_week(
    city: Any, step_s: int, named: Callable[[int, int], str], shared: int
) -> None:
    some = readings(10, step_s=step_s)
    _new(city, some)
    assert city.look()[0] == 0
    renamed = [replace(one, bus=named(n, int(one.bus[3:]))) for n, one in enumerate(some)]
    city.deliver(renamed, Form())
    code, said, record = city.look()
    assert code == 2
    assert "to decide: source.columns: ids: ids are cut short" in said
    title = "Ids of several vehicles: in two places at once"
    assert len(record["sections"].get(title, ())) == shared
    city.run_stops("source.set_aside_at_most.unknown_vehicle")
    city.edit("\nsource:\n", "\nsource:\n  set_aside_at_most: {unknown_vehicle: 1}\n")
    assert "ids: ids" not in city.look()[1]  # of those minutes apart speeds say nothing either


@pytest.mark.some(1)
@pytest.mark.parametrize("fault", ["times of minutes", "one receiver that jumps"])
def test_vehicles_that_are_one_each_go_on(city: Any, fault: str) -> None:
    some = readings(10, step_s=30)
    _new(city, some)
    if fault == "times of minutes":
        first = some[0].latitude  # fast ones: trains, coaches
        some = [
            replace(one, at=one.at.replace(second=0), latitude=first + 4 * (one.latitude - first))
            for one in some
        ]
    else:
        jumps = {n for n in range(0, len(some), 10) if some[n].bus == some[0].bus}
        some = [
            replace(one, latitude=one.latitude + 0.05 * (n in jumps)) for n, one in enumerate(some)
        ]
    city.deliver(some, Form())
    assert "ids: ids" not in city.look()[1]


@pytest.mark.usefixtures("deployment")
def test_few_positions_tell_no_unit_by_chance(turnstile: Callable[..., int]) -> None:
    """Four made buses, whose speeds have little to do with where they are."""
    pytest.importorskip("turnstile_design")
    assert turnstile("sample", "itms", "--weeks", "2016-W30", "--rows", 2000, "--seed", 3) == 0
    assert turnstile("look", "itms", "--week", "2016-W30") == 0
