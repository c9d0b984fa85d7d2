"""Piles at the ends of a table, and numbers that stand for no count: top and bottom codes, marks.

Numbers near an end are held against a smooth one: bins as wide as needed, each negative binomial
around a mean that rises or falls by a constant factor a bin. Whatever the scatter is, the end's own
number of cells has a predictive distribution. A pile may have other causes than a code, such as the
seats of a vehicle: what made it is not told.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.odds import Floats, log_mean, told

_BINS_MOST = 60
_CELLS_LEAST = 10
_PRIOR = 0.02
_FACTORS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.93, 1.0, 1.08, 1.2, 1.5])
_SHAPES = np.geomspace(0.02, 100, 10)
_MEANS = np.geomspace(0.2, 5, 9)
_MARKS_LEAST = 5


def piles(name: str, counts: NDArray[np.int64], unit: float = 1) -> list[Disclosure]:
    """Return what stands at the ends of a table of numbers, in units of their grid."""
    disclosures: list[Disclosure] = []
    positive = counts[counts > 0]
    if positive.size == 0:
        return disclosures
    top, least = int(positive.max()), int(positive.min())
    for end, away, where in ((top, top - positive, "largest"), (least, positive - least, "least")):
        reach = end // 2 if where == "largest" else end
        if end < 2 or reach < 1:  # noqa: PLR2004 - of 1 no smaller number is left
            continue
        weight = math.log(_PRIOR) + _pile(away[away <= reach], reach)
        if weight < 0:
            continue
        words = (
            f"{name}: {int((away == 0).sum()):,} cells stand at the {where} number, more than runs "
            "on from those beside it: a code for all beyond, or a limit that many cells have"
        )
        figures = {"claim": "top" if where == "largest" else "bottom", "at": round(end * unit)}
        disclosures.append(told(f"{where}_number", words, weight, figures))
    return disclosures


def mark_below(counts: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the one number below 0 that stands for no count, and its log odds; None without one.

    Noise that falls below zero leaves several numbers there, and at least as many on the way down
    to the lowest. One number alone, with none of those beside it, is a code.
    """
    below = counts[counts < 0]
    if below.size == 0 or np.unique(below).size > 1:
        return None
    mark = float(below[0])
    beside = int(((counts > mark) & (counts <= max(0.0, mark + 2))).sum())
    # As noise: the chance that this number is drawn again and again is as likely anything, below
    # 1/2 where 0 is between, and 0 comes at least as often.
    same = -math.log(below.size + 1) - below.size * math.log(max(1.0, 2 * (abs(mark) - 1)))
    neighbors = -below.size * math.log(2) if beside == 0 else 0.0
    weight = -(same + neighbors) if beside < below.size / 4 else -math.inf
    return (mark, weight) if below.size >= _MARKS_LEAST else (mark, min(weight, math.log(100)))


def _pile(away: NDArray[np.int64], reach: int) -> float:
    """Return the log odds, before the prior, of any number of cells at an end over a smooth one."""
    from scipy.stats import nbinom

    width = max(1, math.ceil(reach / _BINS_MOST))
    bins = np.bincount((away[away > 0] - 1) // width, minlength=max(1, reach // width))
    pile = int((away == 0).sum())
    if bins.sum() < _CELLS_LEAST or pile < 2:  # noqa: PLR2004 - one cell is no pile
        return -math.inf
    logs: list[Floats] = []
    for factor in _FACTORS:
        shares = factor ** np.arange(1, bins.size + 1)
        means = (_MEANS * bins.sum() / shares.sum())[:, None]  # of the end's own bin
        chances = _SHAPES[:, None] / (_SHAPES[:, None] + means[:, :, None] * shares)
        fits = nbinom.logpmf(bins, _SHAPES[:, None], chances).sum(axis=-1)
        chance = _SHAPES / (_SHAPES + means)
        seen = np.log(-np.expm1(_SHAPES * np.log(chance)))  # of one cell at least, as there is
        logs.append(np.stack((fits, nbinom.logsf(pile - 1, _SHAPES, chance) - seen)))
    fitted, ends = np.stack(logs, axis=1)
    smooth = log_mean(fitted + np.minimum(ends, 0)) - log_mean(fitted)
    return -smooth - math.log(pile)
