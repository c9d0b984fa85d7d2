"""Whether small counts were left out of a table, and where the cut is.

Rows may be missing, or hold 0 or a mark, because nobody was there, because nothing ran, at random,
or because a count was small. Small counts were left out where two things hold: the numbers end more
sharply than counts end by themselves (`threshold`, `natural_edge`), and what is missing is missing
where the published numbers are small, by labels of place or time. Each has its own odds; either
alone has other causes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.cell_kinds import spanned
from turnstile_lab.external.odds import SURE, is_sure, told
from turnstile_lab.external.table import Cell
from turnstile_lab.proof_of_presence import proof_continuous
from turnstile_lab.threshold import ThresholdEstimate, recover_threshold

_GROUPS = (1, 5, 12)
SCALES_SHOWN = (1.0, 1.4, 2.0)
_PARTED_BY = ("mode", "tap", "date")
_LABELS_LEAST = 12
_SLOTS_A_PEAK = 4  # neighboring times are alike: so many count as one
_PRIOR = 0.1
_RELATED = -0.8  # what runs less at small places is related to size too, but not so closely
_ONES_LEAST = 20
_KEYED_MOST = 5  # a key of cells that leaves no small number leaves none below so much at most
_ROUNDED_SHARE = 0.35  # of cells around the smallest number, where it has been rounded to; at least
_UNITS, _UNITS_MOST = 4, 8  # so many records in two numbers together show how they scatter
_LAGS = (1, 7)  # days
_CELLS_MOST = 30_000_000  # that labels span: of more it is not asked
_SCATTER_LEAST = 0.5  # what scatters less than counts do is the same thing again
_BUSY, _BUSY_LEAST, _HIDDEN_MOST = 12.0, 20, 0.02  # a usual number, cells, share that is hidden


@dataclass(frozen=True, slots=True)
class Part:
    """The cells of one table, or of a part of it that has a threshold of its own.

    Args:
        name: in words.
        cells: labels of the numbers and of what stands for a count.
        counts: shape (cells,), whole numbers; 0 or less where no count stands.
    """

    name: str
    cells: tuple[Cell, ...]
    counts: NDArray[np.int64]

    @property
    def hidden(self) -> int:
        """Cells that hold no count above 0: missing by the labels, or published as 0 or a mark."""
        return spanned(set(self.cells)) - int((self.counts > 0).sum())


def small_cells(part: Part) -> list[Disclosure]:
    """Return whether small counts were left out of one table, and where."""
    positive = part.counts[part.counts > 0]
    if positive.size == 0 or part.hidden <= 0:
        return []
    pattern = pattern_of(part)
    weight = hidden_where_small(pattern)
    if int(positive.min()) == 1:
        return _empty_cells(part, pattern, weight)
    disclosures = [_left_out(piece, weight) for piece in _parted(part)]
    return [disclosure for disclosure in disclosures if disclosure is not None]


def presence(disclosures: Sequence[Disclosure], scales: Sequence[float]) -> list[Disclosure]:
    """Return the probability that a released cell proves presence, if zeros were left alone.

    Args:
        disclosures: of `small_cells`.
        scales: of the noise, recovered; some are assumed if it is empty.
    """
    return [
        _proof(disclosure.figures, scales)
        for disclosure in disclosures
        if disclosure.name == "threshold" and disclosure.figures.get("cut") is not None
    ]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Which cells hold no count, by place and time, beside what the published numbers are.

    Args:
        hidden: shape (places, times), share of days on which the cell holds no count above 0.
        place: shape (places,), logarithm of how large its numbers are, freed of their times.
        time: shape (times,), likewise, so that both together give a cell's usual number.
    """

    hidden: NDArray[np.float64]
    place: NDArray[np.float64]
    time: NDArray[np.float64]


def hidden_where_small(pattern: _Pattern) -> float:
    """Return the log odds that cells are hidden where the published numbers are small.

    For each place, and each time: the share of its cells that is hidden, and how large its numbers
    are, beside those of the others. If they have nothing to do with each other their ranks are not
    correlated (Spearman 1904); the odds are those of a correlation of any size against none
    (Schwarz 1978).
    """
    best = -math.inf
    for axis, sizes in ((1, pattern.place), (0, pattern.time)):
        shares = pattern.hidden.mean(axis=axis)
        number = shares.size / (1 if axis else _SLOTS_A_PEAK)
        if shares.size < _LABELS_LEAST or shares.std() == 0 or sizes.std() == 0:
            continue
        correlation = _rank_correlation(shares, sizes)
        if correlation < _RELATED:
            gain = -number / 2 * math.log(max(1e-9, 1 - correlation**2))
            best = max(best, gain - math.log(number) / 2 + math.log(_PRIOR))
    return best


def single_units(part: Part, least: int) -> float:
    """Return the log odds that the numbers are counts, not sums of what stands for several each.

    Where each record lies in either of two numbers of a place by an even chance, and stands for w,
    their squared difference over their sum is w on average; it is more where chances are uneven or
    records differ. The odds are those of a scatter as it is, on two days or times, against w.
    """
    shape, places = [], []
    for key in (itemgetter(0, 2, 4), itemgetter(1), itemgetter(3)):
        labels = [str(key(cell)) for cell in part.cells]
        names, indices = np.unique(labels, return_inverse=True)
        shape.append(names.size)
        places.append(indices)
    if math.prod(shape) > _CELLS_MOST:
        return -math.inf
    numbers = np.zeros(shape)
    numbers[tuple(places)] = np.maximum(part.counts, 0)
    pairs = [(numbers[:, :, :-1], numbers[:, :, 1:])]
    for lag in _LAGS:
        pairs += [(numbers[:, n], numbers[:, n + lag]) for n in range(shape[1] - lag)]
    best = -math.inf
    for first, second in pairs:
        both = first + second
        used = (both >= _UNITS * least) & (both <= _UNITS_MOST * least)
        scatter = float(((first - second)[used] ** 2 / both[used]).mean()) if used.any() else 0.0
        if _SCATTER_LEAST <= scatter < least:
            share = scatter / least
            best = max(best, int(used.sum()) / 2 * (share - 1 - math.log(share)))
    return best - math.log(len(pairs))


def single_numbers(part: Part, least: int) -> float:
    """Return the log odds that the smallest number stands for itself, not for those around it too.

    Where small counts are rounded to a base and larger ones are not, it holds all from half the
    base on: about as many cells as lie between it and half as much again, if they are told apart at
    all, where otherwise it holds one number's share of both.
    """
    at = int((part.counts == least).sum())
    above = int(((part.counts > least) & (2 * part.counts < 3 * least)).sum())
    single, rounded = 2 / (least + 1), _ROUNDED_SHARE + 1 / least
    return at * math.log(single / rounded) + above * math.log((1 - single) / (1 - rounded))


def pattern_of(part: Part) -> _Pattern:
    """Return which cells of a table hold no count; labels without any number are left out."""
    is_shown = part.counts > 0
    cells = [cell for cell, shown in zip(part.cells, is_shown, strict=True) if shown]
    places, times = (
        np.unique([str(getattr(cell, axis)) for cell in cells], return_inverse=True)[1]
        for axis in ("loc", "time")
    )
    logs = np.log(part.counts[is_shown].astype(np.float64))
    place, time = np.zeros(places.max() + 1), np.zeros(times.max() + 1)
    for _ in range(5):
        time = np.bincount(times, logs - place[places]) / np.bincount(times)
        place = np.bincount(places, logs - time[times]) / np.bincount(places)
    shown = np.bincount(places * time.size + times, minlength=place.size * time.size)
    layers = len({(cell.mode, cell.date, cell.tap) for cell in part.cells})
    hidden = 1 - shown.reshape(place.size, time.size) / layers
    return _Pattern(hidden, place, time)


def _rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return Spearman's correlation."""
    from scipy.stats import spearmanr

    correlation = float(spearmanr(first, second).statistic)
    return correlation if math.isfinite(correlation) else 0.0


def _empty_cells(part: Part, pattern: _Pattern, weight: float) -> list[Disclosure]:
    """Return whether rows of nobody are left out, in a table of numbers down to 1."""
    if (part.counts <= 0).any():
        return []
    ones = int((part.counts == 1).sum())
    usual = np.exp(pattern.place[:, None] + pattern.time)
    busy = pattern.hidden[usual >= _BUSY]
    is_shown = busy.size >= _BUSY_LEAST and float(busy.mean()) <= _HIDDEN_MOST
    words = (
        f"{part.name}: {part.hidden:,} rows are missing, hardly any where numbers are large, "
        f"{ones:,} numbers are 1 and none is 0: rows of nobody are left out"
    )
    sure = weight if is_shown and ones >= _ONES_LEAST else min(weight, 0.0)
    figures = {"claim": "zeros_omitted", "missing": part.hidden}
    return [told("zeros_omitted", words, sure, figures)]


def _parted(part: Part) -> list[Part]:
    """Return a table as a whole, or in the parts that have different thresholds."""
    for dimension in _PARTED_BY:
        parts: defaultdict[str, list[int]] = defaultdict(list)
        for index, cell in enumerate(part.cells):
            parts[str(getattr(cell, dimension))].append(index)
        estimates = [recover_threshold(part.counts[indices]) for indices in parts.values()]
        located = [
            estimate for estimate in estimates if estimate is not None and estimate.is_located
        ]
        if any(estimate.high < other.low for estimate in located for other in located):
            return [
                Part(
                    f"{part.name}, {dimension} {label}",
                    tuple(part.cells[index] for index in indices),
                    part.counts[indices],
                )
                for label, indices in sorted(parts.items())
            ]
    return [part]


def _left_out(part: Part, weight: float) -> Disclosure | None:
    """Return whether small counts are left out of one part, and where the cut is."""
    threshold = recover_threshold(part.counts[part.counts > 0])
    if threshold is None:
        return None
    least = threshold.smallest
    figures: dict[str, Any] = {
        "claim": "left_out",
        "table": part.name,
        "cut": None,
        "smallest_published": least,
        "samples": threshold.samples,
        "hidden": part.hidden,
        "identified": False,
    }
    single = min(single_units(part, least), single_numbers(part, least))
    if threshold.is_located and is_sure(weight) and (least <= _KEYED_MOST or not is_sure(single)):
        words = (
            f"{part.name}: numbers below {least} are not there, though counts below it are likely: "
            f"left out, set to 0, moved to 0 or {least} and more by rounding or a key of cells, or "
            "every record stands for several, or numbers are made of counts, as their roots are; "
            "which, cannot be told"
        )
        return told("threshold", words, weight, figures | {"claim": "none_small"})
    weight = min(weight, single) if threshold.is_located else weight
    if not threshold.is_located or not is_sure(weight):
        why = (
            "numbers may end there by themselves"
            if not threshold.is_located
            else ("cells are hidden where numbers are not small, or too few labels say so")
        )
        words = (
            f"{part.name}: that small counts, below {least}, are left out or set to 0 ({why}; "
            f"{part.hidden:,} cells may be empty, not served, or withheld for another reason)"
        )
        return told("threshold", words, min(weight, math.log(SURE) - 1e-6, 0.0), figures)
    words = f"{part.name}: counts below about {least} are left out or set to 0; {_where(threshold)}"
    if threshold.is_sharp:
        figures |= {
            "cut": round(threshold.threshold, 3),
            "low": round(threshold.low, 3),
            "high": round(threshold.high, 3),
            "identified": True,
            "confidence": threshold.confidence,
            "cut_after_rounding_possible": threshold.allows_integer,
        }
    return told("threshold", words, weight, figures, is_flaw=True)


def _where(threshold: ThresholdEstimate) -> str:
    """Return where the cut is, in words."""
    if not threshold.is_sharp:
        return "where the cut was cannot be told: numbers may have been moved after it"
    whole = "is not excluded" if threshold.allows_integer else "is excluded by how rare it is"
    return (
        f"if numbers were cut before they were rounded, at {threshold.threshold:.2f}, between "
        f"{threshold.low:.2f} and {threshold.high:.2f} ({threshold.confidence:.1%}); a cut of "
        f"whole numbers that keeps {threshold.smallest} {whole}"
    )


def _proof(figures: dict[str, Any], scales: Sequence[float]) -> Disclosure:
    """Return what a released cell of one table proves."""
    threshold = figures["cut"]
    if figures["cut_after_rounding_possible"]:
        threshold = figures["smallest_published"] - 0.5
    chances = {
        f"{scale:g}": {
            str(n): proof_continuous(n, threshold=threshold, scale=scale) for n in _GROUPS
        }
        for scale in scales or SCALES_SHOWN
    }
    scale, first = next(iter(chances.items()))
    words = ", ".join(f"{chance:.2g} for {group}" for group, chance in first.items())
    assumed = "" if scales else " (assumed; this table does not have it)"
    return Disclosure(
        "presence",
        True,
        f"{figures['table']}: if empty cells are left alone, a released cell proves that somebody "
        f"was there; at noise scale {scale}{assumed} the chance is {words} people in an otherwise "
        f"empty cell (1/2 exp(-(t - g)/p) with t = {threshold:g})",
        {
            "claim": None,
            "table": figures["table"],
            "cut_before_rounding": threshold,
            "scale_is_assumed": not scales,
            "probability_by_scale_and_group": chances,
        },
    )
