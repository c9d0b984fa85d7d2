"""The dossier of a programme, for those who must sign: made from programme, plan and ledger alone.

Two pages of answers, then the evidence. What people wrote stands in it only where the ledger marks
it for the public; who holds a role is not named, and nothing of the private zone is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from turnstile.assessment.attacks.risk import Forecast, Span, UnitRisk, forecast
from turnstile.assessment.report.answers import answers_of
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.presentation import most_spent
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.amount_words import cap_states
from turnstile.operations.budget_page.page_templates import render
from turnstile.operations.budget_page.plan_view import crash_words, plan_of, plan_view
from turnstile.operations.deployment_state import DeploymentState
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.calendar.release_schedule import period_containing
from turnstile.programme.loading import load_programme
from turnstile.programme.people import holders
from turnstile.publishing.card import UNPROTECTED


@dataclass(frozen=True, slots=True)
class Chance:
    """How well one unit is told apart, over a span of time.

    Args:
        noun: `a trip`, `a card`.
        over: from which draws, in words.
        typical: chance of the best guess for a typical one; None where nothing bounds it.
        worst: for the one that shows most.
        epsilon: at delta 1e-6; None where nothing bounds it.
    """

    noun: str
    over: str
    typical: float | None
    worst: float | None
    epsilon: float | None


def chances_of(risk: Forecast) -> tuple[Chance, ...]:
    """Return the chances of each unit, from the finest on: as charged, and with the year ahead."""
    risks: dict[tuple[ProtectionUnit, Span], dict[bool, UnitRisk]] = {}
    for unit_risk in risk.units:
        risks.setdefault((unit_risk.unit, unit_risk.span), {})[unit_risk.is_worst] = unit_risk
    return tuple(
        Chance(
            unit.noun,
            of[True].over or "one release",
            of[False].guess_right,
            of[True].guess_right,
            of[True].epsilon,
        )
        for (unit, _), of in risks.items()
    )


def dossier_page(state: DeploymentState, name: str) -> str:
    """Return the dossier of a programme as HTML.

    Args:
        state: of the deployment.
        name: of the programme.

    Raises:
        InputError: no such programme.
    """
    settings, snapshot = state.settings, state.snapshot()
    programme = load_programme(name, settings.include)
    weeks = snapshot.weeks_of(name)
    today = state.clock().astimezone(programme.time.zone).date()
    period = max((week.period for week in weeks.values() if week.live), default="")
    period = period or str(period_containing(today, programme.schedule))
    plan = plan_of(programme, settings.include, period)
    of_family = tuple(
        balance for balance in snapshot.balances if balance.family == programme.family
    )
    costliest = most_spent(of_family)
    charged = state.charged(programme.family)
    if not any(
        release.key.programme == name and release.key.period == period for release in charged
    ):
        charged += (ChargedRelease(ReleaseKey(name, period), plan.events),)
    risk = forecast(plan.events, charged)
    return render(
        "dossier.html",
        root="",
        programme=programme,
        made_on=today,
        period=period,
        plan=plan_view(plan, of_family),
        crash=crash_words(programme, settings.include, period),
        answers=answers_of(programme, risk),
        chances=chances_of(risk),
        notes=[note.rstrip(".") for note in risk.notes],
        unprotected=UNPROTECTED,
        caps=cap_states(costliest, snapshot.forecasts),
        uncapped=[balance for balance in costliest if balance.cap is None],
        burned=sum(attempt.key.programme == name for attempt, _ in snapshot.burned),
        family=sorted(n for n, of in snapshot.family_of.items() if of == programme.family),
        weeks=[week for week in weeks.values() if week.published or week.no_release],
        holders=len(holders(programme.approval.role, settings.include)),
        entries=len(snapshot.lines),
        head=snapshot.lines[-1].hash if snapshot.lines else "",
        verified=state.verified(snapshot),
        trouble=state.trouble(snapshot),
    )
