"""Presence: with what probability a published number proves, or suggests, that somebody was there.

*Proof* needs a mechanism that leaves zeros alone: a released cell then held at least one record.
*Suggestion* is all that noise on every cell allows: the best guess after any number of draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_pmf, noise_variance

_GRID_CELLS = 2**18
_REACH_SDS = 14


def proof_continuous(group: int, *, threshold: float, scale: float) -> float:
    """Return P(group + Lap(scale) > threshold): released only if somebody was there.

    1/2 exp(-(t - g)/p) for g <= t (Theorem 1 of the 2017 assessment, corrected: its exp(.)/(2p) is
    a density).

    Args:
        group: people in a cell that is empty without them, >= 1.
        threshold: t, before any rounding, in counts.
        scale: p, in counts.

    Examples:
        >>> [f"{proof_continuous(group, threshold=18, scale=1.4):.3g}" for group in (1, 5, 12)]
        ['2.66e-06', '4.64e-05', '0.00688']
    """
    distance = threshold - group
    if distance < 0:
        return 1 - math.exp(distance / scale) / 2
    return math.exp(-distance / scale) / 2


def proof_rounded(group: int, *, least: int, scale: float) -> float:
    """Return P(round(group + Lap(scale)) >= least): rounded first, threshold afterwards.

    Examples:
        >>> f"{proof_rounded(1, least=18, scale=1.4):.3g}"
        '3.81e-06'
        >>> f"{proof_rounded(1, least=19, scale=1.4):.3g}"
        '1.86e-06'
    """
    return proof_continuous(group, threshold=least - 0.5, scale=scale)


def proof_integer(group: int, *, threshold: int, scale: float) -> float:
    """Return P(group + Z >= threshold) for discrete Laplace Z of scale b: r^(T-g)/(1 + r).

    Examples:
        >>> f"{proof_integer(1, threshold=35, scale=2.0):.3g}"
        '2.58e-08'
    """
    ratio = math.exp(-1 / scale)
    distance = threshold - group
    if distance <= 0:
        return 1 - ratio ** (1 - distance) / (1 + ratio)
    return ratio**distance / (1 + ratio)


def guess_after(events: Sequence[DrawEvent], *, group: int = 1, weeks: int = 1) -> float:
    """Return the chance of the best guess whether a group was there, against one half by chance.

    The group is known to be in one cell of each draw in every week, or in none; everything else in
    those cells is known: the strongest attacker. (1 + TV)/2, with the total variation worked out
    from the distribution of the summed log likelihood ratios (Neyman & Pearson 1933).

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
    distributions = [_losses(event, group * step_of(event)) for event in events]
    span = weeks * sum(float(np.abs(ratios).max()) for ratios, _ in distributions)
    step = 2.2 * span / _GRID_CELLS
    transform = np.ones(_GRID_CELLS // 2 + 1, dtype=np.complex128)
    for ratios, probabilities in distributions:
        transform *= np.fft.rfft(_on_grid(ratios / step, probabilities))
    distribution = np.clip(np.fft.irfft(transform**weeks, _GRID_CELLS), 0, None)
    ratio = step * np.arange(1, _GRID_CELLS // 2)
    distance = float(np.sum(distribution[1 : _GRID_CELLS // 2] * -np.expm1(-ratio)))
    return min(1.0, (1 + distance) / 2)


def step_of(event: DrawEvent) -> int:
    """Return how far one record moves its cell in a draw: 1 for counts, more for sums."""
    bounded = [bound for _, bound in event.sensitivities if bound is not None]
    return max(1, bounded[0].l1 // bounded[0].l0) if bounded else 1


def log_ratios(event: DrawEvent, values: NDArray[np.int64], change: int) -> NDArray[np.float64]:
    """Return ln P(value | change in the cell) - ln P(value | nothing in it)."""
    scale = float(event.scale)
    if event.noise is NoiseFamily.DISCRETE_LAPLACE:
        return np.asarray((np.abs(values) - np.abs(values - change)) / scale)
    return np.asarray((2 * change * values - change**2) / (2 * scale**2))


def _losses(event: DrawEvent, change: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log likelihood ratios of one draw, and their probabilities if they were there."""
    deviation = math.sqrt(noise_variance(event.noise, event.scale))
    reach = math.ceil(_REACH_SDS * 2 * deviation) + change
    values, absent = noise_pmf(event.noise, event.scale, reach=reach)
    present = np.concatenate((np.zeros(change), absent[:-change]))
    return log_ratios(event, values, change), present


def _on_grid(places: NDArray[np.float64], masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Split each mass over the two nearest grid cells, so that the mean stays; negatives wrap."""
    below = np.floor(places).astype(np.int64)
    share = places - below
    grid = np.bincount(below % _GRID_CELLS, masses * (1 - share), _GRID_CELLS)
    return np.asarray(grid + np.bincount((below + 1) % _GRID_CELLS, masses * share, _GRID_CELLS))
