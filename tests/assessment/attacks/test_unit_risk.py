"""The risk of each protection unit: what it changes, how well it is recognised, in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import pytest
from membership import membership_accuracy

from turnstile.assessment.attacks.presence import best_guess
from turnstile.assessment.attacks.risk import Span, UnitRisk, forecast
from turnstile.assessment.attacks.unit_changes import (
    Change,
    typical_changes,
    units_of_events,
    worst_changes,
)
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import packed, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

_INCLUDE = Path(__file__).resolve().parents[3] / "include"
_MONDAY = date(2016, 7, 25)
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
TRIP, DAY, CARD = ProtectionUnit.TRIP, ProtectionUnit.CARD_DAY, ProtectionUnit.CARD


def week_of_draws(noise: NoiseFamily, scale: str, day: Sensitivity) -> list[DrawEvent]:
    """One table, drawn on each of seven days."""
    bounds = ((TRIP, records_at_most(1)), (DAY, day), (CARD, day))
    return [
        DrawEvent("t", "count", noise, Fraction(scale), (Block(on, "bus"),), bounds)
        for on in (_MONDAY + timedelta(days=n) for n in range(7))
    ]


def test_a_unit_of_a_day_is_in_one_day_and_a_card_in_seven() -> None:
    events = week_of_draws(LAPLACE, "2", records_at_most(6))
    assert units_of_events(events) == [TRIP, DAY, CARD]
    assert worst_changes(events, TRIP) == Counter({Change(LAPLACE, Fraction(2), 1): 1})
    assert worst_changes(events, DAY) == Counter({Change(LAPLACE, Fraction(2), 6): 1})
    assert worst_changes(events, CARD) == Counter({Change(LAPLACE, Fraction(2), 6): 7})
    assert typical_changes(events, DAY) == Counter({Change(LAPLACE, Fraction(2), 1): 2})
    assert typical_changes(events, CARD) == Counter({Change(LAPLACE, Fraction(2), 1): 10})


def test_a_bound_once_per_cell_spreads_the_worst_unit_over_cells() -> None:
    events = week_of_draws(LAPLACE, "2", packed(6, 1))
    assert worst_changes(events, DAY) == Counter({Change(LAPLACE, Fraction(2), 1): 6})
    concentrated = worst_changes(week_of_draws(LAPLACE, "2", records_at_most(6)), DAY)
    assert best_guess(concentrated or {}) > best_guess(worst_changes(events, DAY) or {})


def test_a_unit_without_a_bound_has_no_worst_case_and_the_words_say_so() -> None:
    events = [
        replace(event, sensitivities=((TRIP, records_at_most(1)), (CARD, None)))
        for event in week_of_draws(LAPLACE, "2", records_at_most(6))
    ]
    assert worst_changes(events, CARD) is None
    worst = forecast(events).units[-1]
    assert (worst.guess_right, worst.epsilon, worst.weeks) == (None, None, 52)
    assert "states no protection of a card over a year" in worst.sentence
    assert "Nothing bounds a card: the more records it has, the more it shows" in worst.sentence


@pytest.mark.parametrize("sigma", [3, 17])
@pytest.mark.parametrize("cells", [1, 40, 4000])
def test_the_guess_after_many_gaussian_draws_is_that_of_one_of_their_sum(
    sigma: int, cells: int
) -> None:
    exact = NormalDist().cdf(math.sqrt(cells) / sigma / 2)
    guess = best_guess({Change(GAUSSIAN, Fraction(sigma), 1): cells})
    assert guess == pytest.approx(exact, abs=1e-3 if cells > 1 else 6e-3)


def test_a_commuter_of_the_shipped_programme_is_recognised_as_often_as_simulated() -> None:
    programme = load_programme("opal", _INCLUDE)
    plan = make_plan(programme, load_domain(programme, _INCLUDE), ServiceWeek(2016, 30))
    known = forecast(plan.events)
    commuter = [risk for risk in known.units if risk.unit is CARD and not risk.is_worst]
    assert [round(risk.guess_right or 0, 3) for risk in commuter] == [0.580, 0.927]
    assert "recognises a daily commuter" in commuter[-1].sentence
    assert "93 times in 100" in commuter[-1].sentence
    assert "does not hide a card over a year" in commuter[-1].sentence
    canaries = 2_000
    changes = typical_changes(plan.events, ProtectionUnit.CARD_WEEK)
    (share,) = membership_accuracy(changes, weeks=1, canaries=canaries)
    assert abs(share - 0.580) <= 6.2 * 0.5 / math.sqrt(canaries)


def test_the_words_follow_the_figure() -> None:
    def words(chance: float) -> str:
        return UnitRisk(
            TRIP, "one trip", False, Span.LEDGER, 1, 1, chance, chance, 4.0, 8.0
        ).sentence

    assert words(0.55).endswith("this release hides a trip.")
    assert words(0.8).endswith("this release hides a trip in part.")
    assert words(0.95).endswith("this release does not hide a trip.")
    assert "more than 99 times" in words(0.9999)
