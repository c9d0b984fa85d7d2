"""The assessment report of a release: one JSON file, and one page that a release officer can sign.

The page is a single file: pictures are inside it, nothing is fetched. It is made from the sealed
noisy bytes, the plan, the ledger's balances and synthetic data.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from turnstile.assessment.assessment import (
    LIMITS,
    SOURCES,
    Assessment,
    assess_release,
    content_of,
)
from turnstile.assessment.attacks.risk import weeks_left
from turnstile.assessment.audits.one_run import WHAT_IT_MEANS
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.result import GateResult
from turnstile.assessment.report.sections import INFINITE, attacks, risk, table, timetable
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.accounts import MICRO, NANO
from turnstile.publishing.card import loss_figures
from turnstile.release.drawn import Drawn
from turnstile.release.plan import loss_by_unit
from turnstile.release.zones import write_atomically

JSON_NAME = "assessment.json"
PAGE_NAME = "assessment.html"
_SIGN_HERE = (
    '<div class="sign"><p>I have read this assessment. The gates, the promise and the limits above '
    "are what I release under.</p><p>Name, role, date: ______________________________</p></div>"
)
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b}table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #bbb;"
    "padding:.3rem .6rem;text-align:left}.no{color:#a00000;font-weight:bold}.yes{color:#006000}"
    "svg{max-width:100%;height:auto}.sign{margin-top:3rem;border-top:1px solid #888}"
)


def write_report(drawn: Drawn, evidence: Evidence, folder: Path) -> tuple[GateResult, ...]:
    """Assess a sealed release, write `assessment.json` and `assessment.html`, return the gates.

    The caller stops the release if a gate did not pass; the report is written either way.

    Args:
        drawn: the sealed release.
        evidence: what it is judged by beside the sealed bytes.
        folder: that exists, under embargo.
    """
    found = assess_release(drawn, evidence)
    content = json.dumps(content_of(found), indent=1) + "\n"
    write_atomically(folder / JSON_NAME, content.encode())
    write_atomically(folder / PAGE_NAME, page_of(found).encode())
    return found.gates


def page_of(found: Assessment) -> str:
    """Return the page."""
    key = str(found.drawn.attempt.key)
    parts = [
        f"<h1>Assessment of {escape(key)}</h1>",
        _verdict(found),
        "<h2>Gates</h2>",
        table(
            ("gate", "passed", "what was found"),
            ((g.gate, "yes" if g.passed else "NO", g.statement) for g in found.gates),
        ),
        "<h2>What is promised</h2>",
        _promised(found),
        "<h2>What was measured</h2>",
        _audits(found),
        "<h2>What an attacker learns from this week</h2>",
        attacks(found),
        "<h2>Cells that a timetable shows to be one vehicle or one stop</h2>",
        timetable(found),
        "<h2>Risk as weeks are added</h2>",
        risk(found),
        "<h2>What the ledger holds</h2>",
        _ledger(found),
        "<h2>Limits</h2>",
        "<ul>" + "".join(f"<li>{escape(limit)}</li>" for limit in LIMITS) + "</ul>",
        "<h2>Formulas and sources</h2>",
        table(("figure", "formula", "source"), SOURCES),
        _SIGN_HERE,
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Assessment of '
        f"{escape(key)}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _verdict(found: Assessment) -> str:
    """Say in one sentence whether the release may go."""
    digest = escape(str(found.drawn.attempt.artefact_digest))
    if found.passed:
        return (
            '<p class="yes">Every gate passed: nothing that was checked speaks against publishing '
            f"the sealed bytes {digest}.</p>"
        )
    failed = ", ".join(gate.gate for gate in found.gates if not gate.passed)
    return (
        f'<p class="no">Stopped by {escape(failed)}. The sealed bytes {digest} stay under embargo '
        "and their charge stands; find the cause before any further draw.</p>"
    )


def _promised(found: Assessment) -> str:
    """Show the loss of this release for each unit, in the words and figures of its card."""
    names = ("epsilon", "epsilon_at_delta_1e-6", "epsilon_replace", "rho", "delta")
    losses = sorted(loss_by_unit(found.drawn.events).items())
    rows = [
        (str(unit), *(loss_figures(loss)[name] or INFINITE for name in names))
        for unit, loss in losses
    ]
    head = ("unit", "epsilon", "epsilon at delta 1e-6", "epsilon, replace", "rho", "delta")
    words = ""
    if any(loss.epsilon is None and loss.rho is not None for _, loss in losses):
        words = (
            "<p>Gaussian noise has no finite epsilon at delta 0; its promise is rho, and the "
            "epsilon at delta 1e-6 that follows from it.</p>"
        )
    return table(head, rows) + words


def _audits(found: Assessment) -> str:
    """Show claims and lower bounds."""
    rows = [
        (
            audit.label,
            str(audit.unit),
            f"{audit.claimed:.4g}",
            f"{audit.delta:g}",
            f"{audit.bound.epsilon:.4g}",
            f"{audit.bound.right} of {audit.bound.guesses}",
            "REFUTED" if audit.is_refuted else "not refuted",
        )
        for audit in found.audits
    ]
    head = (
        "draw",
        "unit",
        "epsilon claimed",
        "at delta",
        "epsilon at least (95 %)",
        "right guesses",
        "claim",
    )
    return (
        "<p>Synthetic units, each in or out by a coin, went through the bounding, counting and "
        "noise of this release; an auditor guessed who was in. A bound at 95 % lies above a true "
        "claim once in twenty by chance; a claim is refuted, and the release stopped, only where "
        f"that chance is below 1e-9.</p>{table(head, rows)}<p>{escape(WHAT_IT_MEANS)}</p>"
    )


def _ledger(found: Assessment) -> str:
    """Show the fullest account of each unit and cap."""
    fullest: dict[tuple[str, str], AccountBalance] = {}
    for account in sorted(found.balances, key=_fullness):
        fullest[str(account.unit), _cap(account)] = account
    loss = loss_by_unit(found.drawn.events)
    rows = [
        (
            str(account.unit),
            account.scope,
            _amount(account.spent.epsilon_micro, MICRO),
            _amount(account.spent.rho_nano, NANO),
            _cap(account),
            _weeks(weeks_left(account, loss[account.unit])),
        )
        for account in fullest.values()
        if account.unit in loss
    ]
    head = ("unit", "scope", "epsilon spent", "rho spent", "cap", "weeks left at least")
    words = (
        "<p>What everything that this family of programmes ever released has cost one unit: the "
        "fullest account of each unit and cap, with the caps of all its programmes.</p>"
    )
    return words + table(head, rows)


def _fullness(account: AccountBalance) -> tuple[float, float]:
    """Order accounts by what they spent; infinite amounts last."""
    amounts = (account.spent.rho_nano, account.spent.epsilon_micro)
    rho, epsilon = (float("inf") if amount is None else float(amount) for amount in amounts)
    return rho, epsilon


def _cap(account: AccountBalance) -> str:
    """Return an account's cap as text."""
    cap = account.cap
    if cap is None:
        return "none"
    amounts = [
        f"{name} {_amount(amount, parts)}"
        for name, amount, parts in (
            ("epsilon", cap.epsilon_micro, MICRO),
            ("rho", cap.rho_nano, NANO),
        )
        if amount is not None
    ]
    window = f" in {cap.window_weeks} weeks" if cap.window_weeks else ""
    return f"{' and '.join(amounts)}{window}"


def _weeks(number: int | None) -> str:
    """Return weeks left as text; a unit of a week or less starts anew with each week."""
    return "-" if number is None else str(number)


def _amount(amount: int | None, parts: int) -> str:
    """Return a ledger amount as text."""
    return INFINITE if amount is None else f"{amount / parts:.9g}"
