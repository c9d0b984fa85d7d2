"""Which scales of noise a table does not contradict, whatever its raw counts are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.evidence_of_any_counts import log_evidence
from turnstile.privacy.noise_families import NoiseFamily

_FARTHEST = 8.0  # times narrower or wider that an interval looks
_STEPS = 6


@dataclass(frozen=True, slots=True)
class ScaleInterval:
    """Scales that a table does not contradict.

    Args:
        low: lower end; 0 if none shows, or if no scale near the declared one fits.
        high: upper end; infinite likewise.
        confidence: of the interval, at least, whatever the raw counts are.
        samples: numbers that it rests on.
    """

    low: float
    high: float
    confidence: float
    samples: int


def interval(
    values: NDArray[np.int64],
    family: NoiseFamily,
    declared: float,
    *,
    is_signed: bool = False,
    confidence: float = 0.95,
) -> ScaleInterval:
    """Return the scales around the declared one that are not refuted.

    Args:
        values: published numbers, any shape.
        family: of the noise.
        declared: scale to begin at.
        is_signed: whether raw numbers may be below zero.
        confidence: strictly between 0 and 1.
    """
    enough = math.log(1 / (1 - confidence))

    def is_refuted(factor: float) -> bool:
        return log_evidence(values, family, declared * factor, is_signed=is_signed) > enough

    tried = (1.0, 0.7, 1.5, 0.5, 2.0, 0.3, 3.0, 5.0)
    start = next((factor for factor in tried if not is_refuted(factor)), None)
    if start is None:
        return ScaleInterval(0.0, math.inf, confidence, int(values.size))
    ends = []
    for far, none in ((start / _FARTHEST, 0.0), (start * _FARTHEST, math.inf)):
        kept, gone = start, far
        if not is_refuted(far):
            ends.append(none)
            continue
        for _ in range(_STEPS):
            middle = math.sqrt(kept * gone)
            kept, gone = (kept, middle) if is_refuted(middle) else (middle, gone)
        ends.append(gone * declared)
    return ScaleInterval(ends[0], ends[1], confidence, int(values.size))
