"""A week of trips, mode by mode, as the estimates are fitted to it: numbers, looks, past weeks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from turnstile.estimates.fitting.cell_fits import Weeks
from turnstile.estimates.trips.tap_numbers import DrawnDays, OwnTotals, TapNumbers, tap_numbers
from turnstile.estimates.trips.trip_marginals import Axes, By, shapes_of
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.fields import TAPS
from turnstile.programme.spec import TableSpec
from turnstile.release.numbers import Numbers

FISSIONS = 8


@dataclass(frozen=True, slots=True, eq=False)
class ModeTaps:
    """Tap-ons or tap-offs of one mode.

    Args:
        mode: as in the domain.
        taps: axes of the cells: those of the tap-on, or of the tap-off.
        numbers: of this week, days with input alone.
        looks: fissions of them: to fit, to judge.
        earlier: weeks before; None without any.
    """

    mode: str
    taps: Axes
    numbers: TapNumbers
    looks: tuple[tuple[TapNumbers, TapNumbers], ...]
    earlier: Weeks | None


def days_with_input(numbers: Numbers) -> tuple[int, ...]:
    """Return the indices of the days that are no gaps."""
    return tuple(n for n, day in enumerate(numbers.days) if day not in numbers.gaps)


def taps_by_mode(week: WeekToEstimate) -> Iterator[ModeTaps]:
    """Yield tap-ons and tap-offs of every mode, where their cells were drawn."""
    promise, domain = week.promise, week.domain
    days = days_with_input(week.numbers)
    cells = {table.by: table for table in promise.tables}
    if not any(taps in cells for taps in TAPS):
        return
    for mode in domain.modes:
        shapes = shapes_of(domain, mode, cells)
        tables = {
            table.by: _drawn_days(week.numbers, domain, table, mode, days)
            for table in promise.tables
        }
        fissions = [_looks(tables, f"{week.seed}/{mode}/{n}") for n in range(FISSIONS)]
        numbers, *seen = (
            tap_numbers(drawn_tables, shapes, shares_total=promise.shares_total)
            for drawn_tables in (tables, *(half for pair in fissions for half in pair))
        )
        for taps, counts in numbers.items():
            totals = _own_totals(week, mode, days, counts)
            pairs = zip(seen[::2], seen[1::2], strict=True)
            yield ModeTaps(
                mode,
                taps,
                replace(counts, own_totals=totals),
                tuple((fitted[taps], judge[taps]) for fitted, judge in pairs),
                _earlier(week.earlier, domain, cells[taps], mode, days),
            )


def _own_totals(
    week: WeekToEstimate, mode: str, days: Sequence[int], counts: TapNumbers
) -> OwnTotals | None:
    """Return the least noisy totals of a bound of their own; None without any."""
    tables = (
        _drawn_days(week.numbers, week.domain, table, mode, days) for table in week.promise.totals
    )
    if (drawn := min(tables, key=lambda table: table.variance, default=None)) is None:
        return None
    return OwnTotals.beside(drawn.values.reshape(len(days)), drawn.variance, counts)


def _drawn_days(
    numbers: Numbers, domain: PublicDomain, table: TableSpec, mode: str, days: Sequence[int]
) -> DrawnDays:
    """Return one mode's part of one drawn table on some days; zeros for one that was not drawn."""
    segment = next(candidate for candidate in layout(domain, table) if candidate.mode == mode)
    vectors = numbers.vectors[table.name, "count"]
    span = slice(segment.offset, segment.offset + segment.cells)
    none = np.zeros(segment.shape, dtype=np.int64)  # of a day without service
    drawn = [vectors.get(numbers.days[n]) for n in days]
    values = [none if vector is None else vector[span].reshape(segment.shape) for vector in drawn]
    return DrawnDays(
        np.array(values, dtype=np.float64), numbers.deviations[table.name, "count"] ** 2
    )


def _looks(
    tables: dict[By, DrawnDays], seed: str
) -> tuple[dict[By, DrawnDays], dict[By, DrawnDays]]:
    """Split the noise of every table."""
    pairs = {by: drawn_days.looks(f"{seed}/{'+'.join(by)}") for by, drawn_days in tables.items()}
    return {by: pair[0] for by, pair in pairs.items()}, {by: pair[1] for by, pair in pairs.items()}


def _earlier(
    weeks: Sequence[Numbers], domain: PublicDomain, table: TableSpec, mode: str, days: Sequence[int]
) -> Weeks | None:
    """Return the weeks before; None if there is none, or one of the days is a gap in all."""
    if not weeks:
        return None
    cells = [_drawn_days(week, domain, table, mode, days).values for week in weeks]
    deviations = np.array(
        [
            [
                np.inf if week.days[n] in week.gaps else week.deviations[table.name, "count"]
                for n in days
            ]
            for week in weeks
        ]
    )
    if np.isinf(deviations).all(axis=0).any():
        return None
    return Weeks(np.stack(cells).transpose(0, 3, 1, 2), deviations)
