"""Gates on a synthetic copy of the pipeline: its bounding and counting, its claims, its sampler."""

from __future__ import annotations

from collections.abc import Sequence

from turnstile.assessment.audits.pipeline_copy import PipelineCopy
from turnstile.assessment.audits.release_audit import DrawAudit, audit_release
from turnstile.assessment.audits.sampler import DRAWS, MANY_DRAWS, misfit
from turnstile.assessment.gates.result import ALPHA, GateResult, not_applicable
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.spec import Programme

_FINDS = "draws used twice"
_FINDS_IN_MANY = (
    ", and by the many draws of a version of the code a mean or a size 1 % off and tails cut at 4 "
    "deviations (docs/LAB.md says how often, as it was measured)"
)


def plan_gates(
    programme: Programme,
    events: Sequence[DrawEvent],
    copy: PipelineCopy,
    audits: Sequence[DrawAudit],
) -> tuple[GateResult, ...]:
    """Return what the gates found that need no sealed byte: they judge before a charge too.

    Args:
        programme: that is released.
        events: of its plan.
        copy: of the pipeline.
        audits: of the events (`audits_of`).
    """
    return (
        declared_sensitivity(programme, events, copy),
        one_run_audit(audits),
        sampler(events, copy, audits),
    )


def audits_of(
    programme: Programme, events: Sequence[DrawEvent], copy: PipelineCopy
) -> tuple[DrawAudit, ...]:
    """Audit the draws of a plan for the programme's own unit and for those that it bounds."""
    unit, *others = _units_of(programme)
    return audit_release(events, unit, others=others, copy=copy)


def _units_of(programme: Programme) -> list[ProtectionUnit]:
    """Return the programme's own unit, then the others that it bounds."""
    unit = programme.mechanism.unit
    return [unit, *(bound.unit for bound in programme.units if bound.unit is not unit)]


def declared_sensitivity(
    programme: Programme, events: Sequence[DrawEvent], copy: PipelineCopy
) -> GateResult:
    """No synthetic unit, bounded and counted by the product's code, changes a vector too much.

    Exact and without chance: a unit that changes a vector more than its declared sensitivity was
    not bounded as the loss assumes.
    """
    name = "declared_sensitivity"
    units = _units_of(programme)
    too_far = sorted(
        {
            f"one {unit} moves {event.label} by {observed.l1} in all, {declared.l1} are declared"
            for event in events
            for unit, declared in event.sensitivities
            if unit in units and declared is not None
            for observed in [copy.sensitivity(event, unit, declared)]
            if not observed.is_within(declared)
        }
    )
    tried = sum(unit in units for _, unit in copy.observed)
    if not tried and not too_far:
        return not_applicable(name, "no trials of synthetic units were made")
    passed = f"{tried} trials of synthetic units: none moves a table farther than is declared"
    detects = "any unit that the trials count beyond its bound; ways that no trial takes are unseen"
    return GateResult(name, not too_far, "; ".join(too_far) or passed, detects=detects)


def one_run_audit(audits: Sequence[DrawAudit]) -> GateResult:
    """No claim is refuted by the audit of a synthetic copy of the pipeline."""
    name = "one_run_audit"
    refuted = [audit for audit in audits if audit.is_refuted]
    if not audits:
        return GateResult(name, passed=False, statement="nothing to audit: no unit is bounded")
    shown = refuted or sorted(audits, key=lambda audit: audit.claimed)[-1:]
    return GateResult(
        name,
        not refuted,
        "; ".join(audit.statement for audit in shown),
        ALPHA,
        "a loss above its claim: docs/LAB.md says how far above, as it was measured",
    )


def sampler(
    events: Sequence[DrawEvent], copy: PipelineCopy, audits: Sequence[DrawAudit] = ()
) -> GateResult:
    """The sampler that draws here and now fits what it is declared to draw.

    It finds a noise library that is biased, which the numbers of a release may be too few to show.

    Args:
        events: of the plan.
        copy: draws on zeros the noise that no audit drew enough of.
        audits: of the plan, whose canaries have noise of the same sampler.
    """
    name = "sampler"
    event_of = {(event.noise, event.scale): event for event in events}
    drawn = {
        (audit.event.noise, audit.event.scale): audit.noise
        for audit in audits
        if audit.event.threshold is None and audit.noise.size >= DRAWS
    }
    alpha = ALPHA / len(event_of)
    wrong = []
    for kind, event in event_of.items():
        draw = copy.draw if kind not in drawn else lambda *_, kind=kind: (drawn[kind],)
        problem = copy.misfits.get(kind) or misfit(event, draw, alpha=alpha)
        if problem is not None:
            wrong.append(f"{event.noise} of scale {float(event.scale):.4g}: {problem}")
    is_known = copy.misfits.keys() >= event_of.keys()
    known = f", and {MANY_DRAWS:,} with this code" if is_known else ""
    return GateResult(
        name,
        not wrong,
        "; ".join(wrong)
        or f"{len(event_of)} kinds of noise: {DRAWS:,} draws each now{known}, as declared",
        ALPHA,
        _FINDS + _FINDS_IN_MANY * is_known,
    )
