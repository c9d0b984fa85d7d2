"""The assessment of one release as values: gates, audits, attacks, risk over time, limits.

Gates decide; everything else is a report and never blocks.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from turnstile.assessment.attacks.risk import (
    Averaged,
    Forecast,
    as_figures,
    averaged,
    forecast,
    over_weeks,
    weeks_left,
)
from turnstile.assessment.attacks.timetable_view import NOT_GIVEN, TimetableView, as_json
from turnstile.assessment.audits.one_run import WHAT_IT_MEANS
from turnstile.assessment.audits.release_audit import DrawAudit
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.numbers import layouts_of, nested_pairs
from turnstile.assessment.gates.pipeline_copy import audits_of
from turnstile.assessment.gates.registry import gate_results
from turnstile.assessment.gates.result import GateResult, headline
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.privacy.accounts import MICRO, NANO, Loss, loss_by_unit
from turnstile.privacy.events import one_of_each_label
from turnstile.privacy.noise import half_width, term_of
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.spec import Programme
from turnstile.release.drawn import Drawn

_DRAWS_SHOWN = (1, 2, 5, 10)
_TEXTS = Path(__file__).parent
LIMITS = tuple((_TEXTS / "limits.txt").read_text(encoding="utf-8").splitlines())
SOURCES = tuple(csv.DictReader((_TEXTS / "formulas.csv").read_text(encoding="utf-8").splitlines()))


@dataclass(frozen=True, slots=True)
class Differencing:
    """How well one cell is known from a total minus its other parts.

    Args:
        total: name of the coarser table.
        parts: name of the finer table.
        mode: partition.
        terms: noises in the difference.
        half_width_95: of the difference, in counts.
        own_half_width_95: of the published cell itself.
    """

    total: str
    parts: str
    mode: str
    terms: int
    half_width_95: float
    own_half_width_95: float


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything that was found about one release: what its report is made of, and nothing else.

    Args:
        key: of the release.
        programme: whose promise it is.
        sealed_digest: of the sealed bytes.
        plan_digest: of what they were drawn by.
        is_thresholded: whether any table is.
        losses: of one instance of each unit.
        gates: decide.
        audits: of a synthetic copy of the pipeline.
        risk: of every unit, alone and over time.
        averaging: by draw, how well a cell is known from several of its kind.
        differencing: how well one is known from a total.
        balances: of the group's accounts.
        timetable: what a public one tells of cells; None without one.
    """

    key: ReleaseKey
    programme: Programme
    sealed_digest: str
    plan_digest: str
    is_thresholded: bool
    losses: Mapping[ProtectionUnit, Loss]
    gates: tuple[GateResult, ...]
    audits: tuple[DrawAudit, ...]
    risk: Forecast
    averaging: Mapping[str, Sequence[Averaged]]
    differencing: tuple[Differencing, ...]
    balances: tuple[AccountBalance, ...]
    timetable: TimetableView | None

    @property
    def passed(self) -> bool:
        """Whether every gate lets the release go."""
        return all(gate.passed for gate in self.gates)


def assess_release(drawn: Drawn, evidence: Evidence | None = None) -> Assessment:
    """Put a sealed release through gates, audits and attacks.

    Args:
        drawn: the sealed release.
        evidence: what it is judged by beside the sealed bytes; none by default.
    """
    known = evidence or Evidence()
    audits = audits_of(drawn.programme, drawn.events, known.copy)
    losses = loss_by_unit(drawn.events)
    return Assessment(
        key=drawn.attempt.key,
        programme=drawn.programme,
        sealed_digest=str(drawn.attempt.artefact_digest),
        plan_digest=drawn.plan.digest,
        is_thresholded=any(event.threshold is not None for event in drawn.events),
        losses=losses,
        gates=gate_results(drawn, known, audits),
        audits=audits,
        risk=forecast(drawn.events, known.charged),
        averaging={
            event.label: [averaged(event, draws) for draws in _DRAWS_SHOWN]
            for event in one_of_each_label(drawn.events)
        },
        differencing=_differencing(drawn),
        balances=known.balances,
        timetable=known.timetable,
    )


def content_of(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as plain values for JSON."""
    losses = assessment.losses
    return {
        "release": str(assessment.key),
        "sealed_sha256": assessment.sealed_digest,
        "plan_sha256": assessment.plan_digest,
        "passed": assessment.passed,
        "headline": headline(assessment.gates),
        "gates": [{**asdict(gate), "outcome": gate.outcome} for gate in assessment.gates],
        "audits": [_audit(audit) for audit in assessment.audits],
        "what_an_audit_means": WHAT_IT_MEANS,
        "loss_by_unit": {
            str(unit): {
                "epsilon": None if loss.epsilon is None else str(loss.epsilon),
                "rho": None if loss.rho is None else str(loss.rho),
                "delta": str(loss.delta),
            }
            for unit, loss in losses.items()
        },
        "risk_by_unit": [as_figures(risk) for risk in assessment.risk.units],
        "risk_notes": list(assessment.risk.notes),
        "risk_over_weeks": over_weeks(assessment.risk),
        "averaging": {
            label: [asdict(average) for average in averages]
            for label, averages in assessment.averaging.items()
        },
        "differencing": [asdict(differencing) for differencing in assessment.differencing],
        "timetable": NOT_GIVEN if assessment.timetable is None else as_json(assessment.timetable),
        "ledger": [
            {**_balance(balance), "weeks_left": weeks_left(balance, losses[balance.unit])}
            for balance in assessment.balances
            if balance.unit in losses
        ],
        "limits": list(LIMITS),
        "formulas": list(SOURCES),
    }


def _differencing(drawn: Drawn) -> tuple[Differencing, ...]:
    """Return the exact interval of every pair of a total and its parts, a mode at a time."""
    events = {event.table: event for event in drawn.events}
    intervals = []
    layouts = layouts_of(drawn)
    for coarse, fine in nested_pairs(layouts):
        segments = zip(layouts[fine].segments, layouts[coarse].segments, strict=True)
        fine_width = half_width([term_of(events[fine])], 0.95)
        for large, small in segments:
            parts = large.cells // small.cells
            terms = [term_of(events[coarse])]
            if parts > 1:
                terms.append(term_of(events[fine], parts - 1))
            width = half_width(terms, 0.95)
            intervals.append(Differencing(coarse, fine, large.mode, parts, width, fine_width))
    return tuple(intervals)


def _audit(audit: DrawAudit) -> dict[str, Any]:
    """Return an audit for JSON."""
    return {
        "draw": audit.label,
        "unit": str(audit.unit),
        "epsilon_claimed": round(audit.claimed, 6),
        "delta": audit.delta,
        "epsilon_at_least": round(audit.bound.epsilon, 4),
        "confidence": audit.bound.confidence,
        "guesses": audit.bound.guesses,
        "right": audit.bound.right,
        "is_refuted": audit.is_refuted,
    }


def _balance(balance: AccountBalance) -> dict[str, Any]:
    """Return what an account has lost, for JSON."""
    spent, cap = balance.spent, balance.cap
    cap_micro = None if cap is None else cap.epsilon_micro
    return {
        "unit": str(balance.unit),
        "scope": balance.scope,
        "epsilon": None if spent.epsilon_micro is None else spent.epsilon_micro / MICRO,
        "rho": None if spent.rho_nano is None else spent.rho_nano / NANO,
        "cap_epsilon": None if cap_micro is None else cap_micro / MICRO,
    }
