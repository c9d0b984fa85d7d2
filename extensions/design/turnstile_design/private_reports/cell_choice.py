"""Choose public H3 cells by traffic, from noisy counts that were charged and published before.

Two choices: cells that are dense in every slot (the base condition of the ITMS report, on noisy
counts), and a partition of an area into fine cells where traffic is dense and coarse ones where it
is sparse. Both are post-processing of a release. The exact counts never come here: choosing from
them would reveal which cells are busy without a charge (seeds: ITMS report, section III C).

Why a list chosen before the draw, and not noisy fine cells added up after it: adding seven cells up
adds seven noises, and a bus-day that crosses many fine cells loses some to its bound K. Chosen
before, a coarse cell has one noise, and the bound drops less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import h3

Counts = Mapping[str, Sequence[float]]


def dense_cells(counts: Counts, least: float) -> tuple[str, ...]:
    """Return the cells whose noisy count is at least so large in every slot, sorted.

    Args:
        counts: noisy buses a day of each cell, one number a slot.
        least: buses a day; 10 in the ITMS report.

    Examples:
        >>> dense_cells({"871": [10.0, 12.5], "872": [99.0, 9.9]}, 10)
        ('871',)
    """
    return tuple(sorted(cell for cell, slots in counts.items() if min(slots) >= least))


def partition(counts: Counts, least: float, *, coarsest: int) -> tuple[str, ...]:
    """Return cells of mixed resolutions that cover the area once: fine where traffic is dense.

    A cell is kept if its noisy count, averaged over the slots, reaches `least`. What is not kept is
    added to its parent, which is judged by what is left of it, and so on up to the coarsest
    resolution, where everything is kept. What is left there and does not reach `least` takes back
    the sparsest of its kept cells until it does, so that fine cells never leave a thin rest to
    their neighbors. A position belongs to the finest listed cell that its own fine cell descends
    from: so each position of the area belongs to exactly one of the result.

    Args:
        counts: noisy buses a day of every fine cell of the area, one number a slot; the cells have
            one resolution.
        least: buses a day and slot.
        coarsest: resolution at which the parents end, not finer than the cells.

    Raises:
        ValueError: cells of several resolutions, or a coarsest one that is finer.
    """
    finest = {h3.get_resolution(cell) for cell in counts}
    if len(finest) != 1 or min(finest) < coarsest:
        raise ValueError("an area is divided from cells of one resolution, not coarser than asked")
    kept: dict[str, float] = {}
    left = {cell: sum(slots) / len(slots) for cell, slots in counts.items()}
    for resolution in range(finest.pop(), coarsest, -1):
        dense = {cell: traffic for cell, traffic in left.items() if traffic >= least}
        kept |= dense
        sparse = {cell: traffic for cell, traffic in left.items() if cell not in dense}
        left = _added_to_parents(sparse, resolution - 1)
    return tuple(sorted(_without_thin_rests(kept, left, least)))


def _without_thin_rests(
    kept: Mapping[str, float], rests: Mapping[str, float], least: float
) -> set[str]:
    """Return all cells, but for the kept ones that a rest of a coarse cell takes back."""
    listed = {**kept, **rests}
    for coarse in rests:
        while listed[coarse] < least:
            inner = [
                cell for cell in kept if cell in listed and _around(cell, listed.keys()) == coarse
            ]
            if not inner:
                break
            sparsest = min(inner, key=lambda cell: (listed[cell], cell))
            listed[coarse] += listed.pop(sparsest)
    return set(listed)


def _around(cell: str, listed: AbstractSet[str]) -> str | None:
    """Return the listed cell that would hold a cell if the cell itself were not listed."""
    return owner(h3.cell_to_parent(cell), listed)


def owner(fine_cell: str, cells: AbstractSet[str]) -> str | None:
    """Return the one listed cell that a fine cell belongs to; None if it is outside.

    Args:
        fine_cell: of the finest listed resolution.
        cells: a list of public cells, of one resolution or mixed.
    """
    for resolution in range(h3.get_resolution(fine_cell), -1, -1):
        ancestor = h3.cell_to_parent(fine_cell, resolution)
        if ancestor in cells:
            return str(ancestor)
    return None


def _added_to_parents(traffic: Mapping[str, float], resolution: int) -> dict[str, float]:
    """Return the sum of what is left of each parent."""
    sums: dict[str, float] = {}
    for cell, amount in traffic.items():
        parent = h3.cell_to_parent(cell, resolution)
        sums[parent] = sums.get(parent, 0.0) + amount
    return sums
