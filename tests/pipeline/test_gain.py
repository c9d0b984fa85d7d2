"""A programme that tells nothing at its volume is refused before the charge, unless it says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from turnstile.pipeline.trials.gain import no_gain
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme

INCLUDE = Path(__file__).parents[2] / "include"


@pytest.mark.parametrize(
    ("name", "little", "much"),
    [
        ("opal", 20_000, 5_000_000),
        ("itms", 5, 1_000),
        ("itms_month", 5, 300),  # too few for 7 days
    ],
)
def test_what_tells_nothing_is_refused_unless_it_says_why(
    name: str, little: int, much: int
) -> None:
    pytest.importorskip("turnstile_design")  # whose planner says so
    programme = load_programme(name, INCLUDE)
    domain = load_domain(programme, INCLUDE)
    assert no_gain(programme, domain, INCLUDE) is None  # no volume is stated
    assert no_gain(replace(programme, typical_volume=much), domain, INCLUDE) is None
    small = replace(programme, typical_volume=little)
    refused = no_gain(small, domain, INCLUDE)
    assert refused is not None
    assert "learns nothing that" in str(refused)
    assert f"turnstile plan {name} --grains" in str(refused)
    assert no_gain(replace(small, accept_no_gain="a baseline"), domain, INCLUDE) is None
