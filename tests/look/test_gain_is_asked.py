"""What tells nothing at its volume: `new`, `check`, `plan` and `run` ask one rule for it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from city_week import WEEK, Form, readings, taps

NOTHING = "learns nothing that"


@pytest.mark.long
def test_a_volume_that_nobody_states_is_to_be_decided_and_refused_until_it_is(city: Any) -> None:
    city.deliver(taps(), Form())
    said = city.new(taps(), Form(), "--accept-no-gain", "")
    assert "to decide: typical_volume" in said
    code, said = city.tells("check", "city")
    assert code == 2
    assert "typical_volume: is for a person to decide" in said
    asked = "tap-ons a week of the mode with the most places"  # which alone is judged
    assert f"to decide: typical_volume: is not decided yet: {asked}" in city.look()[1]
    assert f"typical_volume: decide       # {asked}" in city.yaml.read_text()
    city.run_stops()
    city.edit("typical_volume: decide", "typical_volume: 840")
    code, said = city.tells("check", "city")
    assert (code, NOTHING in said) == (2, True)
    assert NOTHING in city.tells("plan", "city", "--week", WEEK)[1]
    city.run_stops(NOTHING, code=3)


def test_new_starts_from_the_finest_grain_that_tells_something_and_the_week_is_published(
    city: Any,
) -> None:
    said = city.new(taps(), Form(), "--trips", "3000")
    assert "begins with slots of 1440 minutes" in said
    assert re.search(r"as published \(12\) x 1440 minutes: \d+% of taps", said)
    assert "lead with region (1) x 1440 minutes" in said
    assert city.tells("check", "city")[0] == 0
    assert NOTHING not in city.tells("plan", "city", "--week", WEEK)[1]
    text = city.yaml.read_text()
    assert "once_per_finest_cell" not in text  # a card may ride twice from a place on a day
    finer = text.replace("slot_minutes: 1440", "slot_minutes: 240")
    city.yaml.write_text(finer)
    assert NOTHING in city.tells("check", "city")[1]  # negative control: a finer one tells nothing
    city.yaml.write_text(text)
    assert city.tells("run", "city", "--week", WEEK)[0] == 0
    assert city.is_published


@pytest.mark.parametrize(("volume", "slots"), [("2000000", 60), ("3000", 1440)])
def test_check_at_a_volume_refuses_what_tells_nothing_there(
    city: Any, volume: str, slots: int
) -> None:
    city.new(taps(), Form(), "--trips", volume)
    assert f"slot_minutes: {slots}" in city.yaml.read_text()
    code, said = city.tells("check", "city", "--trips", volume)
    assert (code, NOTHING in said) == (0, False)
    code, said = city.tells("check", "city", "--trips", "300")
    assert (code, NOTHING in said, "in order" in said) == (2, True, False)
    assert re.search(r"\d+% of taps", said)  # and which grain could be used


def test_where_no_grain_tells_anything_a_person_says_why(city: Any) -> None:
    said = city.new(readings(), Form(), "--speed-unit", "km/h", "--buses", "8")
    assert "to decide: accept_no_gain" in said
    code, said = city.tells("check", "city")
    assert code == 2
    assert "accept_no_gain: is for a person to decide" in said
    city.run_stops()
    city.edit("accept_no_gain: decide", "accept_no_gain: a baseline for later years")
    assert city.tells("check", "city")[0] == 0


@pytest.mark.long
def test_vehicles_of_another_mode_than_bus_are_judged_alike(city: Any) -> None:
    city.deliver(readings(), Form())
    said = city.new(readings(), Form(), "--speed-unit", "km/h", "--mode", "tram", "--buses", "500")
    assert "modes: [tram]" in city.yaml.read_text()
    assert "to decide:" not in said
    city.edit("typical_volume: 500", "typical_volume: 8")
    for command in (("check", "city"), ("plan", "city", "--week", WEEK)):
        assert NOTHING in city.tells(*command)[1]  # negative control: too few of them
    city.edit("typical_volume: 8", "typical_volume: 500")
    for command in (("check", "city"), ("plan", "city", "--week", WEEK)):
        code, said = city.tells(*command)
        assert (code, "refused by" in said) == (0, False)
    assert "A made city of 500" in city.tells("plan", "city", "--grains", "--buses", "500")[1]
