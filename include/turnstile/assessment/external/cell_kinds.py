"""The tables that a bare file holds: cells of one mode, by time, by place, by both, or in all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.rows import expected_rows
from turnstile.assessment.external.table import BareTable, Cell

EVERY = "every mode"
_SPANNING = (1, 3, 4)  # date, time, place in a Cell


def whole(table: BareTable) -> NDArray[np.int64]:
    """Return the counts rounded to whole numbers, shape (cells,)."""
    return np.rint(table.counts).astype(np.int64)


def by_kind(table: BareTable) -> dict[str, list[int]]:
    """Return the places of each kind of cell, by mode, and over modes where there are several."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    modes = {cell.mode for cell in table.cells}
    for place, cell in enumerate(table.cells):
        places[f"{cell.mode or 'all'} {cell.kind}"].append(place)
        if len(modes) > 1:
            places[f"{EVERY} {cell.kind}"].append(place)
    return dict(sorted(places.items()))


def spanned(cells: Iterable[Cell]) -> int:
    """Return the cells of the domain that labels span: dates x times x places of mode and tap."""
    parts: defaultdict[tuple[str | None, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        parts[cell.mode, cell.tap, cell.kind].append(cell)
    return sum(
        expected_rows(*(len({cell[axis] for cell in own}) for axis in _SPANNING))
        for own in parts.values()
    )
