"""A programme whose periods are no weeks: it is published, and the zone agrees."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from turnstile.cli import main

FORTNIGHT = "2016-07-25..2016-08-07"


@pytest.fixture
def fortnight(copied_home: Path, tmp_path: Path) -> Path:
    """A home with a fortnight of buses that nobody released."""
    programmes = copied_home.parent / "include/programmes"
    text = (programmes / "itms.yaml").read_text()
    for old, new in (
        ("name: itms", "name: fortnight"),
        ("family: itms_buses", "family: buses_by_fortnight"),
        ("itms/{week}/*", "fortnight/{week}/*"),
        ("final_after_days: 0", "final_after_days: 0, period_days: 14, first_day: 2016-07-25"),
    ):
        assert old in text
        text = text.replace(old, new)
    (programmes / "fortnight.yaml").write_text(text)
    weeks = ("--weeks", "2016-W30:2016-W31", "--rows", "3000", "--seed", "7")
    assert main(["sample", "itms", *weeks, "--out", str(tmp_path / "made")]) == 0
    shutil.copytree(tmp_path / "made/itms", copied_home / "landing/fortnight")
    return copied_home


def test_a_fortnight_is_published_and_the_zone_agrees(
    fortnight: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`latest` pointed at a folder with points in its name, and was nobody's file: exit 4."""
    assert main(["run", "fortnight", "--week", FORTNIGHT]) == 0, capsys.readouterr().err
    latest = fortnight / "public/fortnight/latest"
    assert str(latest.readlink()) == f"{FORTNIGHT}/r0"
    assert main(["ledger", "verify"]) == 0
    package = fortnight / f"public/fortnight/{FORTNIGHT}/r0"
    for name in ("report.html", "README.md", "docs/GUIDE.md", "cells.geojson"):
        text = (package / name).read_text().replace("four weeks", "").replace("plausible week", "")
        assert not re.search(r"(the|this) (whole )?week\b", text), name  # of a fortnight
    assert "bus-slots a day of the period" in (package / "report.html").read_text()
    for target in ("../r0", "./r0", f"{FORTNIGHT}/r0/data"):
        latest.unlink()
        latest.symlink_to(target)
        assert main(["ledger", "verify"]) == 4
        assert "fortnight/latest is a file that nobody published" in capsys.readouterr().out
