"""The assessment report of a release: one JSON file, and one page that a release officer can sign.

The page is a single file: pictures are inside it, nothing is fetched. It is made from the sealed
noisy bytes, the plan, the ledger's balances and synthetic data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from turnstile.assessment.assessment import (
    LIMITS,
    SOURCES,
    Assessment,
    assess_release,
    content_of,
)
from turnstile.assessment.audits.one_run import WHAT_IT_MEANS
from turnstile.assessment.gate_result import GateResult
from turnstile.assessment.pictures import lines
from turnstile.assessment.risk import weeks_left
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.accounts import MICRO
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


def write_report(
    drawn: Drawn, balances: Sequence[AccountBalance], folder: Path
) -> tuple[GateResult, ...]:
    """Assess a sealed release, write `assessment.json` and `assessment.html`, return the gates.

    The caller stops the release if a gate did not pass; the report is written either way.

    Args:
        drawn: the sealed release.
        balances: of the family's accounts.
        folder: that exists, under embargo.
    """
    found = assess_release(drawn, balances)
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
        _table(
            ("gate", "passed", "what was found"),
            ((g.gate, "yes" if g.passed else "NO", g.statement) for g in found.gates),
        ),
        "<h2>What is promised</h2>",
        _promised(found),
        "<h2>What was measured</h2>",
        _audits(found),
        "<h2>What an attacker learns from this week</h2>",
        _attacks(found),
        "<h2>Risk as weeks are added</h2>",
        _risk(found),
        "<h2>What the ledger holds</h2>",
        _ledger(found),
        "<h2>Limits</h2>",
        "<ul>" + "".join(f"<li>{escape(limit)}</li>" for limit in LIMITS) + "</ul>",
        "<h2>Formulas and sources</h2>",
        _table(("figure", "formula", "source"), SOURCES),
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
    """Show the loss of this release for each unit."""
    rows = []
    for unit, loss in sorted(loss_by_unit(found.drawn.events).items()):
        amounts = [loss.epsilon, None if loss.epsilon is None else 2 * loss.epsilon, loss.rho]
        texts = ["not bounded" if amount is None else f"{float(amount):.6g}" for amount in amounts]
        rows.append((str(unit), *texts, f"{float(loss.delta):.3g}"))
    head = ("unit", "epsilon, add or remove", "epsilon, replace", "rho", "delta")
    return _table(head, rows)


def _audits(found: Assessment) -> str:
    """Show claims and lower bounds."""
    rows = [
        (
            audit.label,
            str(audit.unit),
            f"{audit.claimed:.4g}",
            f"{audit.bound.epsilon:.4g}",
            f"{audit.bound.right} of {audit.bound.guesses}",
            "REFUTED" if audit.is_refuted else "not refuted",
        )
        for audit in found.audits
    ]
    head = ("draw", "unit", "claimed", "at least (95 %)", "right guesses", "claim")
    return f"{_table(head, rows)}<p>{escape(WHAT_IT_MEANS)}</p>"


def _attacks(found: Assessment) -> str:
    """Show presence, differencing, reconstruction and membership."""
    cut = any(event.threshold is not None for event in found.drawn.events)
    proof = (
        "Tables are thresholded: a released cell proves that somebody was there."
        if cut
        else "No number proves that anybody was there: empty cells are noised like all others."
    )
    guesses = ", ".join(f"{chance:.3f} for {group}" for group, chance in found.risk[0].guess_right)
    best = (
        f"<p>{proof} The best guess whether people were in known cells, knowing all else, is right "
        f"with {guesses} of them (0.5 by chance).</p>"
    )
    parts = [
        best,
        _table(
            ("total", "parts", "mode", "noises", "cell from total, +- (95 %)", "cell itself, +-"),
            (
                (
                    d.total,
                    d.parts,
                    d.mode,
                    d.terms,
                    f"{d.half_width_95:g}",
                    f"{d.own_half_width_95:g}",
                )
                for d in found.differencing
            ),
        ),
    ]
    if found.reconstruction is not None:
        own = found.reconstruction
        parts.append(
            "<p>Of the cells of a small synthetic table with this noise, "
            f"{own.from_cells:.0%} are right by rounding, {own.from_least_squares:.0%} by least "
            f"squares over all margins, {own.from_linear_program:.0%} by linear program.</p>"
        )
    if found.membership is not None:
        weeks = ", ".join(f"{share:.3f}" for share in found.membership)
        parts.append(
            f"<p>Membership of synthetic commuters, simulated, after each week: {weeks}.</p>"
        )
    return "".join(parts)


def _risk(found: Assessment) -> str:
    """Show the forecast as a table and a picture."""
    points: list[Mapping[str, float | str]] = [
        {"weeks": one.weeks, "chance": chance, "who": f"{group} people"}
        for one in found.risk
        for group, chance in one.guess_right
    ]
    picture = lines(
        points,
        x="weeks",
        y="chance",
        series="who",
        title="Best guess whether people come every week",
    )
    units = [str(unit) for unit, _ in found.risk[0].epsilon_by_unit]
    rows = [
        (
            one.weeks,
            *(f"{chance:.3f}" for _, chance in one.guess_right),
            f"{one.average_half_width_95:.2f}",
            *("not bounded" if e is None else f"{e:.4g}" for _, e in one.epsilon_by_unit),
        )
        for one in found.risk
    ]
    groups = [f"guess, {group} people" for group, _ in found.risk[0].guess_right]
    head = ("weeks", *groups, "steady cell, +- (95 %)", *(f"epsilon, one {u}" for u in units))
    return (
        "<p>For a programme that goes on as it is; recomputed by each release. Epsilon at delta "
        f"1e-6. A unit of a week or less is in one week only.</p>{picture}{_table(head, rows)}"
    )


def _ledger(found: Assessment) -> str:
    """Show the fullest account of each unit and cap."""
    fullest: dict[tuple[str, str], AccountBalance] = {}
    for account in sorted(found.balances, key=_fullness):
        fullest[str(account.unit), _cap(account)] = account
    accounts = fullest.values()
    loss = loss_by_unit(found.drawn.events)
    rows = [
        (
            str(account.unit),
            account.scope,
            _micro(account.spent.epsilon_micro),
            _cap(account),
            _weeks(weeks_left(account, loss[account.unit])),
        )
        for account in accounts
        if account.unit in loss
    ]
    return _table(("unit", "scope", "epsilon spent", "cap", "weeks left at least"), rows)


def _fullness(account: AccountBalance) -> float:
    """Order accounts by what they spent; unbounded first."""
    spent = account.spent.epsilon_micro
    return float("inf") if spent is None else float(spent)


def _cap(account: AccountBalance) -> str:
    """Return an account's cap on epsilon as text."""
    cap = account.cap
    return "none" if cap is None or cap.epsilon_micro is None else _micro(cap.epsilon_micro)


def _weeks(number: int | None) -> str:
    """Return weeks left as text."""
    return "no cap" if number is None else str(number)


def _micro(amount: int | None) -> str:
    """Return a ledger epsilon as text."""
    return "not pure" if amount is None else f"{amount / MICRO:g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines_of_rows = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines_of_rows}</tbody></table>"
