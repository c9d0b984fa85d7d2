"""How far errors of estimates go together, so that sums of any of them have an interval. Pure.

Estimates borrow from one another, so their errors are not independent. The error of a sum over a
set A, whose parts have the variances v, is described by

    variance = V + sum over j of c_j (Q_j - V),  V = sum of v,
    Q_j = sum over the blocks of j of (sum of sqrt(v) within the block)^2,

where j is a way to be alike: of one place and day, of one day and slot, and so on. Weekdays of a
place borrow from each other more than from its weekend, so kinds of day are such ways, too. The c_j
come from sums of whole blocks of every kind: their squared errors are known without bias from the
unbiased sums and from how the estimated ones go with their noise (`error_model`). A negative c_j
says that fitting to a marginal made errors cancel. What is not known of a c_j is put on the safe
side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.service_calendar import SATURDAY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_Grains = Mapping[str, Floats]
PLACE, DAY, KIND, SLOT, STRETCH = "place", "day", "kind", "slot", "stretch"
STRETCH_HOURS = 4
ALIKE = (
    (PLACE, DAY, STRETCH),
    (PLACE, DAY),
    (PLACE, SLOT),
    (PLACE, STRETCH),
    (PLACE,),
    (PLACE, KIND, SLOT),
    (PLACE, KIND, STRETCH),
    (PLACE, KIND),
    (DAY, SLOT),
    (DAY, STRETCH),
    (DAY,),
)
_MODEL_ERROR = 0.05  # of a variance: no description is more exact
_CAUTION = 0.5  # standard deviations by which a c_j is raised; one below 0 at most to 0
_DIGITS = 4
_ALMOST_NONE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class JudgedBlocks:
    """Estimates beside the unbiased numbers; places by days by slots.

    Args:
        apart: estimates minus unbiased numbers.
        shaken: each time that the numbers were shaken, what was added to them and by how much
            estimates changed, so that the mean product is how they go with the noise.
        variances: of the errors of the estimates, as modelled.
        kinds: which days each kind of day has, shape (kinds, days).
        stretches: number of the stretch of the day that each slot is in.
        slot_sizes: how many drawn slots each slot adds up.
        noise: variance of the unbiased sum over so many places and drawn slots of one day.
        place_sizes: how many places each place adds up, where they are regions.
    """

    apart: Floats
    shaken: Sequence[tuple[Floats, Floats]]
    variances: Floats
    kinds: Floats
    stretches: Ints
    slot_sizes: Ints
    noise: Callable[[int, int], float]
    place_sizes: Ints | None = None


def kinds_of(days: Sequence[date]) -> Floats:
    """Return which days each kind of day has: weekdays, and Saturdays and Sundays.

    Examples:
        >>> kinds_of([date(2016, 7, 29), date(2016, 7, 30)]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return np.eye(2)[:, [int(day.weekday() >= SATURDAY) for day in days]]


def stretches_of(labels: Sequence[str]) -> Ints:
    """Return the stretch of the day that each slot is in, by its label; UNKNOWN is its own.

    Examples:
        >>> stretches_of(["07:45", "08:00", "UNKNOWN"]).tolist()
        [1, 2, -1]
    """
    hours = [int(label[:2]) if label[:2].isdigit() else -STRETCH_HOURS for label in labels]
    return np.array(hours) // STRETCH_HOURS


def correlations(parts: Sequence[JudgedBlocks]) -> list[dict[str, Any]]:
    """Return c_j of each way to be alike, with its standard deviation, for the release card.

    Args:
        parts: of every mode's taps.
    """
    from scipy.optimize import nnls  # half a second of imports, for the step that fits

    errors, spread = _judged(parts).T
    joint = np.array(_together(parts))
    alone = float(sum(part.variances.sum() for part in parts))
    if alone <= 0:
        return []
    scale = np.sqrt(spread + (_MODEL_ERROR * np.maximum(errors, alone)) ** 2)
    design, wanted = (joint - alone) / scale[:, None], (errors - alone) / scale
    used = _distinct(design, np.diag(joint) > alone * (1 + _ALMOST_NONE))
    if not used.size:
        return []
    least = -alone / (np.diag(joint) - alone)[used]
    ways = design[:, used]
    fit = nnls(ways, wanted - ways @ least)[0] + least  # exact: by active sets
    deviations = np.sqrt(np.diag(np.linalg.pinv(ways.T @ ways)))
    return [
        {
            "alike": list(ALIKE[j]),
            "share": _rounded(_cautious(share, deviation)),
            "uncertainty": _rounded(deviation),
        }
        for j, share, deviation in zip(used, fit, deviations, strict=True)
    ]


def _distinct(design: Floats, is_more: NDArray[np.bool_]) -> Ints:
    """Return the ways that are more than single numbers, each alike set of blocks once."""
    ways: list[int] = []
    for j in np.flatnonzero(is_more):
        if not any(np.allclose(design[:, j], design[:, k]) for k in ways):
            ways.append(int(j))
    return np.array(ways, dtype=np.int64)


def _cautious(share: float, deviation: float) -> float:
    """Return c_j on the safe side."""
    raised = share + _CAUTION * deviation
    return min(raised, 0.0) if share < 0 else raised


def _judged(parts: Sequence[JudgedBlocks]) -> Floats:
    """Return of each way the squared errors of its sums of blocks, summed, and their variance."""
    grained = [(part, _Grained.of(part)) for part in parts]
    squares = [[_squares(axes, *pair) for pair in grained] for axes in ALIKE]
    of_ways: Floats = np.array(squares).sum(axis=1)
    return of_ways


@dataclass(frozen=True, slots=True, eq=False)
class _Grained:
    """What a part is judged by, by slots, stretches and days."""

    apart: _Grains
    shaken: list[tuple[_Grains, _Grains]]
    sizes: _Grains

    @classmethod
    def of(cls, part: JudgedBlocks) -> _Grained:
        """Add up over stretches and days."""
        grains = partial(_by_grain, part.stretches)
        shaken = [(grains(added), grains(change)) for added, change in part.shaken]
        sizes = part.slot_sizes[None, None].astype(np.float64)
        return cls(grains(part.apart), shaken, grains(sizes))


def _squares(axes: Sequence[str], part: JudgedBlocks, of: _Grained) -> tuple[float, float]:
    """Return the same of one part and way."""
    summed = partial(_summed, part.kinds)
    sums = summed(axes, of.apart)
    slopes = [(summed(axes, added) * summed(axes, change)).sum() for added, change in of.shaken]
    counts = np.rint(summed({PLACE, DAY, *axes}, of.sizes))
    sizes_of_places = part.place_sizes if part.place_sizes is not None else np.ones(len(part.apart))
    of_places = sizes_of_places if PLACE in axes else sizes_of_places.sum(keepdims=True)
    unique_sizes, where = np.unique(of_places, return_inverse=True)
    variances = np.array(
        [[part.noise(int(p), int(n)) for n in counts[0, 0]] for p in unique_sizes]
    )[where]
    days = summed({DAY, KIND} & {*axes}, {DAY: np.ones((1, part.kinds.shape[1], 1))})
    variances = np.broadcast_to(variances[:, None] * days, sums.shape)
    squares = (sums**2 - variances).sum() + 2 * np.mean(slopes)
    return float(squares), float(2 * (variances**2).sum())


def _together(parts: Sequence[JudgedBlocks]) -> list[list[float]]:
    """Return Q of the blocks that are alike in two ways at once, for every two ways."""
    deviations = [_by_grain(part.stretches, np.sqrt(part.variances)) for part in parts]

    @cache  # two ways are one, and several pairs of them have the same axes
    def alike_in(axes: frozenset[str]) -> float:
        sums = (_summed(parts[0].kinds, axes, grains) for grains in deviations)
        return sum(float((blocks**2).sum()) for blocks in sums)

    return [[alike_in(frozenset({*k, *j})) for j in ALIKE] for k in ALIKE]


def _by_grain(stretches: Ints, values: Floats) -> _Grains:
    """Return numbers of slots, and their sums over stretches and over the day."""
    codes = np.unique(stretches, return_inverse=True)[1]
    of_stretches = values @ np.eye(codes.max() + 1)[codes]
    return {SLOT: values, STRETCH: of_stretches, DAY: values @ np.ones((codes.size, 1))}


def _summed(kinds: Floats, axes: Collection[str], grains: _Grains) -> Floats:
    """Return sums over blocks that are alike in these.

    Shape (places or 1, days, kinds of day or 1, blocks).
    """
    values = grains[next((grain for grain in (SLOT, STRETCH) if grain in axes), DAY)]
    if PLACE not in axes:
        values = values.sum(axis=0, keepdims=True)
    return values if DAY in axes else (kinds if KIND in axes else kinds.sum(0)[None]) @ values


def _rounded(value: float) -> float:
    """Return a number of few digits, the same on every machine."""
    return float(f"{value:.{_DIGITS}g}")
