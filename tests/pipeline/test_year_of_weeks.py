"""A year of generated weeks through the product's own steps: the cap holds, the forecast is right.

Every week is read, counted, reserved and drawn; the first, its corrections, the last and the one
after are published as well. Of any 52 weeks the cap holds 54 shares: two corrections of the first
week cost no other week (PRIVACY 6.8), and one more would take the share of the last one, as
docs/OPAL.md says. Slots are long, so that noise is quick; nothing else differs from the shipped
programme.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from small_deployment import Deployment

from turnstile.pipeline.steps import STEPS, step_named
from turnstile.privacy.accounts import NANO
from turnstile.service_calendar import ServiceWeek

pytestmark = pytest.mark.long
Cli = Callable[..., int]
FIRST, WEEKS = ServiceWeek.parse("2016-W01"), 52
SPARE = (1, 2)  # revisions: `opal_year` draws 1/54 of its cap, 52 times
CHARGED = STEPS[: STEPS.index("draw") + 1]


def forecast(turnstile: Cli, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `turnstile ledger forecast` says of the cap on a card's year."""
    capsys.readouterr()
    assert turnstile("ledger", "forecast", "--json") == 0
    (cap_forecast,) = json.loads(capsys.readouterr().out)
    return dict(cap_forecast)


def test_a_year_ends_with_the_cap_not_passed_and_the_forecast_right_every_week(
    deployment: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment.edit("opal_year", "slot_minutes: 15", "slot_minutes: 240")
    last = FIRST.plus(WEEKS - 1)
    span = f"{FIRST}:{last.plus(1)}"
    # As many rows as give each of 371 days some: with 150 a Saturday had none.
    assert turnstile("sample", "opal", "--weeks", span, "--rows", 600) == 0
    late = ("--although-nothing-changed", "--reason", "late", "--revision")
    expected = None
    for number in range(WEEKS):
        week = str(FIRST.plus(number))
        if number in {0, WEEKS - 1}:
            assert turnstile("run", "opal_year", "--week", week) == 0
        else:
            for name in CHARGED:
                step_named(name)("opal_year", week, 0)
        for revision in SPARE if number == 0 else ():
            cap_forecast = forecast(turnstile, capsys)
            assert (cap_forecast["correction_in"], cap_forecast["refused_then"]) == (week, None)
            assert turnstile("run", "opal_year", "--week", week, *late, revision) == 0
        spent = deployment.spent()["card:ever"]
        cap_forecast = forecast(turnstile, capsys)
        path = dict(cap_forecast["path"])
        assert spent is not None
        assert path[week] == spent <= cap_forecast["limit"] == NANO
        assert expected in (None, spent)  # what was forecast a week ago
        assert cap_forecast["reached_in"] is None
        expected = path[str(FIRST.plus(number + 1))]
        taken = cap_forecast["refused_then"] if cap_forecast["correction_in"] == week else None
        assert taken == (str(last) if number < WEEKS - 1 else None)
    # The year is spent: a correction is refused, and the next week takes the place of the first.
    assert turnstile("run", "opal_year", "--week", last, *late, 1) == 3
    assert turnstile("run", "opal_year", "--week", last.plus(1)) == 0
    assert forecast(turnstile, capsys)["path"][WEEKS][1] <= NANO
    assert turnstile("ledger", "verify") == 0
