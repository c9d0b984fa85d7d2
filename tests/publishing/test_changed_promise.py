"""A programme that changes in mid-year: its weeks borrow from those that drew the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnstile.cli import main

NEXT = "2016-W31"
_SAME, _RANGE = "", "clamp_kmh: 65 -> clamp_kmh: 85"
_BOUND = "cells_at_most: 40 -> cells_at_most: 80"
_TABLE = 'limits_kmh: [40, 60] -> limits_kmh: [40, 60, 80]; "7/10" -> "6/10"'
_TABLE += '; over_60: "1/10" -> over_60: "1/10"\n    speeding/over_80: "1/10"'


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("edits", "borrows"),
    [(_SAME, True), (_RANGE, False), (_TABLE, False), (_BOUND, False)],
    ids=["the same", "another range", "a further limit", "another bound"],
)
def test_a_week_borrows_from_weeks_that_drew_the_same_numbers(
    copied_home: Path, edits: str, *, borrows: bool
) -> None:
    """A further limit ended every later week after its charge, in a KeyError."""
    file = copied_home.parent / "include/programmes/itms.yaml"
    for edit in filter(None, edits.split("; ")):
        old, new = edit.split(" -> ")
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    assert main(["sample", "itms", "--weeks", NEXT, "--rows", "3000"]) == 0
    assert main(["run", "itms", "--week", NEXT]) == 0
    package = copied_home / f"public/itms/{NEXT}/r0"
    card = json.loads((package / "release_card.json").read_bytes())
    earlier = [release["release"] for release in card["estimates"]["earlier"]]
    assert earlier == (["itms/2016-W30/r0"] if borrows else [])
    assert main(["estimates", "verify", str(package)]) == 0
