"""The noise is of the declared kind and scale, whatever the raw counts are.

Of every dense table, half of the cells learns what the numbers look like, with no noise assumed and
with noise of other scales; the other half bets on it against the nearest mixture of the declared
noise (`evidence_of_any_counts`). Of such a bet a bound is known alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.evidence_of_any_counts import log_evidence
from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import ALPHA, GateResult, not_applicable
from turnstile.privacy.events import DrawEvent

_NAME = "noise_kind"
_DETECTS = (
    "no size is stated: it depends on the raw counts, which nobody may look at; docs/LAB.md says "
    "what was measured on made-up weeks"
)


def noise_kind(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """No dense table holds noise of another kind or scale, or cells without any."""
    judged = numbers.by_day_and_pooled(numbers.dense)
    if not judged:
        return not_applicable(_NAME, "no dense table: a threshold hides the shape of its noise")
    each = alpha / len(judged)
    wrong = [
        f"{label}: the noise is not {event.noise} of scale {float(event.scale):.4g} alone"
        for label, (event, values) in judged.items()
        if label in numbers.doubtful and _is_refuted(values, event, each)
    ]
    passed = (
        f"{len(judged)} dense tables and days of them: none shows noise of another kind or scale"
    )
    return GateResult(
        _NAME,
        not wrong,
        "; ".join(wrong) or passed,
        alpha,
        _DETECTS,
    )


def _is_refuted(values: NDArray[np.int64], event: DrawEvent, alpha: float) -> bool:
    """Tell whether the bet on what one half of the numbers looks like is won."""
    scale, is_signed = float(event.scale), event.statistic == "sum"
    evidence = log_evidence(values, event.noise, scale, is_signed=is_signed)
    return evidence > math.log(1 / alpha)
