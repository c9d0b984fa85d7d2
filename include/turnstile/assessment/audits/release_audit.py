"""The one-run audit of a release: every kind of draw of its plan, on a synthetic copy.

Made from the plan, and from how far synthetic units move a vector. For each kind of draw and each
audited unit: the claim, the lower bound at 95 %, and whether the claim is refuted at 1 - 1e-9,
which stops a publication.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.audits.one_run import LowerBound, audit
from turnstile.assessment.audits.pipeline_copy import (
    CanaryRun,
    ObservedSensitivity,
    PipelineCopy,
    declared_change,
    group_of,
    run_canaries,
)
from turnstile.privacy.accounts import loss_of
from turnstile.privacy.events import DrawEvent, Sensitivity, one_of_each_label
from turnstile.privacy.guarantees import Zcdp, epsilon_tight
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import chance_at_least
from turnstile.privacy.units import ProtectionUnit

CANARIES = 20_000  # for the unit whose loss the programme states
CANARIES_OF_OTHERS = 4_000
SHOWN_CONFIDENCE = 0.95
ALPHA = 1e-9  # chance that a correct release is stopped by this gate
GAUSSIAN_DELTA = Fraction(1, 10**5)
_REACH_SDS = 40
_Noise = tuple[NoiseFamily, Fraction, int | None]
_Kind = tuple[_Noise, ProtectionUnit, Sensitivity, ObservedSensitivity]


@dataclass(frozen=True, slots=True)
class DrawAudit:
    """What the audit of one kind of draw found.

    Args:
        label: tables and statistics that are drawn so.
        unit: audited unit.
        claimed: epsilon of one draw for the unit, at delta.
        delta: of the claim; 0 for Laplace noise.
        bound: lower bound at 95 %.
        is_refuted: whether the claim cannot be true, at 1 - 1e-9 for the whole release.
        event: first of the draws that are drawn so.
        noise: that was drawn for the canaries.
    """

    label: str
    unit: ProtectionUnit
    claimed: float
    delta: float
    bound: LowerBound
    is_refuted: bool
    event: DrawEvent
    noise: NDArray[np.int64] = field(repr=False, compare=False)

    @property
    def statement(self) -> str:
        """What was found, in words."""
        verdict = "refuted" if self.is_refuted else "not refuted"
        return (
            f"{self.label} for one {self.unit}: epsilon {self.claimed:.4g} claimed, at least "
            f"{self.bound.epsilon:.4g} measured ({self.bound.confidence:.0%}); {verdict}"
        )


def audit_release(
    events: Sequence[DrawEvent],
    unit: ProtectionUnit,
    *,
    others: Sequence[ProtectionUnit] = (),
    copy: PipelineCopy | None = None,
) -> tuple[DrawAudit, ...]:
    """Audit each kind of draw of a plan once, for the units that it bounds.

    Draws with one noise that one unit moves as far are of one kind.

    Args:
        events: of the plan.
        unit: whose loss the programme states.
        others: further units, audited with fewer canaries; those that a draw does not bound are
            left out for it.
        copy: of the pipeline; the product's own stages by default.
    """
    pipeline = copy or PipelineCopy()
    draws_alike: defaultdict[_Kind, list[DrawEvent]] = defaultdict(list)
    for audited in (unit, *others):
        for event in one_of_each_label(events):
            declared = dict(event.sensitivities).get(audited)
            if declared is not None:
                noise = (event.noise, event.scale, event.threshold)
                draws_alike[
                    noise, audited, declared, pipeline.sensitivity(event, audited, declared)
                ].append(event)
    audits = []
    for (_, audited, declared, _), draws in draws_alike.items():
        canaries = CANARIES if audited is unit else CANARIES_OF_OTHERS
        run = run_canaries(pipeline, draws[0], audited, declared, canaries=canaries)
        first = _audited(draws[0], audited, declared, run=run, error=ALPHA / len(draws_alike))
        audits.append(replace(first, label=", ".join(event.label for event in draws)))
    return tuple(audits)


def _audited(
    event: DrawEvent,
    unit: ProtectionUnit,
    sensitivity: Sensitivity,
    *,
    run: CanaryRun,
    error: float,
) -> DrawAudit:
    judged = _laplace if event.noise.record.is_pure else _gaussian
    bound, is_refuted = judged(event, sensitivity, run, error)
    return DrawAudit(
        label=event.label,
        unit=unit,
        claimed=claimed_epsilon(event, sensitivity),
        delta=0.0 if event.noise.record.is_pure else float(GAUSSIAN_DELTA),
        bound=bound,
        is_refuted=is_refuted,
        event=event,
        noise=run.noise,
    )


def _laplace(
    event: DrawEvent, sensitivity: Sensitivity, run: CanaryRun, error: float
) -> tuple[LowerBound, bool]:
    """Bound a Laplace draw by the guesses that are surest, of groups of equal units."""
    group = group_of(event, sensitivity)
    group_bound = audit(run.scores, run.is_in, confidence=SHOWN_CONFIDENCE)
    certain = audit(run.scores, run.is_in, confidence=1 - error)
    bound = replace(group_bound, epsilon=group_bound.epsilon / group)
    return bound, certain.epsilon > group * claimed_epsilon(event, sensitivity)


def _gaussian(
    event: DrawEvent, sensitivity: Sensitivity, run: CanaryRun, error: float
) -> tuple[LowerBound, bool]:
    """Bound a Gaussian draw by the accuracy of one guess a canary, in its own cell.

    Each canary has independent noise in the copy, so right guesses are at most binomial with the
    best accuracy of the claimed distribution. A pure-epsilon bound would say nothing of a
    Gaussian's tails, and its delta term leaves no power at 1 - 1e-9.
    """
    right = int(((run.scores > 0) == run.is_in).sum())
    shown = chance_at_least(right, run.is_in.size, alpha=1 - SHOWN_CONFIDENCE)
    certain = chance_at_least(right, run.is_in.size, alpha=error)
    change = declared_change(event, sensitivity)
    distance = 2 * NormalDist().inv_cdf(max(0.5, shown)) / change
    rho = Fraction(distance**2 / 2) * sensitivity.l2_squared
    epsilon = float(epsilon_tight(Zcdp(rho), GAUSSIAN_DELTA) or 0)
    bound = LowerBound(epsilon, SHOWN_CONFIDENCE, run.is_in.size, right)
    return bound, certain > _best_accuracy(event, change)


def _best_accuracy(event: DrawEvent, change: int) -> float:
    """Return the chance of the best guess between two inputs that differ in one cell."""
    reach = math.ceil(_REACH_SDS * event.scale) + change
    _, distribution = noise_pmf(event.noise, event.scale, reach=reach)
    distance = float(np.clip(distribution[change:] - distribution[:-change], 0, None).sum())
    return (1 + distance) / 2


def claimed_epsilon(event: DrawEvent, sensitivity: Sensitivity) -> float:
    """Return the epsilon that one draw claims: pure, or at delta 1e-5 for Gaussian noise."""
    loss = loss_of(event, sensitivity)
    if loss.epsilon is not None:
        return float(loss.epsilon)
    if loss.rho is None:
        raise ValueError("a unit without a bound has no claim to audit")
    return float(epsilon_tight(Zcdp(loss.rho), GAUSSIAN_DELTA) or 0)
