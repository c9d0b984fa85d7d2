"""Corruption on demand: each switch spoils some rows of a sample as ingest must see."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from turnstile.errors import InputError

Rows = dict[str, npt.NDArray[np.int64]]

MISSING = -1  # a value of a coded column that is written as empty
MISSING_DAY = 2  # Wednesday
_SHARE_DUPLICATES = 0.05
_SHARE_CORRUPTED = 0.005


class Corruption(StrEnum):
    """Ways to spoil a sample."""

    DUPLICATES = "duplicates"
    NULLS = "nulls"
    OUTLIERS = "outliers"
    LATE = "late"
    MISSING_DAY = "missing-day"
    WRONG_UNIT = "wrong-unit"
    FUTURE = "future"
    UNKNOWN_MODE = "unknown-mode"


def parse_corruptions(listed: str, *, legal: tuple[Corruption, ...]) -> frozenset[Corruption]:
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
            known = ", ".join(legal) or "none"
            rule = f"{name!r} is no corruption of this feed; choose among {known}"
            raise InputError(where="sample", field="--corruption", rule=rule)
    return frozenset(Corruption(name) for name in names)


def some_of(rows: Rows, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the indices of a small share of the rows, at least one."""
    count = len(rows["file_day"])
    chosen = max(1, int(count * _SHARE_CORRUPTED))
    return rng.choice(count, size=min(chosen, count), replace=False)


def corrupt_days(rows: Rows, corruptions: frozenset[Corruption], rng: np.random.Generator) -> Rows:
    """Spoil what every feed has: days and exact duplicates.

    `day` counts from the week's Monday and is what the row says; `file_day` is the file it is in.
    """
    if Corruption.LATE in corruptions:
        rows["day"][some_of(rows, rng)] -= 7
    if Corruption.FUTURE in corruptions:
        rows["day"][some_of(rows, rng)] += 3650
    if Corruption.MISSING_DAY in corruptions:
        kept = rows["file_day"] != MISSING_DAY
        rows = {name: values[kept] for name, values in rows.items()}
    if Corruption.DUPLICATES in corruptions:
        count = len(rows["file_day"])
        again = rng.choice(count, size=max(1, int(count * _SHARE_DUPLICATES)), replace=False)
        order = np.sort(np.concatenate([np.arange(count), again]))
        rows = {name: values[order] for name, values in rows.items()}
    return rows
