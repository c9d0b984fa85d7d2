"""What the bounds of a programme leave out is told before its first week, to whoever looks."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from typing import Any

import h3
import pytest
from city_week import WEEK, ZONE, Form, readings, taps


def _pairs_of_bus_days(resolution: int) -> list[int]:
    """How many pairs of hour and cell each bus has on each day, by hand."""
    pairs = defaultdict(set)
    for reading in readings():
        at = reading.at.astimezone(ZONE)
        cell = h3.latlng_to_cell(reading.latitude, reading.longitude, resolution)
        pairs[reading.bus, at.date()].add((at.hour, cell))
    return [len(of_day) for of_day in pairs.values()]


def test_what_the_bound_of_a_bus_day_leaves_out_is_told_and_the_report_compares_others(
    city: Any,
) -> None:
    city.new(readings(), Form(), "--speed-unit", "km/h")
    (resolution,) = re.findall(r"h3_resolution: (\d)", city.yaml.read_text())
    pairs = _pairs_of_bus_days(int(resolution))
    code, said, record = city.look()
    key = "units.bus_day.cells_at_most"
    assert code == 0
    (line,) = record["sections"]["What the bounds leave out"]
    assert line.startswith(f"- {key}: ")
    assert line.endswith(f"; 0.0% are left out: 0 of {sum(pairs)}")
    assert key not in said
    city.edit("cells_at_most: 40", "cells_at_most: 2")
    left = sum(pairs) - sum(min(number, 2) for number in pairs)
    share = f"{left / sum(pairs):.1%}"
    code, said, record = city.look()
    assert code == 0  # a person may want it so
    assert "%" not in said  # figures stand on the private page alone
    (line,) = record["sections"]["What the bounds leave out"]
    assert line.endswith(f"; {share} are left out: {left} of {sum(pairs)}")
    assert f"may be decided: {key}: the bound leaves out more than a tenth" in said
    assert city.tells("itms", "report", "city", "--week", WEEK)[0] == 0
    (file,) = city.home.rglob("choice_of_k.csv")
    rows = csv.DictReader(file.read_text().splitlines()[1:])
    kept = {row["k"]: float(row["share_of_pairs_kept"]) for row in rows}
    assert kept["2"] == pytest.approx(1 - left / sum(pairs), abs=1e-4)


def test_what_the_bound_of_a_card_day_leaves_out_is_told(city: Any) -> None:
    city.new(taps(), Form())
    (line,) = city.look()[2]["sections"]["What the bounds leave out"]
    assert line.endswith("; 0.0% are left out: 0 of 840")
    city.edit("trips_at_most: 4", "trips_at_most: 1")
    code, said, record = city.look()
    assert code == 0
    (line,) = record["sections"]["What the bounds leave out"]
    assert line.endswith("; 50.0% are left out: 420 of 840")
    assert "may be decided: units.card_day.trips_at_most: " in said
