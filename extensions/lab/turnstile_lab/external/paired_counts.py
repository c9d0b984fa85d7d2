"""Counts of the same raw number in an external table: totals and parts, both ends of a trip.

All of it is found from labels and counts; no timetable is needed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.external.table import Cell, ExternalTable

GROUPS_LEAST = 10  # totals that are worth a finding
_LAGS = 5  # slots between the two ends of a trip that are looked at
_PAIRS_LEAST = 20
_LOCATIONS_MAX = 120
_CLOSE = 0.35  # of the spread that two independent Poisson counts would have
# P(|D| < 0.35 sqrt(N)) given the sum N of two independent Poisson counts is at most that of a
# normal distribution, 0.274, over the share that the threshold leaves, 0.954 where
# N - 2 smallest >= 2 sqrt(N).
_CLOSE_BY_CHANCE = 0.2737 / 0.9545
_CLEAR_OF_THRESHOLD = 2.0
_ALPHA = 1e-3  # chance that a table without any such service shows one


@dataclass(frozen=True, slots=True)
class Residuals:
    """Totals minus the sums of their published parts.

    Args:
        dimension: that was added up, `time` or `loc`.
        values: shape (sums,), total minus parts.
        parts: shape (sums,), published parts in each.
        is_complete: shape (sums,), whether every label of the dimension is published.
        levels: shape (sums,), size of the total.
    """

    dimension: str
    values: NDArray[np.float64]
    parts: NDArray[np.int64]
    is_complete: NDArray[np.bool_]
    levels: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ends:
    """Pairs of counts that follow one point-to-point service: on at one end, off at the other.

    Args:
        mode: of both.
        start: label of the boarding location.
        end: label of the alighting location.
        lag: slots between them.
        differences: shape (pairs,), on minus off.
        levels: shape (pairs,), on and off together.
    """

    mode: str | None
    start: str
    end: str
    lag: int
    differences: NDArray[np.int64]
    levels: NDArray[np.float64]


def residuals(table: ExternalTable) -> list[Residuals]:
    """Return totals minus their parts, over places and over times, where the table has both."""
    sums = (_residuals(table, Cell._fields.index(dimension)) for dimension in ("loc", "time"))
    return [over_one for over_one in sums if over_one is not None]


def _residuals(table: ExternalTable, axis: int) -> Residuals | None:
    """Return totals over a dimension minus their parts; None where the table has not both."""
    parts: defaultdict[tuple[str | None, ...], list[float]] = defaultdict(list)
    labels: defaultdict[tuple[str | None, str | None], set[str]] = defaultdict(set)
    totals: dict[Cell, float] = {}
    for cell, count in zip(table.cells, table.counts.tolist(), strict=True):
        label = cell[axis]
        if label is None:
            totals[cell] = count
        else:
            parts[(*cell[:axis], None, *cell[axis + 1 :])].append(count)
            labels[cell.mode, cell.tap].add(label)
    known = [cell for cell in totals if cell in parts]
    if not known:
        return None
    sizes = np.array([len(parts[cell]) for cell in known])
    wanted = np.array([len(labels[cell.mode, cell.tap]) for cell in known])
    values = np.array([totals[cell] - sum(parts[cell]) for cell in known])
    levels = np.abs(np.array([totals[cell] for cell in known]))
    return Residuals(Cell._fields[axis], values, sizes, sizes == wanted, levels)


def point_to_point(table: ExternalTable) -> tuple[Ends, ...]:
    """Return services whose tap-ons at one location reappear as tap-offs at another, later.

    A pair of locations is one when the two counts agree far better than independent Poisson counts
    could: so many differences are below 0.35 square roots of the sum (and at least half of them)
    that no pair of locations and lag would show it by chance. Counts near the threshold are left
    out, since they are alike because both were published. Modes with many locations are left out:
    there trips of one location end in many.
    """
    services: list[Ends] = []
    for mode in sorted({cell.mode or "" for cell in table.cells}):
        marginals = _tap_counts(table, mode)
        if marginals is not None:
            services.extend(_of_mode(mode or None, *marginals))
    return tuple(services)


_Pairs = tuple[NDArray[np.float64], NDArray[np.float64]]
_TapCounts = tuple[list[str], NDArray[np.float64]]


def _tap_counts(table: ExternalTable, mode: str) -> tuple[_TapCounts, _TapCounts] | None:
    """Return, for both taps of a mode, the locations and their counts by slot."""
    rows = [
        (cell, count)
        for cell, count in zip(table.cells, table.counts.tolist(), strict=True)
        if (cell.mode or "") == mode and cell.kind == "time-loc"
    ]
    slots = {key: n for n, key in enumerate(_instants([cell for cell, _ in rows]))}
    marginals = []
    for tap in ("on", "off"):
        tap_rows = [(cell, count) for cell, count in rows if cell.tap == tap]
        locations = sorted({str(cell.loc) for cell, _ in tap_rows})
        if not tap_rows or len(locations) > _LOCATIONS_MAX:
            return None
        rank = {location: n for n, location in enumerate(locations)}
        matrix = np.full((len(locations), len(slots)), np.nan)
        for cell, count in tap_rows:
            if (cell.date, cell.time) in slots:
                matrix[rank[str(cell.loc)], slots[cell.date, cell.time]] = count
        marginals.append((locations, matrix))
    return marginals[0], marginals[1]


def _instants(cells: list[Cell]) -> list[tuple[str | None, str | None]]:
    """Return every slot of every day in order, gaps included, so that a lag is a shift."""
    times = sorted({cell.time for cell in cells if cell.time and ":" in cell.time})
    days: list[str | None] = [*sorted({cell.date for cell in cells if cell.date is not None})]
    return [(day, time) for day in days or [None] for time in times]


def _of_mode(mode: str | None, on: _TapCounts, off: _TapCounts) -> list[Ends]:
    """Return the lag of each pair of locations that agrees best."""
    services = []
    alpha = _ALPHA / (len(on[0]) * len(off[0]) * _LAGS)
    threshold = float(min(np.nanmin(on[1]), np.nanmin(off[1])))
    for start, counts in zip(*on, strict=True):
        for end, others in zip(*off, strict=True):
            if start == end:
                continue
            tried = [
                _ends(
                    mode,
                    (start, end),
                    lag,
                    _clear(_shifted(counts, others, lag), threshold),
                    alpha=alpha,
                )
                for lag in range(_LAGS)
            ]
            agreeing = [ends for ends in tried if ends is not None]
            if agreeing:
                services.append(min(agreeing, key=_disagreement))
    return services


def _disagreement(ends: Ends) -> float:
    """Return how far both ends differ, for their size: neighboring slots are alike, but less."""
    return float(np.mean(ends.differences**2 / np.maximum(ends.levels, 1)))


def _shifted(counts: NDArray[np.float64], others: NDArray[np.float64], lag: int) -> _Pairs:
    """Return the published pairs at a lag."""
    early, late = counts[: counts.size - lag], others[lag:]
    both = ~np.isnan(early) & ~np.isnan(late)
    return early[both], late[both]


def _clear(pairs: _Pairs, threshold: float) -> _Pairs:
    """Keep pairs that a threshold at this count would hardly have kept from differing."""
    total = pairs[0] + pairs[1]
    far = total - 2 * threshold >= _CLEAR_OF_THRESHOLD * np.sqrt(np.maximum(total, 1))
    return pairs[0][far], pairs[1][far]


def _ends(
    mode: str | None, locations: tuple[str, str], lag: int, pairs: _Pairs, *, alpha: float
) -> Ends | None:
    """Return the pairs of a lag, if they agree."""
    from scipy.stats import binom

    early, late = pairs
    if early.size < _PAIRS_LEAST:
        return None
    spread = np.sqrt(np.maximum(early + late, 1))
    close = int((np.abs(early - late) < _CLOSE * spread).sum())
    if 2 * close < early.size or binom.sf(close - 1, early.size, _CLOSE_BY_CHANCE) > alpha:
        return None
    differences = np.rint(early - late).astype(np.int64)
    return Ends(mode, *locations, lag, differences, np.abs(early + late))
