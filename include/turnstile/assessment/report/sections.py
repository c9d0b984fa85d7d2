"""Parts of the assessment page as values: heads, rows and sentences; the template lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnstile.assessment.assessment import Assessment
from turnstile.assessment.attacks.risk import Span, weeks_left
from turnstile.assessment.attacks.timetable_view import LISTED_MOST, MEANING, NOT_GIVEN
from turnstile.assessment.audits.one_run import WHAT_IT_MEANS
from turnstile.assessment.audits.release_audit import DrawAudit
from turnstile.assessment.report.pictures import axis, lines
from turnstile.ledger.balances.amounts import amount_text
from turnstile.ledger.records import AccountBalance
from turnstile.publishing.card import loss_figures

NO_BOUND = "no bound"
_CELLS_SHOWN = 40
_LOSSES = {
    "epsilon": "epsilon",
    "epsilon_at_delta_1e-6": "epsilon at delta 1e-6",
    "epsilon_replace": "epsilon, replace",
    "rho": "rho",
    "delta": "delta",
}
Section = dict[str, Any]


def risk(assessment: Assessment) -> Section:
    """Return the chance of the best guess for every unit, beside that of this release alone."""
    head = ("unit", "who", "seen", "best guess", "this release alone", "rho", "epsilon", "in words")
    rows = [
        (
            risk.unit.noun,
            f"{risk.who}{' (worst)' if risk.is_worst else ' (typical)'}",
            "the year ahead" if risk.span is Span.YEAR else f"{risk.releases} in the ledger",
            _figure(risk.guess_right, ".3f"),
            _figure(risk.alone, ".3f"),
            _figure(risk.rho, ".4g"),
            _figure(risk.epsilon, ".4g"),
            risk.sentence,
        )
        for risk in assessment.risk.units
    ]
    return {"head": head, "rows": rows}


def risk_picture(assessment: Assessment) -> str:
    """Return the chance of those units that are in every week, as the weeks of a year are added."""
    points: list[Mapping[str, float | str]] = [
        {"weeks": course.weeks, "chance": chance, "series": who}
        for course in assessment.risk.course
        for who, chance in course.guess_right.items()
        if chance is not None
    ]
    title = "Best guess whether it is in the data of every week, from this week on"
    if not points:
        return ""
    chances = axis([0.5, *(float(point["chance"]) for point in points)])  # from that of a coin
    return lines(points, x="weeks", y="chance", title=title, y_axis=chances)


def gates(assessment: Assessment) -> Section:
    """Return what each gate found, and what it could have found."""
    head = ("gate", "outcome", "what was found", "chance of a false alarm", "finds")
    rows = [
        (
            gate.gate,
            gate.outcome,
            gate.statement,
            gate.false_alarm_in_words,
            gate.detects if gate.is_applicable else "-",
        )
        for gate in assessment.gates
    ]
    return {"head": head, "rows": rows}


def promised(assessment: Assessment) -> Section:
    """Return the loss of this release for each unit, in the words and figures of its card.

    A column that no unit has a figure in is left out: Gaussian noise has no finite epsilon at
    delta 0.
    """
    losses = {unit: loss_figures(loss) for unit, loss in assessment.losses.items()}
    shown = [
        name for name in _LOSSES if any(figures[name] is not None for figures in losses.values())
    ]
    notes = []
    if "epsilon" not in shown:
        notes.append(
            "The noise is Gaussian: its promise is rho, and the epsilon at delta 1e-6 that follows "
            "from it; at delta 0 no epsilon is promised."
        )
    if any(figures["rho"] is None for figures in losses.values()):
        notes.append(
            f"{NO_BOUND}: nothing bounds how much one such unit contributes, so no loss is stated "
            "for it."
        )
    rows = [
        (unit.noun, *(figures[name] or NO_BOUND for name in shown))
        for unit, figures in sorted(losses.items())
    ]
    return {"head": ("unit", *(_LOSSES[name] for name in shown)), "rows": rows, "notes": notes}


def audits(assessment: Assessment) -> Section:
    """Return claims and lower bounds."""
    head = (
        "draw",
        "unit",
        "epsilon claimed",
        "at delta",
        "epsilon at least (95 %)",
        "right guesses",
        "claim",
    )
    rows = [
        (
            audit.label,
            audit.unit.noun,
            f"{audit.claimed:.4g}",
            f"{audit.delta:g}",
            f"{audit.bound.epsilon:.4g}",
            f"{audit.bound.right} of {audit.bound.guesses}",
            _verdict(audit),
        )
        for audit in assessment.audits
    ]
    return {"head": head, "rows": rows, "meaning": WHAT_IT_MEANS}


def attacks(assessment: Assessment) -> Section:
    """Return what is proven of presence, and differencing."""
    head = ("total", "parts", "mode", "noises", "cell from total, +- (95 %)", "itself, +-")
    rows = [
        (
            pair.total,
            pair.parts,
            pair.mode,
            pair.terms,
            f"{pair.half_width_95:g}",
            f"{pair.own_half_width_95:g}",
        )
        for pair in assessment.differencing
    ]
    return {
        "proof": (
            "Tables are thresholded: a released cell proves that it was not empty."
            if assessment.is_thresholded
            else "Empty cells are noised like others: that a number is not 0 proves nothing; one "
            "far beyond its noise says that many were there."
        ),
        "differencing": {"head": head, "rows": rows},
    }


def timetable(assessment: Assessment) -> Section:
    """Return which public cells are one vehicle or one stop by a public timetable."""
    seen = assessment.timetable
    if seen is None:
        return {"statements": [NOT_GIVEN], "rows": []}
    statements = [f"{seen.statement}."]
    if seen.exposures:
        statements.append(MEANING)
    if (rest := len(seen.exposures) - _CELLS_SHOWN) > 0:
        statements.append(f"And {rest:,} more; assessment.json lists the first {LISTED_MOST}.")
    rows = [
        (
            exposure.cell.mode,
            exposure.cell.slot,
            exposure.cell.area,
            ", ".join(exposure.days),
            exposure.cell.trip_ids[0] if exposure.cell.is_one_vehicle else "several",
            exposure.cell.stop_ids[0] if exposure.cell.is_one_stop else "several",
        )
        for exposure in seen.exposures[:_CELLS_SHOWN]
    ]
    head = ("mode", "slot", "area", "days", "run (trip_id)", "stop (stop_id)")
    return {"statements": statements, "head": head, "rows": rows}


def ledger(assessment: Assessment) -> Section:
    """Return the costliest account of each unit and cap; amounts that no unit has are left out."""
    costliest: dict[tuple[str, str], AccountBalance] = {}
    for account in sorted(assessment.balances, key=lambda account: account.spent.rank):
        costliest[str(account.unit), _cap(account)] = account
    shown = [account for account in costliest.values() if account.unit in assessment.losses]
    has_epsilon = any(account.spent.epsilon_micro is not None for account in shown)
    rows = [
        (
            account.unit.noun,
            *([amount_text("epsilon", account.spent.epsilon_micro)] if has_epsilon else []),
            amount_text("rho", account.spent.rho_nano),
            _cap(account),
            _weeks(weeks_left(account, assessment.losses[account.unit])),
        )
        for account in shown
    ]
    epsilon = ("epsilon spent",) if has_epsilon else ()
    return {"head": ("unit", *epsilon, "rho spent", "cap", "weeks left at least"), "rows": rows}


def _figure(value: float | None, shown: str) -> str:
    return NO_BOUND if value is None else format(value, shown)


def _verdict(audit: DrawAudit) -> str:
    """Return the verdict; with its reason where the measured bound lies above the claim."""
    if audit.is_refuted:
        return "REFUTED"
    if audit.bound.epsilon > audit.claimed:
        return (
            "not refuted: this bound holds at 95 % only and lies above a true claim up to once in "
            "twenty; at the certainty that refutes a claim (1 - 1e-9) it lies below"
        )
    return "not refuted"


def _cap(account: AccountBalance) -> str:
    """Return an account's cap as text."""
    cap = account.cap
    if cap is None:
        return "none"
    amounts = [
        f"{name} {amount_text(name, amount)}"
        for name, amount in (("epsilon", cap.epsilon_micro), ("rho", cap.rho_nano))
        if amount is not None
    ]
    window = f" in {cap.window_weeks} weeks" if cap.window_weeks else ""
    return f"{' and '.join(amounts)}{window}"


def _weeks(number: int | None) -> str:
    """Return weeks left as text; a unit of a week or less starts anew with each week."""
    return "-" if number is None else str(number)
