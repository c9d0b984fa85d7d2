"""Hard gates before a publication: any that fails stops it and leaves the bytes under embargo.

A gate reads the sealed artefact, its declared parameters and synthetic data, never raw data: a gate
that looked at raw data would be a selection on it (PRIVACY 8). Each statistical gate stops a
correct release with a chance of at most 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnstile.assessment.audits.release_audit import DrawAudit, audit_release
from turnstile.assessment.gate_result import GateResult
from turnstile.assessment.gates_of_numbers import fresh, integers, noised_zeros, support
from turnstile.assessment.gates_of_scale import below_zero, nested_scale
from turnstile.privacy.units import ProtectionUnit
from turnstile.release.drawn import Drawn

__all__ = ["GateResult", "audits_of", "gate_results"]


def gate_results(drawn: Drawn, audits: Sequence[DrawAudit] | None = None) -> tuple[GateResult, ...]:
    """Return what every gate found; only that of support where it fails.

    Args:
        drawn: the sealed release.
        audits: of its plan; made here if they are not given.
    """
    complete = support(drawn)
    if not complete.passed:
        return (complete,)  # the others compare draws and cells one by one
    return (
        complete,
        noised_zeros(drawn),
        fresh(drawn),
        integers(drawn),
        nested_scale(drawn),
        below_zero(drawn),
        _one_run_audit(audits_of(drawn) if audits is None else audits),
    )


def audits_of(drawn: Drawn) -> tuple[DrawAudit, ...]:
    """Audit the draws of a plan for the programme's own unit and for those that it bounds."""
    own = drawn.programme.mechanism.unit
    bounded: list[ProtectionUnit] = [bound.unit for bound in drawn.programme.units]
    return audit_release(drawn.events, own, others=[unit for unit in bounded if unit is not own])


def _one_run_audit(audits: Sequence[DrawAudit]) -> GateResult:
    """No claim is refuted by the audit of a synthetic copy of the pipeline."""
    refuted = [audit for audit in audits if audit.is_refuted]
    shown = refuted or sorted(audits, key=lambda audit: audit.claimed)[-1:]
    statement = "; ".join(audit.statement for audit in shown) or "nothing to audit"
    return GateResult("one_run_audit", not refuted and bool(audits), statement)
