"""The assessment of one release as values: gates, audits, attacks, risk over time, limits.

Gates decide; everything else is a report and never blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from turnstile.assessment.attacks.presence import averaged
from turnstile.assessment.attacks.risk import (
    Forecast,
    as_figures,
    forecast,
    over_weeks,
    weeks_left,
)
from turnstile.assessment.attacks.synthetic import (
    Reconstruction,
    reconstruction,
    simulated_membership,
)
from turnstile.assessment.attacks.timetable_view import NOT_GIVEN, TimetableView, as_json
from turnstile.assessment.audits.one_run import WHAT_IT_MEANS
from turnstile.assessment.audits.release_audit import DrawAudit
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.numbers import layouts_of, nested_pairs
from turnstile.assessment.gates.pipeline_copy import audits_of
from turnstile.assessment.gates.registry import gate_results
from turnstile.assessment.gates.result import GateResult, headline
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.accounts import MICRO, NANO, Loss
from turnstile.privacy.events import one_of_each_label
from turnstile.privacy.noise_sums import half_width
from turnstile.privacy.noise_terms import term_of
from turnstile.privacy.units import ProtectionUnit
from turnstile.release.drawn import Drawn
from turnstile.release.plan import loss_by_unit

_DRAWS_SHOWN = (1, 2, 5, 10)
LIMITS = (
    (
        "Gates and audits look for breaches of the claim. That none was found is no proof: the "
        "proof is the mechanism's, and holds for the code and the randomness that it is about."
    ),
    (
        "The guarantee is per unit. What a unit is, and what is not protected, is on the release "
        "card: groups of people, habits over weeks, and facts about a whole vehicle or line are "
        "outside it."
    ),
    (
        "The best guesses are those of the strongest attacker, who knows everything but whether "
        "one unit is there. For the worst unit nobody who sees only this release does better. For "
        "the typical one the chance is that of its stated habits: whoever travels more shows more, "
        "up to the worst; who travels less shows less."
    ),
    (
        "A unit is guessed from all draws that hold it together: of every programme of the group "
        "and every revision, as the ledger charged them. Weeks ahead are reckoned as if each "
        "programme of the group went on as it released last."
    ),
    (
        "A timetable can show that a cell is one vehicle or one stop; the noise still hides each "
        "person, but the cell says where and when."
    ),
    "Whether a week appears at all depends on its data through validation.",
    (
        "The audit runs synthetic units through the bounding, counting and noise that made this "
        "release. It tries the ways of moving a table that we could think of; whether no other way "
        "moves it farther is what docs/PRIVACY.md argues."
    ),
)
SOURCES = (
    ("best guess", "(1 + TV)/2, TV of the summed log likelihood ratios", "Neyman & Pearson 1933"),
    (
        "proof of presence",
        "1/2 exp(-(t - g)/p), continuous; r^(T-g)/(1 + r), integers",
        "Culnane, Rubinstein & Teague 2017, Theorem 1, corrected",
    ),
    (
        "differencing",
        "exact distribution of a sum of noises; three Laplace terms: e^(-u)(8 + 5u + u^2)/8",
        "Culnane, Rubinstein & Teague 2017, Theorem 5, corrected; Gil-Pelaez 1951",
    ),
    (
        "one-run audit",
        "right guesses below Bin(r, e^eps/(1 + e^eps))",
        "Steinke, Nasr & Jagielski 2023",
    ),
    (
        "scale below zero",
        "P(c + Z = -k) is proportional to e^(-k/b)",
        "memoryless tail of the distribution",
    ),
    (
        "scale, whatever the counts are",
        (
            "product of q(x)/p(x) over half of the cells, q learned from the other half, p the "
            "nearest mixture of the declared distributions: above 1/alpha with a chance of at most "
            "alpha"
        ),
        "Grunwald, de Heide & Koolen 2024; Ville 1939",
    ),
    ("reconstruction", "least squares; least weighted distance", "Dinur & Nissim 2003"),
)


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
    """Everything that was found about one release; losses are those of one instance of a unit."""

    drawn: Drawn
    losses: Mapping[ProtectionUnit, Loss]
    gates: tuple[GateResult, ...]
    audits: tuple[DrawAudit, ...]
    risk: Forecast
    differencing: tuple[Differencing, ...]
    reconstruction: Reconstruction
    membership: tuple[float, ...]
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
        drawn=drawn,
        losses=losses,
        gates=gate_results(drawn, known, audits),
        audits=audits,
        risk=forecast(drawn.events, known.charged),
        differencing=_differencing(drawn),
        reconstruction=_reconstruction(drawn),
        membership=simulated_membership(drawn.events, drawn.programme.mechanism.unit),
        balances=known.balances,
        timetable=known.timetable,
    )


def content_of(found: Assessment) -> dict[str, Any]:
    """Return an assessment as plain values for JSON."""
    drawn = found.drawn
    one_of_each = one_of_each_label(drawn.events)
    return {
        "release": str(drawn.attempt.key),
        "sealed_sha256": drawn.attempt.artefact_digest,
        "plan_sha256": drawn.plan.digest,
        "passed": found.passed,
        "headline": headline(found.gates),
        "gates": [{**asdict(gate), "outcome": gate.outcome} for gate in found.gates],
        "audits": [_audit(audit) for audit in found.audits],
        "what_an_audit_means": WHAT_IT_MEANS,
        "loss_by_unit": {
            str(unit): {
                "epsilon": None if own.epsilon is None else str(own.epsilon),
                "rho": None if own.rho is None else str(own.rho),
                "delta": str(own.delta),
            }
            for unit, own in found.losses.items()
        },
        "risk_by_unit": [as_figures(one) for one in found.risk.units],
        "risk_notes": list(found.risk.notes),
        "risk_over_weeks": over_weeks(found.risk),
        "averaging": {
            event.label: [asdict(averaged(event, draws)) for draws in _DRAWS_SHOWN]
            for event in one_of_each
        },
        "differencing": [asdict(one) for one in found.differencing],
        "reconstruction_of_synthetic_table": asdict(found.reconstruction),
        "membership_simulated_by_week": found.membership,
        "timetable": NOT_GIVEN if found.timetable is None else as_json(found.timetable),
        "ledger": [
            {**_balance(balance), "weeks_left": weeks_left(balance, found.losses[balance.unit])}
            for balance in found.balances
            if balance.unit in found.losses
        ],
        "limits": list(LIMITS),
        "formulas": [{"what": w, "formula": f, "source": s} for w, f, s in SOURCES],
    }


def _differencing(drawn: Drawn) -> tuple[Differencing, ...]:
    """Return the exact interval of every pair of a total and its parts, a mode at a time."""
    events = {event.table: event for event in drawn.events}
    found = []
    layouts = layouts_of(drawn)
    for coarse, fine in nested_pairs(layouts):
        segments = zip(layouts[fine].segments, layouts[coarse].segments, strict=True)
        own = half_width([term_of(events[fine])], 0.95)
        for large, small in segments:
            parts = large.cells // small.cells
            terms = [term_of(events[coarse])]
            if parts > 1:
                terms.append(term_of(events[fine], parts - 1))
            width = half_width(terms, 0.95)
            found.append(Differencing(coarse, fine, large.mode, parts, width, own))
    return tuple(found)


def _reconstruction(drawn: Drawn) -> Reconstruction:
    """Reconstruct a synthetic table with the noise of a fine table and of its margins, if any."""
    events = {event.table: event for event in drawn.events if event.statistic != "sum"}
    tables = {table.name: table for table in drawn.programme.tables if table.name in events}
    fine = max(tables.values(), key=lambda table: len(table.by))
    margins = [
        next((events[one.name] for one in tables.values() if one.by == (axis,)), None)
        for axis in fine.by[:2]
    ]
    return reconstruction(events[fine.name], *margins)


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
    spent = balance.spent
    return {
        "unit": str(balance.unit),
        "scope": balance.scope,
        "epsilon": None if spent.epsilon_micro is None else spent.epsilon_micro / MICRO,
        "rho": None if spent.rho_nano is None else spent.rho_nano / NANO,
        "cap_epsilon": (
            None
            if balance.cap is None or balance.cap.epsilon_micro is None
            else balance.cap.epsilon_micro / MICRO
        ),
    }
