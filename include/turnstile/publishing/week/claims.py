"""What may be claimed of noisy numbers: superlatives that are told apart, changes that are few.

A largest number is named only where it differs from each other one by more than the errors of both
let expect at 95 % (an intersection of tests, so no correction is due: Berger 1982). Of many
changes those are listed of which at most one in twenty is expected to be chance (Benjamini &
Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from turnstile.publishing.contents import NORMAL_95

Floats = NDArray[np.float64]
BY_CHANCE = 0.05
_NAMED = 3


def not_told_from_first(values: Floats, deviations: Floats) -> NDArray[np.int64]:
    """Return the places of the largest number and of those that may be larger, largest first.

    Args:
        values: shape (numbers,).
        deviations: of their errors, which are independent; not a number where it is not known.

    Examples:
        >>> not_told_from_first(np.array([90.0, 100, 50]), np.array([5.0, 5, 5])).tolist()
        [1, 0]
    """
    first = int(np.nanargmax(values))
    reach = NORMAL_95 * np.hypot(deviations, deviations[first])
    is_close = ~(values[first] - values > reach) & ~np.isnan(values)
    order = np.argsort(-values, kind="stable")
    return np.array([first, *(place for place in order if is_close[place] and place != first)])


def in_one_sentence(names: Sequence[str]) -> str:
    """Name what is largest, or all that may be.

    Examples:
        >>> in_one_sentence(["Monday"]), in_one_sentence(["10", "11"])
        ('Monday', '10 and 11, which cannot be told apart')
    """
    if len(names) == 1:
        return names[0]
    if len(names) > _NAMED:
        listed = f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    else:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{listed}, which cannot be told apart"


def discoveries(chances: Sequence[float] | Floats) -> NDArray[np.bool_]:
    """Return which changes are listed, of which at most one in twenty is expected to be chance.

    Args:
        chances: with which noise alone moves each number so far.

    Examples:
        >>> discoveries([1e-9, 0.9, 0.02, 0.03]).tolist(), discoveries([0.03, 0.5]).tolist()
        ([True, False, True, True], [False, False])
    """
    p_values = np.asarray(chances, dtype=np.float64)
    order = np.argsort(p_values, kind="stable")
    kept = np.flatnonzero(
        p_values[order] <= BY_CHANCE * np.arange(1, p_values.size + 1) / max(p_values.size, 1)
    )
    is_listed = np.zeros(p_values.shape, dtype=np.bool_)
    is_listed[order[: kept[-1] + 1 if kept.size else 0]] = True
    return is_listed


def how_many(is_listed: NDArray[np.bool_]) -> str:
    """Say how many changes of places are listed, and how many of them by chance.

    Examples:
        >>> how_many(np.array([True] * 12 + [False] * 327))
        '12 of 339 places changed; about one of them by chance'
        >>> how_many(np.array([False]))
        'of 1 places none changed by more than noise explains'
    """
    changed = int(is_listed.sum())
    if not changed:
        return f"of {is_listed.size:,} places none changed by more than noise explains"
    chance = round(BY_CHANCE * changed)
    words = "about one" if chance == 1 else f"about {chance}" if chance else "perhaps none or one"
    return f"{changed:,} of {is_listed.size:,} places changed; {words} of them by chance"
