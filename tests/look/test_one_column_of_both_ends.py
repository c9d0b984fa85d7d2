"""One column named for entries and for exits is refused: each entry would be an alighting too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from city_week import STOPS, WEEK, ZONE

ENTRIES_ALONE = "station,at,Ridership,Transfers\n"
BOTH = "one column is named for entries and for exits"


def _file(city: Any) -> Path:
    hours = [f"{day} {hour:02}:00:00" for day in WEEK.days for hour in range(5, 24)]
    lines = [f"{stop},{at},{len(stop)},1" for stop, *_ in STOPS for at in hours]
    file: Path = city.put("a.csv", ENTRIES_ALONE + "\n".join(lines) + "\n")
    return file


def _new(city: Any, *columns: str) -> tuple[int, str]:
    named = ("gate=station", "place=station", "tapped_at=at", *columns)
    given = ("--feed", "gate_counts", "--gtfs", city.stops, "--mode", "bus", "--zone", ZONE.key)
    pairs = [f"--column={one}" for one in named]
    tells: tuple[int, str] = city.tells(
        "new", "city", "--from", _file(city), *given, "--accept-no-gain", "made", *pairs
    )
    return tells


def test_new_and_look_refuse_one_column_of_both_ends(city: Any) -> None:
    code, said = _new(city, "entries=Ridership", "exits=Ridership")
    assert (code, BOTH in said) == (2, True), said
    assert "Ridership" not in said
    assert not city.yaml.exists()
    named = ("gate=station", "place=station", "tapped_at=at", "entries=Transfers")
    pairs = [f"--column={one}" for one in (*named, "exits=Transfers")]
    code, said = city.tells("look", "--from", _file(city), "--feed", "gate_counts", *pairs)
    assert (code, BOTH in said) == (2, True), said


@pytest.mark.parametrize("entries", ["Ridership", "exits"])
def test_check_refuses_one_column_of_both_ends(city: Any, entries: str) -> None:
    assert _new(city, "entries=Ridership", "exits=Transfers")[0] == 0
    assert city.tells("check", "city")[0] == 0  # gate and place may share theirs
    city.edit(r"entries: \S+", f"entries: {entries}")
    city.edit(r"\n *exits: \S+", "" if entries == "exits" else f"\n    exits: {entries}")
    code, said = city.tells("check", "city")
    assert (code, "source.columns: " + BOTH in said) == (2, True), said
