"""Audits of the year's promise: a card's week, and its four weeks together, show no larger loss.

Canaries are cards far above their bound on all days. How far one moves each table is what the
product's own counting does with it (`observed_sensitivities`); each canary has cells of its own and
the plan's own noise. All tables and weeks are read together by the best test there is. One sample
serves both audits: pairs (how often the test says "in" of those that are in and out) and one run
(right guesses). Bounds are Clopper and Pearson's at 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity
from turnstile.counting import exact_tables
from turnstile.pipeline.trials.canaries import observed_sensitivities
from turnstile.privacy.accounts import loss_by_unit
from turnstile.privacy.events import one_of_each_label
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings

pytestmark = pytest.mark.long
INCLUDE = Settings.from_environment().include
CARD_WEEK = ProtectionUnit.CARD_WEEK
CANARIES = 48_000  # over all weeks: of one week a wrong bound is 9 standard deviations away
ALPHA = 1e-9
YEAR = load_programme("opal_year", INCLUDE)
DOMAIN = load_domain(YEAR, INCLUDE)
PLAN = make_plan(YEAR, DOMAIN, ServiceWeek(2016, 30))
Moves = Mapping[tuple[str, ProtectionUnit], ObservedSensitivity]


@dataclass(frozen=True)
class Audited:
    """What the canaries of so many weeks show.

    Args:
        distance: lower bound of the total variation between in and out.
        accuracy: lower bound of the chance of a right guess.
    """

    distance: float
    accuracy: float


def moves_of_now() -> Moves:
    return observed_sensitivities(YEAR, DOMAIN, seed=1)


def audited(moves: Moves, weeks: int) -> Audited:
    """Put canaries in or out by a coin, draw the tables of all weeks, and guess."""
    canaries = CANARIES // weeks
    coins = np.random.default_rng(weeks)  # noqa: TID251 - who is in, not noise
    is_in = coins.random(canaries) < 0.5
    ratios = np.zeros(canaries)
    for _ in range(weeks):
        for event in one_of_each_label(PLAN.events):
            moved = moves[event.label, CARD_WEEK]
            in_a_cell = moved.l2_squared // moved.l1
            cells = moved.l1 // in_a_cell
            exact = np.repeat(in_a_cell * is_in.astype(np.int64)[:, None], cells, axis=1)
            noisy = draw(event, exact)
            ratios += in_a_cell * (noisy - in_a_cell / 2).sum(axis=1) / float(event.scale) ** 2
    says_in: NDArray[np.bool_] = ratios > 0
    hits, misses = says_in[is_in], says_in[~is_in]
    return Audited(
        at_least(int(hits.sum()), hits.size) - at_most(int(misses.sum()), misses.size),
        at_least(int((says_in == is_in).sum()), canaries),
    )


def at_least(right: int, runs: int) -> float:
    return float(beta.ppf(ALPHA, right, runs - right + 1))


def at_most(right: int, runs: int) -> float:
    return float(beta.ppf(1 - ALPHA, right + 1, runs - right))


def is_refuted(audit: Audited, weeks: int) -> tuple[bool, bool]:
    """Hold both audits against the claim for a card of these weeks.

    Pairs: a rho-zCDP release has a total variation of at most sqrt(rho / 2) (Pinsker). One run: the
    best guess of Gaussian noise is right with chance Phi(sqrt(rho / 2)).
    """
    rho = weeks * float(loss_by_unit(PLAN.events)[ProtectionUnit.CARD].rho or math.inf)
    return (
        audit.distance > math.sqrt(rho / 2),
        audit.accuracy > NormalDist().cdf(math.sqrt(rho / 2)),
    )


@pytest.mark.parametrize("weeks", [1, 4])
def test_neither_audit_refutes_the_claim(weeks: int) -> None:
    audit = audited(moves_of_now(), weeks)
    assert is_refuted(audit, weeks) == (False, False)
    assert audit.accuracy > 0.5 or weeks == 1  # the audit sees the card over four weeks


@pytest.mark.parametrize("weeks", [1, 4])
def test_both_audits_refute_a_weekly_bound_that_is_applied_by_day(
    weeks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_scope = exact_tables.count_trips

    def by_day(*known: Any) -> Any:
        *others, days = known
        return [of_day for day in days for of_day in of_scope(*others, [day])]

    monkeypatch.setattr(exact_tables, "count_trips", by_day)
    assert is_refuted(audited(moves_of_now(), weeks), weeks) == (True, True)
