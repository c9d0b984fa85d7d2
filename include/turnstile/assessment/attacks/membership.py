"""Membership inference over weeks, on synthetic canaries drawn by the product's own mechanisms.

The simulated twin of `presence.guess_after`: commuters who are in one known cell of every draw,
every week, or never; the attacker knows everything else and guesses by the likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turnstile.assessment.attacks.presence import log_ratios, step_of
from turnstile.assessment.audits.pipeline_copy import coins
from turnstile.privacy.events import DrawEvent


def membership_accuracy(
    events: Sequence[DrawEvent], *, weeks: int, canaries: int
) -> tuple[float, ...]:
    """Return the share of right guesses after each of so many weeks.

    Args:
        events: draws of one week that hold a canary in one cell each; dense.
        weeks: to add up.
        canaries: half of them in, by coins.
    """
    from turnstile.privacy.mechanisms.dispatch import draw

    is_in = coins(canaries)
    ratios = np.zeros(canaries)
    accuracy = []
    for _ in range(weeks):
        for event in events:
            change = step_of(event)
            exact = np.where(is_in, change, 0).astype(np.int64)
            value = draw(event, exact)
            ratios += log_ratios(event, value, change)
        guessed = np.where(ratios == 0, coins(canaries), ratios > 0)
        accuracy.append(float(np.mean(guessed == is_in)))
    return tuple(accuracy)
