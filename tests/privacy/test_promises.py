"""Every promise that code cites is in docs/PRIVACY.md."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
CITED = re.compile(r"PRIVACY (\d+(?:\.\d+)?)")


def promised() -> set[str]:
    text = (CHECKOUT / "docs" / "PRIVACY.md").read_text()
    sections = re.findall(r"^## (\d+)\.", text, re.MULTILINE)
    return {*sections, *re.findall(r"^(\d+\.\d+) ", text, re.MULTILINE)}


def test_every_promise_that_code_cites_exists() -> None:
    cited = {
        (number, path.name)
        for folder in ("include", "dags", "plugins")
        for path in (CHECKOUT / folder).rglob("*.py")
        for number in CITED.findall(path.read_text())
    }
    assert {number for number, _ in cited}
    assert not {(number, name) for number, name in cited if number not in promised()}


def test_a_promise_that_was_never_made_would_be_seen() -> None:
    assert "4.3" in promised()
    assert "99.9" not in promised()
