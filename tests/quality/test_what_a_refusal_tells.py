"""What a refusal can tell has a figure in PRIVACY 9.2, and the figure is that of the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnstile.pipeline.before_charge import verdicts
from turnstile.programme.loading import load_programme, programme_files
from turnstile.quality.rules import learned_rules, rules_of

ROOT = Path(__file__).parents[2]
WEEKS, BITS_OF_FOUR_WORDS = 52, 2


def rules(programme: str) -> int:
    all_rules = (*rules_of(load_programme(programme, ROOT / "include")), *learned_rules())
    return len({rule.name for rule in all_rules})


@pytest.mark.parametrize(("shape", "programme"), [("trips", "opal"), ("telemetry", "itms")])
def test_the_bits_of_a_year_are_those_of_its_rules(shape: str, programme: str) -> None:
    text = " ".join((ROOT / "docs/PRIVACY.md").read_text().split())
    bits = rules(programme) * WEEKS * BITS_OF_FOUR_WORDS
    assert f"{rules(programme)} " in text[text.index("shipped programmes have") :][:80]
    assert f"{bits:,}" in text[text.index("rules (trips)") :][:120]
    assert shape in text
    assert "pass, warn, fail or broken" in str(verdicts.__doc__)  # the four words


def test_every_shipped_programme_has_as_many_as_one_of_the_two() -> None:
    names = [file.name for file in programme_files(ROOT / "include")]
    assert {rules(name) for name in names} == {rules("opal"), rules("itms")}
