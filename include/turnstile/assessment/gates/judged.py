"""Hard gates before a publication: any that fails stops it and leaves the bytes under embargo.

A gate reads the sealed artefact, its declared parameters and synthetic data, never raw data: a gate
that looked at raw data would be a selection on it (PRIVACY 8). Each statistical gate stops a
correct release with a chance of at most 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnstile.assessment.audits.pipeline_copy import PipelineCopy
from turnstile.assessment.audits.release_audit import DrawAudit, audit_release
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.noise_scale import any_counts, below_zero, nested_scale
from turnstile.assessment.gates.result import GateResult
from turnstile.assessment.gates.sealed_numbers import (
    fresh,
    integers,
    noised_zeros,
    one_byte_string,
    support,
)
from turnstile.privacy.units import ProtectionUnit
from turnstile.release.drawn import Drawn

__all__ = ["GateResult", "audits_of", "gate_results"]


def gate_results(
    drawn: Drawn,
    evidence: Evidence | None = None,
    audits: Sequence[DrawAudit] | None = None,
) -> tuple[GateResult, ...]:
    """Return what every gate found; only those of support and of the sealed files if one fails.

    Args:
        drawn: the sealed release.
        evidence: beside the sealed bytes; none by default.
        audits: of its plan; made here if they are not given.
    """
    known = evidence or Evidence()
    first = (support(drawn), one_byte_string(drawn, known.sealed_digests))
    if not all(gate.passed for gate in first):
        return first  # the others compare draws and cells one by one
    return (
        *first,
        noised_zeros(drawn),
        fresh(drawn),
        integers(drawn),
        nested_scale(drawn),
        below_zero(drawn),
        any_counts(drawn),
        declared_sensitivity(drawn, known.copy),
        _one_run_audit(audits_of(drawn, known.copy) if audits is None else audits),
    )


def audits_of(drawn: Drawn, copy: PipelineCopy | None = None) -> tuple[DrawAudit, ...]:
    """Audit the draws of a plan for the programme's own unit and for those that it bounds."""
    own, *others = units_of(drawn)
    return audit_release(drawn.events, own, others=others, copy=copy)


def units_of(drawn: Drawn) -> list[ProtectionUnit]:
    """Return the programme's own unit, then the others that it bounds."""
    own = drawn.programme.mechanism.unit
    return [own, *(bound.unit for bound in drawn.programme.units if bound.unit is not own)]


def declared_sensitivity(drawn: Drawn, copy: PipelineCopy) -> GateResult:
    """No synthetic unit, bounded and counted by the product's code, moves a vector too far.

    Exact and without chance: a unit that moves a vector farther than its declared sensitivity was
    not bounded as the loss assumes.
    """
    units = units_of(drawn)
    too_far = sorted(
        {
            f"one {unit} moves {event.label} by {observed.l1} in all, {declared.l1} are declared"
            for event in drawn.events
            for unit, declared in event.sensitivities
            if unit in units and declared is not None
            for observed in [copy.sensitivity(event, unit, declared)]
            if not observed.is_within(declared)
        }
    )
    tried = sum(unit in units for _, unit in copy.observed)
    passed = f"{tried} trials of synthetic units: none moves a table farther than is declared"
    return GateResult(
        "declared_sensitivity",
        not too_far,
        "; ".join(too_far) or (passed if tried else "no trials of synthetic units were made"),
    )


def _one_run_audit(audits: Sequence[DrawAudit]) -> GateResult:
    """No claim is refuted by the audit of a synthetic copy of the pipeline."""
    refuted = [audit for audit in audits if audit.is_refuted]
    shown = refuted or sorted(audits, key=lambda audit: audit.claimed)[-1:]
    statement = "; ".join(audit.statement for audit in shown) or "nothing to audit"
    return GateResult("one_run_audit", not refuted and bool(audits), statement)
