"""The release card: what is guaranteed, to whom, at what noise, and what it adds up to so far.

Fields follow the OpenDP Deployments Registry and the checklist of NIST SP 800-226. All of it comes
from the plan, the programme and the ledger (PRIVACY 9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from fractions import Fraction
from importlib.metadata import version
from operator import attrgetter
from typing import Any

from turnstile.estimates.error_bars import error_bar
from turnstile.estimates.fitting.above_noise import cells_above_noise, sentences
from turnstile.estimates.trips.stated_errors import stated_errors
from turnstile.ledger.balances.amounts import COORDINATES, AccountLoss, decimal_text, word_of
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.privacy.accounts import Loss, Posting, loss_by_unit, rounded_up
from turnstile.privacy.events import one_of_each_label
from turnstile.privacy.guarantees import epsilon_of
from turnstile.programme.bounding_rule import rule_of
from turnstile.programme.domain.mode_slots import clock
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Outside, Programme
from turnstile.publishing.allowed_contents import LIBRARIES
from turnstile.publishing.describe.card_terms import (
    has_days,
    ledger_text,
    stated_charges,
    stated_terms,
    stated_windows,
)
from turnstile.publishing.pages import rendered
from turnstile.release.drawn import Drawn
from turnstile.release.plan import ReleasePlan

_OUTSIDE = {
    Outside.UNKNOWN: "counted as UNKNOWN where they have no public slot or place",
    Outside.DROP: "left out of every table; how many is private",
}
_NOT_COUNTED = (
    "What a bound leaves out is in no table, and no error bar states how much it is: errors are "
    "about the records that are counted."
)
UNPROTECTED = (
    "the public domain, the programme and its bounds",
    "whether a week was released at all, which depends on the data through validation",
    "service days that are stated as gaps: here, and as usable = gap in tables of days",
    "the day on which a package was made",
    "how the authority chose its bounds, where it looked at planning reports of real rows",
)
_SAID = ("service_day", "trips", "identity", "without_card", "not_counted")


def release_card(drawn: Drawn, *, ledger: Ledger, built_at: datetime) -> dict[str, Any]:
    """Return the card as plain values.

    Args:
        drawn: the sealed release.
        ledger: for balances, charges and head.
        built_at: instant for the record.
    """
    programme, plan, domain, attempt = drawn.programme, drawn.plan, drawn.domain, drawn.attempt
    return {
        **stated_losses(programme, plan, ledger=ledger, key=attempt.key),
        "title": programme.title,
        "description": programme.description,
        "service_week": str(plan.week),
        "gaps": [str(day) for day in drawn.artefact.gaps],
        "time_zone": programme.time.zone.key,
        "built_at": built_at.date().isoformat(),  # the hour of a run is nobody's business
        "curator": programme.publish.curator,
        "contact": programme.publish.contact,
        "licence": programme.publish.licence,
        "errors": stated_errors(programme, domain, plan),
        "above_noise": cells_above_noise(drawn),
        "domain": {
            "version": domain.version,
            "sha256": domain.digest,
            "rows_outside": _OUTSIDE[programme.domain.outside],
        },
        "composition": "sequential over the draws on one scope of a unit, parallel over disjoint "
        "scopes (service days, modes, batches); parallel composition is used under add/remove only",
        "unprotected": list(UNPROTECTED),
        "post_processing": programme.mechanism.kind.post_processing,
        "sealed_sha256": attempt.artefact_digest,
        "programme_sha256": plan.programme_digest,
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def counted_by(programme: Programme, plan: ReleasePlan, domain: PublicDomain) -> dict[str, Any]:
    """Return the part of a card that decides which records its tables count (`terms_of`)."""
    return {
        "guarantee": _of_trips(programme),
        "terms": stated_terms(programme, plan),
        "time_zone": programme.time.zone.key,
        "domain": {"sha256": domain.digest},
    }


def stated_losses(
    programme: Programme, plan: ReleasePlan, *, ledger: Ledger, key: ReleaseKey
) -> dict[str, Any]:
    """Return the part of a card that states losses, with every term that they follow from.

    Args:
        programme: whose release it is.
        plan: of the release, which is charged.
        ledger: for balances, charges and head.
        key: of the release.
    """
    (sequence, head), recoveries = ledger.head(), ledger.parties().recoveries
    again = {"after_recoveries": recoveries} if recoveries else {}
    revision = ledger.revision(key)
    balances = ledger.balance(programme.family)
    charges = stated_charges(ledger.entries_of(key), revision.drawn, plan.digest)
    return {
        "release": str(key),
        "service_days": [str(day) for day in plan.week.days],
        "absent_days": [str(day) for day in _absent(programme, plan)],
        "guarantee": _guarantee(programme, plan),
        "draws": _draws(plan),
        "terms": stated_terms(programme, plan),
        "charges": charges,
        "cumulative": _cumulative(plan, balances),
        "windows": stated_windows(balances),
        "burned_draws": sum(charge["draws"] for charge in charges) - 1,
        "ledger": {"sequence": sequence, "head_sha256": head, **again},
        "plan_sha256": plan.digest,
    }


def _guarantee(programme: Programme, plan: ReleasePlan) -> dict[str, Any]:
    """Return the loss of this release for every unit, both relations."""
    bounds = {
        str(bound.unit): {
            "contributions_max": bound.contributions_max,
            "once_per_cell": bound.once_per_cell,
            "once_per_finest_cell": bound.once_per_finest_cell,
            "coarse_cell_max": bound.coarse_cell_max,
        }
        for bound in programme.units
    }
    rules = {table.name: rule_of(programme, table) for table in programme.tables}
    units = {str(unit): loss_figures(loss) for unit, loss in loss_by_unit(plan.events).items()}
    return {
        "neighboring": "add or remove all records of one unit; replace-one figures beside",
        "mechanism": str(programme.mechanism.kind),
        "bounds": bounds,
        "counted": {
            name: "every record" if rule is None else rule.counted for name, rule in rules.items()
        },
        "not_counted": _NOT_COUNTED,
        "units": units,
        **({"identity": identity} if (identity := programme.source.identity_sentence) else {}),
        **_of_trips(programme),
    }


def _of_trips(programme: Programme) -> dict[str, str]:
    """Return what a trip is and what happens to one that no card bounds; telemetry has neither."""
    if programme.source.feed.shape is not RowShape.TRIPS:
        return {}
    starts = clock(programme.time.day_starts)
    said = {
        "service_day": f"A service day begins at {starts} on the agency's clock.",
        "without_card": programme.source.without_card_sentence,
    }
    if programme.source.feed.joins_taps:
        said["trips"] = (
            "A trip is joined from a tap-on and the next tap-off of the same card, mode and "
            "service day; the unit that is protected is made of the taps themselves."
        )
    if programme.source.feed.names_nobody:
        said["trips"] = (
            "What is counted is a boarding or an alighting; nothing says which two are one ride. "
            "A record of several passengers counts as many."
        )
    return said


def loss_figures(loss: Loss) -> dict[str, Any]:
    """Return a loss as texts, rounded up: exact amounts and the epsilon at delta 1e-6.

    Group privacy of two steps gives the replace figures: twice epsilon, four times rho (Bun &
    Steinke 2016, Proposition 1.9).
    """
    return {
        "epsilon": _text(loss.epsilon, 6),
        "epsilon_replace": _text(None if loss.epsilon is None else 2 * loss.epsilon, 6),
        "rho": _text(loss.rho, 9),
        "rho_replace": _text(None if loss.rho is None else 4 * loss.rho, 9),
        "delta": _text(loss.delta, 15),
        "epsilon_at_delta_1e-6": _text(epsilon_of(loss), 6),
    }


def day_above_week(units: Mapping[str, Mapping[str, str | None]]) -> str:
    """Say why one more day of somebody may cost more than one more week, where it does.

    Args:
        units: figures of `loss_figures`, by unit.

    Examples:
        >>> figures = {"card_day": {"rho": "0.037"}, "card_week": {"rho": "0.0185"}}
        >>> day_above_week(figures).partition(":")[0]
        'A card_day shows more than a card_week'
        >>> day_above_week({"card_day": {"rho": "0.08"}, "card_week": {"rho": "0.58"}})
        ''
    """
    for subject in ("card", "bus"):
        day, week = f"{subject}_day", f"{subject}_week"
        rho_of_day, rho_of_week = (units.get(unit, {}).get("rho") for unit in (day, week))
        if rho_of_day and rho_of_week and Fraction(rho_of_day) > Fraction(rho_of_week):
            return (
                f"A {day} shows more than a {week}: the bound holds for the week, so the records "
                "of one more day can displace as many of its other days (PRIVACY 4.3), and both "
                f"are counted; a {week} that comes or goes displaces nothing. What is promised "
                f"is the {week}."
            )
    return ""


def _draws(plan: ReleasePlan) -> list[dict[str, Any]]:
    """Return each kind of draw once, with its noise and error."""
    return [
        {
            "table": event.table,
            "statistic": event.statistic,
            "noise": str(event.noise),
            "scale": str(event.scale),
            **({"step": event.step} if event.step > 1 else {}),
            "sensitivity": {
                str(unit): None
                if bound is None
                else {"l0": bound.l0, "l1": bound.l1, "l2_squared": bound.l2_squared}
                for unit, bound in event.sensitivities
            },
            "standard_deviation": round(error.standard_deviation, 4),
            "threshold": event.threshold,
            "half_width_90": error.half_width_90,
            "half_width_95": error.half_width_95,
        }
        for event in one_of_each_label(plan.events)
        for error in (error_bar(event),)
    ]


def _cumulative(plan: ReleasePlan, balances: Iterable[AccountBalance]) -> list[dict[str, Any]]:
    """Return, for every unit, the most spent account that a release touches, before and after."""
    touched = {(posting.unit, posting.scope): posting for posting in plan.postings}
    most_spent: dict[str, AccountBalance] = {}
    for account in balances:
        known = most_spent.get(account.unit, account)
        if (account.unit, account.scope) in touched:
            most_spent[account.unit] = max(known, account, key=attrgetter("spent.rank"))
    return [
        {
            "family": account.family,
            "unit": str(account.unit),
            "scope": account.scope,
            **_before_and_after(account.spent, touched[account.unit, account.scope]),
        }
        for account in most_spent.values()
    ]


def _before_and_after(spent: AccountLoss, posting: Posting) -> dict[str, str | None]:
    """Return what an account held before a release's own posting, and what it holds with it."""
    said = {}
    for coordinate in COORDINATES:
        name = word_of(coordinate)
        after, charged = getattr(spent, coordinate), getattr(posting, coordinate)
        before = None if after is None or charged is None else after - charged
        said[f"{name}_before"] = ledger_text(name, before)
        said[f"{name}_after"] = ledger_text(name, after)
    return said


def _text(amount: Fraction | None, decimals: int) -> str | None:
    """Return an exact amount as a decimal text, rounded up; None is infinite."""
    return None if amount is None else decimal_text(rounded_up(amount, 10**decimals), decimals)


def card_markdown(card: dict[str, Any]) -> str:
    """Return the card for people."""
    guarantee = card["guarantee"]
    return rendered(
        "release_card.md.j2",
        card=card,
        said=[guarantee[name] for name in _SAID if name in guarantee],
        has_days=has_days(card),
        above_noise=sentences(card["above_noise"]),
        estimated_errors=_estimated_errors(card),
    )


def _absent(programme: Programme, plan: ReleasePlan) -> list[date]:
    """Return the service days that the programme declares to be without service."""
    return sorted(set(plan.week.days) - set(programme.days_of(plan.week)))


def _estimated_errors(card: dict[str, Any]) -> dict[str, float]:
    """Return how exact the estimates of each table are, where it has some and says so."""
    errors: dict[str, float] = {}
    record = card.get("estimates") or {"errors": {}}
    for table, sizes in record["errors"].items():
        weights = [(line["numbers"], line["rmse_estimated"]) for line in sizes]
        known = [(numbers, error) for numbers, error in weights if numbers and error is not None]
        if known:
            squares = sum(numbers * error**2 for numbers, error in known)
            errors[table] = math.sqrt(squares / sum(numbers for numbers, _ in known))
    return errors
