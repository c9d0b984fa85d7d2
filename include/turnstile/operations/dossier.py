"""The dossier of a programme, for those who must sign: made from programme, plan and ledger alone.

Two pages of answers, then the evidence. What people wrote stands in it only where the ledger marks
it for the public; who holds a role is not named, and nothing of the private zone is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from turnstile.assessment.attacks.risk import AHEAD_WEEKS, Forecast, forecast, weeks_spent
from turnstile.assessment.report.answers import answers_of
from turnstile.ledger.presentation import most_spent
from turnstile.operations.amount_words import cap_states
from turnstile.operations.deployment_state import DeploymentState
from turnstile.operations.page_templates import render
from turnstile.operations.plan_view import crash_words, plan_of, plan_view
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.calendar.release_schedule import period_containing
from turnstile.programme.loading import load_programme
from turnstile.programme.people import holders
from turnstile.publishing.card import UNPROTECTED
from turnstile.release.plan import loss_by_unit


@dataclass(frozen=True, slots=True)
class Chance:
    """How well one unit is told apart, over a span of time.

    Args:
        noun: `one trip`, `a card`.
        weeks: weekly releases that it is in.
        typical: chance of the best guess for a typical one; None where nothing bounds it.
        worst: for the one that shows most.
        epsilon: at delta 1e-6; None where nothing bounds it.
    """

    noun: str
    weeks: int
    typical: float | None
    worst: float | None
    epsilon: float | None


def chances_of(risk: Forecast) -> tuple[Chance, ...]:
    """Return the chances of each unit after each number of weeks, from the finest unit on."""
    found: dict[tuple[ProtectionUnit, int], dict[bool, float | None]] = {}
    epsilons = {(one.unit, one.weeks): one.epsilon for one in risk.units}
    for one in risk.units:
        found.setdefault((one.unit, one.weeks), {})[one.is_worst] = one.guess_right
    return tuple(
        Chance(unit.noun, weeks, of[False], of[True], epsilons[unit, weeks])
        for (unit, weeks), of in found.items()
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
    of_family = tuple(one for one in snapshot.balances if one.family == programme.family)
    costliest = most_spent(of_family)
    loss = loss_by_unit(plan.events)
    risk = forecast(plan.events, loss, (1, AHEAD_WEEKS), weeks_so_far=weeks_spent(of_family, loss))
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
        unprotected=UNPROTECTED,
        caps=cap_states(costliest, snapshot.forecasts),
        uncapped=[one for one in costliest if one.cap is None],
        burned=sum(attempt.key.programme == name for attempt, _ in snapshot.burned),
        family=sorted(n for n, of in snapshot.family_of.items() if of == programme.family),
        weeks=[week for week in weeks.values() if week.published or week.no_release],
        holders=len(holders(programme.approval.role, settings.include)),
        entries=len(snapshot.lines),
        head=snapshot.lines[-1].hash if snapshot.lines else "",
        verified=state.verified(snapshot),
        trouble=state.trouble(snapshot),
    )
