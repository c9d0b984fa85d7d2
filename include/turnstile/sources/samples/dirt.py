"""Dirt on demand: each switch spoils some rows of a sample in one way that ingest has to see."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from turnstile.errors import InputError

Rows = dict[str, npt.NDArray[np.int64]]

MISSING = -1  # a value of a coded column that is written as empty
MISSING_DAY = 2  # Wednesday
_SHARE_DUPLICATES = 0.05
_SHARE_SPOILED = 0.005


class Dirt(StrEnum):
    """Ways to spoil a sample."""

    DUPLICATES = "duplicates"
    NULLS = "nulls"
    OUTLIERS = "outliers"
    LATE = "late"
    MISSING_DAY = "missing-day"
    WRONG_UNIT = "wrong-unit"
    FUTURE = "future"
    UNKNOWN_MODE = "unknown-mode"


def parse_dirt(listed: str, *, legal: tuple[Dirt, ...]) -> frozenset[Dirt]:
    """Read `duplicates,nulls`; empty text is clean data.

    Args:
        listed: names with commas between them.
        legal: switches that the feed has.

    Raises:
        InputError: a name that the feed does not have.
    """
    names = [name for name in listed.split(",") if name]
    for name in names:
        if name not in legal:
            rule = f"{name!r} is no dirt of this feed; choose among {', '.join(legal)}"
            raise InputError(where="sample", field="--dirt", rule=rule)
    return frozenset(Dirt(name) for name in names)


def some_of(rows: Rows, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the indices of a small share of the rows, at least one."""
    count = len(rows["file_day"])
    chosen = max(1, int(count * _SHARE_SPOILED))
    return rng.choice(count, size=min(chosen, count), replace=False)


def soil_days(rows: Rows, dirt: frozenset[Dirt], rng: np.random.Generator) -> Rows:
    """Spoil what every feed has: days and exact duplicates.

    `day` counts from the week's Monday and is what the row says; `file_day` is the file it is in.
    """
    if Dirt.LATE in dirt:
        rows["day"][some_of(rows, rng)] -= 7
    if Dirt.FUTURE in dirt:
        rows["day"][some_of(rows, rng)] += 3650
    if Dirt.MISSING_DAY in dirt:
        kept = rows["file_day"] != MISSING_DAY
        rows = {name: values[kept] for name, values in rows.items()}
    if Dirt.DUPLICATES in dirt:
        count = len(rows["file_day"])
        again = rng.choice(count, size=max(1, int(count * _SHARE_DUPLICATES)), replace=False)
        order = np.sort(np.concatenate([np.arange(count), again]))
        rows = {name: values[order] for name, values in rows.items()}
    return rows
