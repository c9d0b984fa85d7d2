"""Tables that would take each other's place in a package are refused before they are charged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import RefusedError
from turnstile.pipeline.steps import step_named

OWN_BOUND = "{by: [tap_on_location], trips_at_most: 4}"


def with_one_more(deployment: Deployment, name: str, spec: str) -> None:
    """Add a table to opal, at the price of half of another's share."""
    deployment.edit("opal", "  off_time:  ", f"  {name}: {spec}\n  off_time:  ")
    deployment.edit("opal", '    off_time: "1/8"', f'    off_time: "1/16"\n    {name}: "1/16"')


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("again", "{by: [tap_on_slot]}", "on_time and again count the same"),
        ("on_time_daily", OWN_BOUND, "a table made from on_time"),
        ("on_time_rows", OWN_BOUND, "a table made from on_time"),
        ("on_location_hourly", OWN_BOUND, "a table made from on_location"),
        ("location", OWN_BOUND, "both be called location"),
        ("day", "{by: [], trips_at_most: 4}", "both be called day"),
    ],
)
def test_check_refuses_tables_of_one_name_in_the_package(
    deployment: Deployment,
    turnstile: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    name: str,
    spec: str,
    said: str,
) -> None:

    with_one_more(deployment, "apart", OWN_BOUND)
    assert turnstile("check", "opal") == 0, capsys.readouterr().err
    deployment.edit("opal", "apart: " + OWN_BOUND, f"{name}: {spec}")
    deployment.edit("opal", "apart:", f"{name}:")
    assert turnstile("check", "opal") == 2
    told = capsys.readouterr().err
    assert said in told
    assert "lost" in told


def test_where_weeks_are_sealed_check_warns_and_nothing_more_is_charged(
    landed: Deployment, turnstile: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("run", "opal", "--week", WEEK) == 0
    with_one_more(landed, "on_time_daily", OWN_BOUND)
    landed.edit("opal", 'rho: "1/12"', 'rho: "1/8"')
    capsys.readouterr()
    turnstile("check", "opal")
    told = capsys.readouterr().err
    assert "on_time_daily is what the package may call a table made from on_time" in told
    assert "opal.yaml: redraws: promises room for" in told  # what else is wrong is said beside it


def test_nothing_is_charged_for_a_table_that_would_be_lost(landed: Deployment) -> None:
    with_one_more(landed, "again", "{by: [tap_on_slot]}")
    for step in ("ingest", "validate", "plan", "count"):
        step_named(step)("opal", WEEK)
    with pytest.raises(RefusedError, match="on_time and again count the same.*nothing was charged"):
        step_named("reserve")("opal", WEEK)
    assert landed.nothing_happened()
