"""The figures that the ITMS programme files state come out of their plans; a month is released."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from fractions import Fraction

import pytest
from small_deployment import INCLUDE, Deployment

from turnstile.errors import ProgrammeError
from turnstile.privacy.accounts import loss_by_unit
from turnstile.privacy.guarantees import Zcdp, epsilon_tight
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import parse_period

Cli = Callable[..., int]
DELTA = Fraction(1, 10**6)
MONTH = "2016-07-25..2016-08-24"
PERIODS = {"itms": "2016-W30", "itms_survey": "2016-W30", "itms_month": MONTH}


def planned(name: str) -> ReleasePlan:
    programme = load_programme(name, INCLUDE)
    return make_plan(programme, load_domain(programme, INCLUDE), parse_period(PERIODS[name]))


def rho_of(name: str, unit: ProtectionUnit) -> Fraction:
    rho = loss_by_unit(planned(name).events)[unit].rho
    assert rho is not None
    return rho


@pytest.mark.parametrize(
    ("name", "epsilon"), [("itms", "2.142"), ("itms_month", "1.472"), ("itms_survey", "0.900")]
)
def test_the_epsilon_in_the_file_is_that_of_the_plan(name: str, epsilon: str) -> None:
    shown = epsilon_tight(Zcdp(rho_of(name, ProtectionUnit.BUS_DAY)), DELTA)
    assert shown is not None
    assert f"{float(shown):.3f}" == epsilon
    assert f"epsilon {epsilon} at delta 1e-6" in (INCLUDE / f"programmes/{name}.yaml").read_text()


def test_the_caps_hold_a_week_a_month_and_a_survey_and_a_year_of_them() -> None:
    caps = {name: load_programme(name, INCLUDE).caps for name in PERIODS}
    assert caps["itms"] == caps["itms_month"] == caps["itms_survey"]
    of_day, of_bus = (cap.rho for cap in caps["itms"])
    assert of_day is not None
    assert of_bus is not None
    day = sum(rho_of(name, ProtectionUnit.BUS_DAY) for name in PERIODS)
    week = rho_of("itms", ProtectionUnit.BUS_DAY)
    assert day + 2 * week <= of_day < day + 3 * week  # one draw that dies, and one correction
    year = {"itms": 52, "itms_month": 12, "itms_survey": 1}
    bus = sum(times * rho_of(name, ProtectionUnit.BUS) for name, times in year.items())
    assert abs(bus - Fraction("832.38")) < Fraction(1, 100)
    worst = bus + 2 * rho_of("itms_month", ProtectionUnit.BUS)  # the costliest draw, twice more
    assert worst <= of_bus  # which held weeks of 31/100 before: homes that released them go on


def test_every_limit_is_charged_and_one_more_limit_must_be_paid_for() -> None:
    events = planned("itms").events
    assert [event.statistic for event in events] == ["sum", "buses", "over_40", "over_60"]
    shares = dict(load_programme("itms", INCLUDE).mechanism.split)
    assert sum(shares.values()) == 1
    text = (INCLUDE / "programmes/itms.yaml").read_text()
    with pytest.raises(ProgrammeError, match="over_50"):
        parse_programme(text.replace("[40, 60]", "[40, 50, 60]"), "itms.yaml")


@pytest.mark.long
def test_a_month_of_31_days_is_released_from_the_weekly_files(
    deployment: Deployment, turnstile: Cli
) -> None:
    turnstile("sample", "itms", "--weeks", "2016-W30:2016-W34", "--rows", 3000)
    assert turnstile("run", "itms_month", "--week", MONTH) == 0
    package = deployment.public / "itms_month" / MONTH / "r0"
    card = json.loads((package / "release_card.json").read_bytes())
    assert len(card["service_days"]) == 31
    assert card["gaps"] == []
    assert (package.parents[1] / "latest").resolve() == package
    lines = (package / "data/speed.csv").read_text().splitlines()
    (first, *_) = csv.DictReader(lines)
    assert {"value", "low_95", "high_95", "usable", "unbiased", "measured"} <= set(first)
    spent = deployment.spent()
    assert {f"bus_day:{day}" for day in ("2016-07-25", "2016-08-24")} <= set(spent)
    assert "bus_day:2016-08-25" not in spent
    assert turnstile("run", "itms_month", "--week", MONTH) == 0
    assert deployment.spent() == spent


def test_a_period_of_another_length_is_refused(deployment: Deployment, turnstile: Cli) -> None:
    assert turnstile("run", "itms_month", "--week", "2016-07-25..2016-08-23") == 2
    assert turnstile("run", "itms_month", "--week", "2016-W30") == 2
    assert turnstile("run", "itms", "--week", "2016-07-25..2016-07-31") == 2
    assert deployment.nothing_happened()
