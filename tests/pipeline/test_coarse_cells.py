"""Few trips in a coarse cell, both marginals as one vector: from the programme to the package."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import pytest
from small_deployment import WEEK, Deployment

from turnstile.pipeline.context import open_release
from turnstile.privacy.units import ProtectionUnit

Cli = Callable[..., int]
BOUND = "once_per_finest_cell: true}"
CARD_DAY = ProtectionUnit.CARD_DAY


@pytest.mark.long
def test_a_week_with_few_trips_in_a_coarse_cell_is_published(
    landed: Deployment, turnstile: Cli
) -> None:
    plain = {event.label: event.scale for event in open_release("opal", WEEK).plan.events}
    landed.edit("opal", BOUND, f"{BOUND[:-1]}, coarse_cell_at_most: 2}}")
    landed.edit("opal", "  unit: card_day\n", "  unit: card_day\n  joint_marginals: true\n")
    plan = open_release("opal", WEEK).plan
    moved = {event.label: dict(event.sensitivities)[CARD_DAY] for event in plan.events}
    scales = {event.label: event.scale for event in plan.events}
    for tap in ("on", "off"):
        for by in ("time", "location"):  # 12 each in the place of 36, at the share of both
            assert moved[f"{tap}_{by}/count"].l2_squared == 24
            ratio = float(scales[f"{tap}_{by}/count"] / plain[f"{tap}_{by}/count"])
            assert abs(ratio - (24 / 36 / 2) ** 0.5) < 1e-5
        assert scales[f"{tap}_time_location/count"] == plain[f"{tap}_time_location/count"]
    assert turnstile("run", "opal", "--week", WEEK) == 0
    package = landed.public / "opal" / WEEK / "r0"
    card = json.loads((package / "release_card.json").read_bytes())
    assert card["guarantee"]["bounds"]["card_day"]["coarse_cell_max"] == 2
    assert (
        "at most 2 of a mode and day in one tap_on_slot" in card["guarantee"]["counted"]["on_time"]
    )
    rho = Fraction(card["guarantee"]["units"]["card_day"]["rho"])  # rounded up
    assert abs(Fraction(1, 12) - rho) < 1e-6
    assert turnstile("package", "verify", package) == 0
