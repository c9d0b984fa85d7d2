"""What `turnstile plan` prints: thresholds of the source beside integers, decimals in JSON."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deployment_fixtures import BegunWeek
from small_deployment import WEEK, Deployment

from turnstile.ledger.presentation import left_text

Cli = Callable[..., int]
SUPPORT = Path(__file__).parents[1] / "support"


def test_the_sources_thresholds_stand_beside_the_integers_that_they_become(
    turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal_2017", "--week", "2016-W30") == 0
    printed = capsys.readouterr().out
    assert "on_time/count: the source's threshold 34.176 is 35 for integers" in printed
    assert "on_time_location/count: the source's threshold 17.588 is 18 for integers" in printed


def test_json_has_decimals_in_place_of_fractions(
    turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal_2017", "--week", "2016-W30", "--json") == 0
    printed = capsys.readouterr().out
    assert not re.search(r"\d/\d", re.sub(r'"[\w/]+/[\w-]+"', "", printed))
    plan = json.loads(printed)
    assert plan["source_thresholds"]["on_time/count"] == "34.176"
    assert 0 < float(plan["events"][0]["delta"]) < 1e-6


def test_another_calibration_has_no_thresholds_of_the_source(
    turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal", "--week", "2016-W30") == 0
    assert "source's threshold" not in capsys.readouterr().out


@pytest.mark.long
def test_tighter_accountants_are_printed_beside_the_sums(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("turnstile_design")  # of which --weeks is
    shutil.copy(SUPPORT / "programmes/itms.yaml", deployment.include / "programmes/itms.yaml")
    assert turnstile("plan", "itms", "--weeks", "4") == 0
    printed = capsys.readouterr().out
    figures = re.findall(r"epsilon at 1e-6 ([\d.]+)", printed)
    _, sums, by_distributions, optimal = (float(figure) for figure in figures)
    assert 0 < by_distributions <= optimal <= sums
    assert printed.count("a report, not the gate") == 2


def test_a_figure_that_no_accountant_gives_is_said_to_be_missing(
    turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("turnstile_design")  # of which --weeks is
    assert turnstile("plan", "opal", "--weeks", "4") == 0
    assert "no figure where Gaussian draws move a cell by more than one" in capsys.readouterr().out


def test_a_look_from_a_mistyped_home_makes_no_ledger(
    deployment: Deployment, turnstile: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("turnstile_design")  # of which --weeks is
    for form in ((), ("--json",), ("--weeks", "3")):
        assert turnstile("plan", "opal", "--week", "2016-W30", *form) == 0
    assert "there is no ledger at" in caplog.text
    assert not list(deployment.home.rglob("*.sqlite*"))
    assert turnstile("ledger", "verify") == 2


def test_what_is_left_is_what_the_balance_says(
    turnstile: Cli, begun_week: BegunWeek, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = begun_week("opal", "draw").ledger
    capsys.readouterr()
    assert turnstile("plan", "opal", "--week", WEEK) == 0
    printed = capsys.readouterr().out
    balances = [balance for balance in ledger.balance() if balance.scope == "2016-07-25"]
    (balance,) = [balance for balance in balances if balance.cap]
    assert left_text(balance) == "rho 0.166666667"
    assert (
        "cap on card_day, 2016-07-25: rho 0.166666667 left" in printed
    )  # all digits: was 0.166667
    (window,) = [balance for balance in ledger.balance() if balance.cap and ".." in balance.scope]
    assert window.unit == "card"  # nothing was said of its year
    assert f"cap on card, {window.scope}: {left_text(window)} left" in printed
