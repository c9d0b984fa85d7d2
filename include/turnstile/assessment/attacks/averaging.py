"""Averaging: what repeated draws of the same numbers give away, over revisions and over weeks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from turnstile.assessment.attacks.presence import guess_after
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_sums import half_width
from turnstile.privacy.noise_terms import term_of


@dataclass(frozen=True, slots=True)
class Averaged:
    """What an average of so many draws of one cell says.

    Args:
        draws: of the same exact number.
        half_width_95: of the average, in counts.
        guess_right: chance of the best guess whether one record is in the cell.
    """

    draws: int
    half_width_95: float
    guess_right: float


def averaged(event: DrawEvent, draws: int) -> Averaged:
    """Return what an average of independent draws of one cell says; one draw is a release.

    Examples:
        >>> from turnstile.privacy.events import NoiseFamily
        >>> one = DrawEvent("t", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(1), (), ())
        >>> averaged(one, 10).half_width_95, round(averaged(one, 10).guess_right, 2)
        (0.9, 0.93)
    """
    single = replace(event, threshold=None, delta=Fraction(0))
    width = half_width([term_of(single, draws)], 0.95) / draws
    return Averaged(draws, width, guess_after([single], weeks=draws))
