"""Membership inference, simulated: units in or out by a coin, in noise of the product's own.

The simulated twin of `presence.best_guess`: the attacker knows everything but whether the unit is
there, sees every cell that it would change, and guesses by the likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.presence import log_ratios
from turnstile.assessment.attacks.unit_changes import Change
from turnstile.assessment.audits.pipeline_copy import coins
from turnstile.privacy.events import DrawEvent

Draw = Callable[[DrawEvent, NDArray[np.int64]], NDArray[np.int64]]


def membership_accuracy(
    changes: Mapping[Change, int], *, weeks: int, canaries: int, draw: Draw | None = None
) -> tuple[float, ...]:
    """Return the share of right guesses after each of so many weeks.

    Args:
        changes: that a unit makes in a week, and how many cells it changes so.
        weeks: to add up.
        canaries: units, half of them in, by coins.
        draw: event, exact cells -> noised cells; the product's own by default.
    """
    from turnstile.privacy.mechanisms import dispatch

    noised = draw or dispatch.draw
    is_in = coins(canaries)
    ratios = np.zeros(canaries)
    accuracy = []
    for _ in range(weeks):
        for change, cells in changes.items():
            event = DrawEvent("canaries", "count", change.noise, change.scale, (), ())
            exact = np.where(is_in, change.by, 0).astype(np.int64)
            value = noised(event, np.tile(exact, cells)).reshape(cells, canaries)
            ratios += log_ratios(change.noise, change.scale, value, change.by).sum(axis=0)
        guessed = np.where(ratios == 0, coins(canaries), ratios > 0)
        accuracy.append(float(np.mean(guessed == is_in)))
    return tuple(accuracy)
