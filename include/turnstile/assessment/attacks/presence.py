"""Presence: with what probability published numbers suggest that somebody was there.

That is all that noise on every cell allows: the best guess after any number of draws.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.unit_changes import Change, Changes
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily

_GRID_CELLS = 2**16
_REACH_DEVIATIONS = 9
_REACH_SDS = 14


def guess_after(events: Sequence[DrawEvent], *, group: int = 1, weeks: int = 1) -> float:
    """Return the chance of the best guess whether a group was there, against one half by chance.

    The group is known to be in one cell of each draw in every week, or in none; everything else in
    those cells is known.

    Args:
        events: draws of one week that hold the group in one cell each.
        group: people, >= 1.
        weeks: weeks in which all of them are drawn.

    Examples:
        >>> from fractions import Fraction
        >>> once = DrawEvent("t", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(1), (), ())
        >>> [round(guess_after([once], weeks=draws), 3) for draws in (1, 5, 10)]
        [0.731, 0.876, 0.935]
    """
    changes: Changes = Counter()
    for event in events:
        changes[Change(event.noise, event.scale, group * step_of(event))] += weeks
    return best_guess(changes)


def best_guess(changes: Mapping[Change, int]) -> float:
    """Return the chance of the best guess whether all of these changes were made, or none.

    Everything else is known: the strongest attacker. (1 + TV)/2, with the total variation worked
    out from the distribution of the summed log likelihood ratios (Neyman & Pearson 1933).

    Args:
        changes: how many cells are changed so.
    """
    ratios = [(*_losses(change), number) for change, number in changes.items() if number]
    mean = sum(number * float(support @ masses) for support, masses, number in ratios)
    # Ratios of Laplace noise are bounded, those of Gaussian noise as narrow as a normal deviate:
    # beyond nine such deviations lies less than 1e-17 (Hoeffding 1963).
    spread = math.sqrt(sum(n * _proxy(change) ** 2 for change, n in changes.items()))
    step = 2 * (mean + _REACH_DEVIATIONS * spread) / _GRID_CELLS
    if step == 0:
        return 0.5
    transform = np.ones(_GRID_CELLS // 2 + 1, dtype=np.complex128)
    for losses, masses, number in ratios:
        transform *= np.fft.rfft(_on_grid(losses / step, masses)) ** number
    summed = np.clip(np.fft.irfft(transform, _GRID_CELLS), 0, None)
    ratio = step * np.arange(1, _GRID_CELLS // 2)
    distance = float(np.sum(summed[1 : _GRID_CELLS // 2] * -np.expm1(-ratio)))
    return min(1.0, (1 + distance) / 2)


def step_of(event: DrawEvent) -> int:
    """Return how far one record moves its cell in a draw: 1 for counts, more for sums."""
    bounded = [bound for _, bound in event.sensitivities if bound is not None]
    return max(1, bounded[0].l1 // bounded[0].l0) if bounded else 1


def log_ratios(
    noise: NoiseFamily, scale: Fraction, values: NDArray[np.int64], change: int
) -> NDArray[np.float64]:
    """Return ln P(value | change in the cell) - ln P(value | nothing in it)."""
    return noise.record.ratios(values, change, float(scale))


def _losses(change: Change) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log likelihood ratios of one draw, and their probabilities if changed."""
    deviation = math.sqrt(noise_variance(change.noise, change.scale))
    reach = math.ceil(_REACH_SDS * 2 * deviation) + change.by
    values, absent = noise_pmf(change.noise, change.scale, reach=reach)
    present = np.concatenate((np.zeros(change.by), absent[: -change.by]))
    return log_ratios(change.noise, change.scale, values, change.by), present


def _proxy(change: Change) -> float:
    """Return a deviation that a log likelihood ratio is sub-Gaussian with."""
    return change.by / float(change.scale)


def _on_grid(positions: NDArray[np.float64], masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Split each mass over the two nearest grid cells, so that the mean stays; negatives wrap."""
    below = np.floor(positions).astype(np.int64)
    share = positions - below
    grid = np.bincount(below % _GRID_CELLS, masses * (1 - share), _GRID_CELLS)
    return np.asarray(grid + np.bincount((below + 1) % _GRID_CELLS, masses * share, _GRID_CELLS))
