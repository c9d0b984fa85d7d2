"""A synthetic copy of the pipeline: units are bounded, counted, and drawn by the product's code.

The draw is the product's own (`privacy.mechanisms`), for the very events of the plan. How far one
unit moves a vector is what the product's own bounding and counting make of made-up rows
(`pipeline/trials/canaries.py`; `evidence` hands it in: the assessment cannot reach the private
zone). Either stage can be replaced, so that tests can put a fault into the copy and see the audit
find it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.presence import log_ratios
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import ProtectionUnit

Draw = Callable[[DrawEvent, NDArray[np.int64]], tuple[NDArray[np.int64], ...]]
_TIE_BREAK = 1e-9
_FAR_SDS = 2


def draw_once(event: DrawEvent, exact: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Draw a table as the product does: one vector, which is all that is published of it."""
    from turnstile.privacy.mechanisms.dispatch import draw

    return (draw(event, exact),)


@dataclass(frozen=True, slots=True)
class ObservedSensitivity:
    """How far one unit moves the exact vector of a draw.

    Args:
        l1: sum of absolute changes.
        l2_squared: sum of squared changes.
    """

    l1: int
    l2_squared: int

    def is_within(self, declared: Sensitivity) -> bool:
        """Return whether a declared sensitivity bounds it."""
        return self.l1 <= declared.l1 and self.l2_squared <= declared.l2_squared


@dataclass(frozen=True, slots=True)
class PipelineCopy:
    """The stages between rows and published numbers.

    Args:
        observed: by label of a draw and unit, how far bounding and counting let the unit change it;
            as far as is declared where an entry is missing.
        draw: event, cells -> every vector that is published of that table.
        misfits: what very many draws of each noise and scale showed to be wrong, once for this
            version of the code; None where nothing did.
    """

    observed: Mapping[tuple[str, ProtectionUnit], ObservedSensitivity] = field(default_factory=dict)
    draw: Draw = draw_once
    misfits: Mapping[tuple[NoiseFamily, Fraction], str | None] = field(default_factory=dict)

    def sensitivity(
        self, event: DrawEvent, unit: ProtectionUnit, declared: Sensitivity
    ) -> ObservedSensitivity:
        """Return how far a unit moves a draw's vector.

        What is observed are counts, of one week; a card that is carried along moves what is drawn
        by more, which is taken as declared.
        """
        observed = self.observed.get((event.label, unit))
        if observed is None or (unit.is_lifetime and event.carried):
            return ObservedSensitivity(declared.l1, declared.l2_squared)
        return ObservedSensitivity(event.step * observed.l1, event.step**2 * observed.l2_squared)


@dataclass(frozen=True, slots=True)
class CanaryRun:
    """One run of a copy.

    Args:
        scores: shape (canaries,): log likelihood ratio of in against out, as declared.
        is_in: shape (canaries,): the coins.
        noise: what was added to every cell of every vector that is published.
    """

    scores: NDArray[np.float64]
    is_in: NDArray[np.bool_]
    noise: NDArray[np.int64]


def run_canaries(
    copy: PipelineCopy,
    event: DrawEvent,
    unit: ProtectionUnit,
    declared: Sensitivity,
    *,
    canaries: int,
) -> CanaryRun:
    """Run a copy on canaries that are in by a fair coin, and score its output.

    Each canary has a cell of its own, which takes all of its sensitivity: what it does to several
    cells is no easier to see (by l1 for Laplace noise, by the root of l2 squared for Gaussian
    noise). The scores are those of the declared sensitivity. Where one unit hardly shows, a canary
    is a group of equal units with one coin: what is claimed for a unit is claimed for a group,
    times its size (group privacy).

    Args:
        copy: of the pipeline.
        event: whose table is drawn.
        unit: that is audited.
        declared: its sensitivity.
        canaries: number, >= 2.
    """
    is_in = coins(canaries)
    group = group_of(event, declared)
    change = _change(event, copy.sensitivity(event, unit, declared), group)
    base = _base(event)
    scores = np.zeros(canaries)
    exact = is_in * np.int64(change) + base
    vectors = copy.draw(event, exact)
    for published in vectors:
        scores += _ratios(event, published - base, declared_change(event, declared))
    return CanaryRun(scores, is_in, np.concatenate([vector - exact for vector in vectors]))


def coins(number: int) -> NDArray[np.bool_]:
    """Return fair coins from the operating system."""
    raw = np.frombuffer(secrets.token_bytes(-(-number // 8)), dtype=np.uint8)
    return np.unpackbits(raw)[:number].astype(np.bool_)


def group_of(event: DrawEvent, sensitivity: Sensitivity) -> int:
    """Return the units in a canary: so many that guesses are right well above one half.

    Two standard deviations of Gaussian noise; epsilon of 1 and more for Laplace noise.
    """
    if event.noise.record.is_pure:
        return max(1, math.ceil(event.scale / sensitivity.l1))
    return max(1, round(_FAR_SDS * float(event.scale) / math.sqrt(sensitivity.l2_squared)))


def declared_change(event: DrawEvent, declared: Sensitivity) -> int:
    """Return how far a canary moves its cell if all is as declared."""
    return _change(
        event, ObservedSensitivity(declared.l1, declared.l2_squared), group_of(event, declared)
    )


def _change(event: DrawEvent, observed: ObservedSensitivity, group: int) -> int:
    """Return the change of one cell that stands for a group of units."""
    by_l2 = math.isqrt(group**2 * observed.l2_squared)
    return group * observed.l1 if event.noise.record.is_pure else by_l2


def _base(event: DrawEvent) -> int:
    """Return a count so far above a threshold that it plays no part; 0 for dense tables."""
    return 0 if event.threshold is None else event.threshold + math.ceil(60 * event.scale)


def _ratios(event: DrawEvent, value: NDArray[np.int64], change: int) -> NDArray[np.float64]:
    """Return the log likelihood ratio, with the plain value as a tie-break below any step of it."""
    tie_break = _TIE_BREAK * (value - change / 2) / float(event.scale)
    return np.asarray(log_ratios(event.noise, event.scale, value, change) + tie_break)
