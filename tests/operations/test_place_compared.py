"""The page shows unbiased numbers beside estimates of a place, and escapes what it was asked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnstile.operations.budget_page.page_templates import render
from turnstile.operations.budget_page.place_compared import place_in

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of version 1 of speeds of two cells at two hours."""
    labels = {"slot": ["09:00", "09:00", "10:00", "10:00"], "cell": ["a", HOSTILE] * 2}
    ends = [f"{end}_{level}" for level in (90, 95) for end in ("low", "high")]
    speeds = {"mean_speed_kmh": [20.0, 21.0, None, 23.0]}
    interval = {"standard_deviation_kmh": [1.0, 1.0, None, 1.0]}
    drawn = {"sum": [1, 2, 3, 4], "buses": [1, 2, 3, 4]}
    estimates = {"estimate": [20.5, 20.6, 20.7, np.nan], **dict.fromkeys(ends, [20.0] * 4)}
    for part, columns in (
        ("tables", speeds | interval),
        ("estimates", estimates),
        ("measurements", drawn),
    ):
        (tmp_path / part).mkdir()
        pq.write_table(pa.table(labels | columns), tmp_path / part / "speed.parquet")
    plan = {"week": "2016-W30", "events": []}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return tmp_path


def test_a_place_is_shown_hour_by_hour(package: Path) -> None:
    place = place_in(package, "a")
    assert place is not None
    assert [(line.time, line.unbiased, line.estimate) for line in place.lines] == [
        ("09:00", "20", "20.5"),
        ("10:00", "withheld", "20.7"),
    ]


def test_a_place_that_is_none_shows_the_choice_alone(package: Path) -> None:
    place = place_in(package, "elsewhere")
    assert place is not None
    assert place.lines == ()
    assert place.places == tuple(sorted(("a", HOSTILE)))


def test_a_package_without_estimates_is_shown_without_them(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"week": "2016-W30", "events": []}))
    assert place_in(tmp_path, "a") is None


def test_names_are_escaped(package: Path) -> None:
    shown = {"compared": place_in(package, HOSTILE), "revision": 0}
    text = render("place.html", root="", **shown)
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
