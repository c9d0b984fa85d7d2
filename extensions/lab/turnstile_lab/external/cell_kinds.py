"""The tables that an external file holds: cells of one mode, by time, by location, or both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from turnstile_lab.external.table import Cell, ExternalTable
from turnstile_lab.rows import expected_rows

_SPANNING = (1, 3, 4)  # date, time, location in a Cell


def by_kind(table: ExternalTable) -> dict[str, list[int]]:
    """Return the indices of each kind of cell, by mode."""
    indices: defaultdict[str, list[int]] = defaultdict(list)
    for index, cell in enumerate(table.cells):
        indices[f"{cell.mode or 'all'} {cell.kind}"].append(index)
    return dict(sorted(indices.items()))


def spanned(cells: Iterable[Cell]) -> int:
    """Return the cells that labels span: dates x times x locations of mode and tap."""
    parts: defaultdict[tuple[str | None, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        parts[cell.mode, cell.tap, cell.kind].append(cell)
    return sum(
        expected_rows(*(len({cell[axis] for cell in part}) for axis in _SPANNING))
        for part in parts.values()
    )
