"""What was done to the counts of an external table before its publication, as the counts show it.

Marks of suppression, rounding to a base, and zeros that were left alone. What the numbers cannot
say is not said: rounding up or down at random and to the nearest look alike in one table.
"""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.table import ExternalTable

_BELOW = re.compile(r"(?:<|&lt;|less than|under|below)\s*(\d+)", re.IGNORECASE)
_UP_TO = re.compile(r"(?:<=|≤|up to|fewer than or equal to)\s*(\d+)", re.IGNORECASE)
_BASES = (1000, 100, 50, 20, 10, 5, 4, 3, 2)
_COUNTS_LEAST = 30
_ALPHA = 1e-9
_ZEROS_MOST = 3.0  # times as many as the fuller neighbor, in noise of any scale


def suppression(table: ExternalTable) -> list[Disclosure]:
    """Return what the marks in place of counts say."""
    found = []
    for mark, number in table.marks:
        limit = limit_of(mark)
        meaning = (
            f"each is known to lie below {limit:g}: whether it reached that says something of it"
            if limit is not None
            else "that a cell is marked says that its count was found small, or unfit"
        )
        found.append(
            Disclosure(
                "suppression",
                True,
                f"{number:,} cells hold the mark {mark!r} in place of a count; {meaning}",
                {"mark": mark, "cells": number, "below": limit},
            )
        )
    return found


def limit_of(mark: str) -> float | None:
    """Return the limit that a mark states; None where it states none.

    Examples:
        >>> limit_of("<50"), limit_of("up to 5"), limit_of("n.p.")
        (50.0, 6.0, None)
    """
    if found := _UP_TO.fullmatch(mark.strip()):
        return float(found[1]) + 1
    found = _BELOW.fullmatch(mark.strip())
    return None if found is None else float(found[1])


def base_of(counts: NDArray[np.int64]) -> int:
    """Return the base that all counts are multiples of; 1 where they are on no coarser grid.

    Examples:
        >>> base_of(np.repeat([10, 40, 120], 20)), base_of(np.arange(60))
        (10, 1)
    """
    others = counts[counts != 0]
    if others.size < _COUNTS_LEAST:
        return 1
    common = int(np.gcd.reduce(others))
    return next((base for base in _BASES if common % base == 0), common)


def rounding(base: int) -> Disclosure | None:
    """Return that a table is rounded to a base."""
    if base == 1:
        return None
    return Disclosure(
        "rounding",
        False,
        f"every count is a multiple of {base}: rounded, to the nearest or at random (one table "
        "cannot tell which); no threshold and no scale of a finer noise shows through it",
        {"base": base, "is_random": None},
    )


def zeros(table: ExternalTable) -> Disclosure | None:
    """Return that empty cells were left alone, where the zeros say so.

    Noise on every cell leaves a zero as often as its largest probability at most, and a number
    beside it nearly as often: with 0 far above both of -1 and 1 among numbers that do fall below
    zero, the zeros are no noise.
    """
    from scipy.stats import binom

    counts = np.rint(table.counts)
    number = int((counts == 0).sum())
    below = int((counts < 0).sum())
    beside = max(int((counts == -1).sum()), int((counts == 1).sum()))
    if counts.size < _COUNTS_LEAST or number == 0:
        return None
    share = number / counts.size
    # A noise so narrow that zero is three times as likely as its neighbor has e^(1/b) = 3.
    fair = _ZEROS_MOST / (1 + _ZEROS_MOST)
    is_spike = float(binom.sf(number - 1, number + beside, fair)) < _ALPHA
    if not is_spike:
        return None
    if below:
        words = "empty cells were left alone: any other number proves that its cell was not empty"
    else:
        words = (
            "no number is below 0: counts may be raw, empty cells left alone, or negative ones set "
            "to 0 (one table cannot tell which)"
        )
    return Disclosure(
        "zeros_left_alone",
        bool(below),
        f"{share:.0%} of the counts are exactly 0, while {beside} are 1 or -1: {words}",
        {"zeros": number, "share": round(share, 4), "beside": beside, "below_zero": below},
    )


def is_beyond(value: float) -> bool:
    """Return whether a number is too large to be a count that was meant.

    Examples:
        >>> is_beyond(1e300), is_beyond(12.0)
        (True, False)
    """
    return not math.isfinite(value) or abs(value) >= 2**53
