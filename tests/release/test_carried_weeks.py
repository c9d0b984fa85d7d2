"""Weeks that carry their year along: which days a draw holds, and what windows of weeks cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from turnstile.privacy.accounts import loss_by_unit
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.release.carried_weeks import carried_days, rho_over_weeks, with_later_draws
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"
CARD, CARD_DAY = ProtectionUnit.CARD, ProtectionUnit.CARD_DAY


@pytest.fixture(scope="module")
def programme() -> Programme:
    """Its year begins with 2016-W27."""
    return load_programme("opal_sums", INCLUDE)


def plan_of(programme: Programme, week: ServiceWeek) -> ReleasePlan:
    return make_plan(programme, load_domain(programme, INCLUDE), week)


def test_a_draw_holds_the_same_day_of_each_earlier_week_less_the_older_it_is(
    programme: Programme,
) -> None:
    wednesday, before, first = date(2016, 8, 3), date(2016, 7, 27), date(2016, 7, 20)
    held = dict(carried_days(programme, wednesday, 2))
    assert [*held] == [before, first]
    assert held[before] > held[first] > 0
    without = replace(programme, source=replace(programme.source, absent_days=(before,)))
    assert carried_days(without, wednesday, 2) == ((first, held[first]),)
    assert carried_days(programme, wednesday, 0) == ()


def test_a_window_of_one_week_costs_what_the_dearest_week_of_a_year_does(
    programme: Programme,
) -> None:
    """Of fewer weeks than a year the last ones are the dearest: they carry most along."""
    events = plan_of(programme, ServiceWeek(2016, 30)).events
    last = plan_of(programme, ServiceWeek(2016, 27).plus(51)).events
    assert rho_over_weeks(programme, events, CARD, 1) == loss_by_unit(last)[CARD].rho
    windows = (1, 2, 51, 52, 53, 104)
    costs = [
        rho
        for weeks in windows
        if (rho := rho_over_weeks(programme, events, CARD, weeks)) is not None
    ]
    assert len(costs) == len(windows)
    assert sorted(costs) == costs
    week, *_, year, more, two_years = costs
    assert (two_years, more) == (2 * year, year + week)


def test_by_the_end_of_its_year_a_day_has_lost_its_amount_and_a_card_what_it_had(
    programme: Programme,
) -> None:
    events = plan_of(programme, ServiceWeek(2016, 30)).events
    now, later = loss_by_unit(events), loss_by_unit(with_later_draws(events))
    of_day, before = later[CARD_DAY].rho, now[CARD_DAY].rho
    assert of_day is not None
    assert before is not None
    assert Fraction(1, 8) - Fraction(1, 10**5) < of_day <= Fraction(1, 8)
    assert of_day > before
    assert later[CARD].rho == now[CARD].rho
