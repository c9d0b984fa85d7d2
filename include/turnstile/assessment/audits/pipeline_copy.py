"""A synthetic copy of the pipeline: canaries are bounded, counted, and drawn by the mechanisms.

The draw is the product's own (`privacy.mechanisms`), for the very events of the plan. Rows are
made up: each canary has a cell of its own. Every stage can be replaced, so that tests can put a
fault into the copy and see the audit find it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.presence import log_ratios
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity

Draw = Callable[[DrawEvent, NDArray[np.int64]], tuple[NDArray[np.int64], ...]]
Bound = Callable[[NDArray[np.int64], int], NDArray[np.int64]]
Count = Callable[[NDArray[np.int64], int], NDArray[np.int64]]
_TIE_BREAK = 1e-9
_FAR_SDS = 2
_OFFERED_TIMES = 3  # a canary offers so many times its bound


def keep_at_most(offered: NDArray[np.int64], at_most: int) -> NDArray[np.int64]:
    """Return how many of each unit's records are kept: at most the bound."""
    return np.minimum(offered, at_most)


def add_up(kept: NDArray[np.int64], change: int) -> NDArray[np.int64]:
    """Return the counts of the canaries' cells: each record moves its cell by the same change."""
    return kept * change


def draw_once(event: DrawEvent, exact: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Draw a table as the product does: one vector, which is all that is published of it."""
    from turnstile.privacy.mechanisms.dispatch import draw

    return (draw(event, exact),)


@dataclass(frozen=True, slots=True)
class PipelineCopy:
    """The stages between rows and published numbers.

    Args:
        bound: offered records of each unit, bound -> records that count.
        count: records, change of a cell by one -> cells.
        draw: event, cells -> every vector that is published of that table.
    """

    bound: Bound = keep_at_most
    count: Count = add_up
    draw: Draw = draw_once


@dataclass(frozen=True, slots=True)
class CanaryRun:
    """One run of a copy.

    Args:
        scores: shape (canaries,): log likelihood ratio of in against out, as declared.
        is_in: shape (canaries,): the coins.
    """

    scores: NDArray[np.float64]
    is_in: NDArray[np.bool_]


def run_canaries(
    copy: PipelineCopy, event: DrawEvent, sensitivity: Sensitivity, *, canaries: int
) -> CanaryRun:
    """Run a copy on canaries that are in by a fair coin, and score its output.

    A canary that is in offers three times its bound, all to one cell: it goes as far
    as the declared sensitivity lets it, by l1 for Laplace noise, by the root of l2 squared for
    Gaussian noise. Where one unit hardly shows, a canary is a group of equal units with one coin:
    what is claimed for a unit is claimed for a group, times its size (group privacy).

    Args:
        copy: of the pipeline.
        event: whose table is drawn.
        sensitivity: of the audited unit.
        canaries: number, >= 2.
    """
    is_in = coins(canaries)
    records, change = steps_of(event, sensitivity)
    offered = np.where(is_in, _OFFERED_TIMES * records, 0).astype(np.int64)
    exact = copy.count(copy.bound(offered, records), change)
    base = _base(event)
    scores = np.zeros(canaries)
    for published in copy.draw(event, exact + base):
        scores += _ratios(event, published - base, records * change)
    return CanaryRun(scores, is_in)


def coins(number: int) -> NDArray[np.bool_]:
    """Return fair coins from the operating system."""
    raw = np.frombuffer(secrets.token_bytes(-(-number // 8)), dtype=np.uint8)
    return np.unpackbits(raw)[:number].astype(np.bool_)


def group_of(event: DrawEvent, sensitivity: Sensitivity) -> int:
    """Return the units in a canary: so many that guesses are right well above one half.

    Two standard deviations of Gaussian noise; epsilon of 1 and more for Laplace noise.
    """
    if event.noise is NoiseFamily.DISCRETE_GAUSSIAN:
        return max(1, round(_FAR_SDS * float(event.scale) / math.sqrt(sensitivity.l2_squared)))
    return max(1, math.ceil(event.scale / sensitivity.l1))


def steps_of(event: DrawEvent, sensitivity: Sensitivity) -> tuple[int, int]:
    """Return how many records a unit may have, and how far one record of each unit moves a cell."""
    group = group_of(event, sensitivity)
    if event.noise is NoiseFamily.DISCRETE_GAUSSIAN:
        return 1, math.isqrt(group**2 * sensitivity.l2_squared)
    return sensitivity.l0, group * (sensitivity.l1 // sensitivity.l0)


def _base(event: DrawEvent) -> int:
    """Return a count far above a threshold, where the cut plays no part; 0 for dense tables."""
    return 0 if event.threshold is None else event.threshold + math.ceil(60 * event.scale)


def _ratios(event: DrawEvent, value: NDArray[np.int64], change: int) -> NDArray[np.float64]:
    """Return the log likelihood ratio, with the plain value as a tie-break below any step of it."""
    tie_break = _TIE_BREAK * (value - change / 2) / float(event.scale)
    return np.asarray(log_ratios(event, value, change) + tie_break)
