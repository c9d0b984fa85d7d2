"""Texts and numbers in place of counts: what they state themselves, and nothing beyond it."""

from __future__ import annotations

import math
import re

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.table import ExternalTable

_BELOW = re.compile(r"(?:<|&lt;|less than|under|below)\s*(\d+)", re.IGNORECASE)
_UP_TO = re.compile(r"(?:<=|≤|up to|fewer than or equal to)\s*(\d+)", re.IGNORECASE)
_FROM = re.compile(
    r"(?:>=?|≥|&gt;=?|over|at least|more than)\s*(\d+)|(\d+)\s*(?:\+|or more|and more)",
    re.IGNORECASE,
)


def marks(table: ExternalTable) -> list[Disclosure]:
    """Return what the marks in place of counts say."""
    disclosures = []
    for mark, number in table.marks:
        limit, top = limit_of(mark), top_of(mark)
        meaning = "what it stands for, empty, small, unfit or missing, cannot be told"
        if limit is not None:
            meaning = f"by its words each lies below {limit:g}"
        elif top is not None:
            meaning = f"by its words each lies at or above {top:g}: a top code"
        words = f"{number:,} cells hold the mark {mark!r} in place of a count; {meaning}"
        figures = {"claim": "mark", "mark": mark, "cells": number, "below": limit, "above": top}
        disclosures.append(Disclosure("suppression", True, words, figures))
        if limit is not None:
            words = f"the threshold is stated: the mark {mark!r} is for counts below {limit:g}"
            stated = {"table": f"cells marked {mark}", "claim": "stated", "identified": True}
            stated |= {"cut": None, "low": limit, "high": limit}
            disclosures.append(Disclosure("threshold", True, words, stated))
    return disclosures


def limit_of(mark: str) -> float | None:
    """Return the limit that a mark states; None where it states none.

    Examples:
        >>> limit_of("<50"), limit_of("up to 5"), limit_of("n.p.")
        (50.0, 6.0, None)
    """
    if match := _UP_TO.fullmatch(mark.strip()):
        return float(match[1]) + 1
    match = _BELOW.fullmatch(mark.strip())
    return None if match is None else float(match[1])


def top_of(mark: str) -> float | None:
    """Return the number that a mark lies at or above by its words; None where it states none.

    Examples:
        >>> top_of("100+"), top_of("over 500"), top_of("<50")
        (100.0, 500.0, None)
    """
    match = _FROM.fullmatch(mark.strip())
    return None if match is None else float(match[1] or match[2])


def is_beyond(value: float) -> bool:
    """Return whether a number is too large to be a count that was meant.

    Examples:
        >>> is_beyond(1e300), is_beyond(12.0)
        (True, False)
    """
    return not math.isfinite(value) or abs(value) >= 2**53
