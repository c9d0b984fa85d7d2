"""How far a published number may lie from the exact one: from the declared noise alone.

These are floats for people: no loss depends on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from turnstile.estimates.fitting.combined_noise import CONFIDENCES
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import Term, half_width, noise_variance, term_of


@dataclass(frozen=True, slots=True)
class ErrorBar:
    """Error of one noisy cell, in counts (or grid steps).

    Args:
        standard_deviation: of the noise.
        half_width_90: the noise is at most this large with probability 0.90 or more.
        half_width_95: the same with probability 0.95 or more.
    """

    standard_deviation: float
    half_width_90: int
    half_width_95: int


def error_bar(event: DrawEvent) -> ErrorBar:
    """Return the error of one cell of a draw: the least half-widths that hold what they say.

    Where multiples of counts are drawn, in counts: the week's own, if all before it were known.
    """
    term = term_of(event)
    widths = (math.ceil(_half_width(term, level) / event.step) for level in CONFIDENCES)
    return ErrorBar(math.sqrt(noise_variance(event.noise, event.scale)) / event.step, *widths)


@lru_cache(maxsize=256)  # days and weeks of a table are drawn with one noise
def _half_width(term: Term, level: float) -> int:
    return int(half_width([term], level))
