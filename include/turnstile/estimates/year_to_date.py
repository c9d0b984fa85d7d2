"""Weeks and sums of weeks, read from draws that carry their year along. Post-processing.

A draw of week t holds n_0 x_t + n_1 x_(t-1) + ... and noise, for the weeks that its sealed bytes
name (year_to_date.proof.md, Y2). Week by week, oldest first, each week's counts follow from its own
draw and the weeks read before: unbiased, with exact variances. Service days of a week are drawn
apart, so each weekday is read by itself; sums are over all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.estimates.intervals import LEVELS
from turnstile.estimates.labelled import Column, labelled
from turnstile.estimates.table_names import QUARTER, YEAR
from turnstile.ledger.records import ReleaseKey
from turnstile.privacy.noise import normal_half_width
from turnstile.privacy.year_to_date import QUARTER_WEEKS, UNIT, multiples
from turnstile.programme.spec import TableSpec
from turnstile.release.carried_weeks import age_in_year
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact
from turnstile.service_calendar import DAYS_PER_WEEK, ServiceWeek

_DECIMALS = 4
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WeekRead:
    """The counts of one weekday of one release.

    Args:
        values: shape (cells,), without bias.
        of_draws: shape (releases,): how much of each draw's noise is in them.
    """

    values: Floats
    of_draws: Floats


def year_tables(drawn: Drawn, table: TableSpec) -> dict[str, pa.Table]:
    """Return the week, its last 13 weeks and its year to date, each with its error."""
    artefacts = {**drawn.earlier, _own_key(drawn): drawn.artefact}
    keys = sorted(artefacts, key=_order)
    by_weekday = [_weekday(artefacts, keys, table, day) for day in range(DAYS_PER_WEEK)]
    deviation = math.sqrt(drawn.variance(table, "count"))
    readings = {
        day: by_weekday[day.weekday()][_own_key(drawn)]
        for day in drawn.vectors(table, "count")
        if day is not None
    }
    errors = [deviation * float(np.linalg.norm(reading.of_draws)) for reading in readings.values()]
    cells = drawn.domain.cells(table)
    week: dict[str, list[Column]] = {
        "reconciled": [reading.values.round(3) for reading in readings.values()],
        "standard_deviation": [np.full(cells, round(error, _DECIMALS)) for error in errors],
    }
    tables = {table.name: labelled(drawn.domain, table, list(readings), week)}
    own_key = _own_key(drawn)
    of_year = [key for key in drawn.artefact.carried if _multiple(table, own_key, key)]
    in_force, last = (*of_year, own_key), _week(own_key)
    of_quarter = tuple(key for key in in_force if _week(key) > last.plus(-QUARTER_WEEKS))
    for suffix, chosen in ((QUARTER, of_quarter), (YEAR, in_force)):
        columns = _sum(by_weekday, chosen, deviation)
        tables[table.name + suffix] = labelled(drawn.domain, table, [None], columns)
    return tables


def gaps_of_rows(drawn: Drawn, name: str) -> tuple[date, ...]:
    """Return the days without input that a table's rows are about: of a sum, those of its weeks."""
    names = {table.name for table in drawn.programme.tables if table.year_from is not None}
    stem = next((name.removesuffix(end) for end in (QUARTER, YEAR) if name.endswith(end)), None)
    if stem not in names:
        return drawn.artefact.gaps
    first = _week(_own_key(drawn)).plus(-QUARTER_WEEKS)
    chosen = [
        key for key in drawn.artefact.carried if not name.endswith(QUARTER) or _week(key) > first
    ]
    return (*(day for key in chosen for day in drawn.earlier[key].gaps), *drawn.artefact.gaps)


def _weekday(
    artefacts: dict[str, Artefact], keys: list[str], table: TableSpec, weekday: int
) -> dict[str, WeekRead]:
    """Read one weekday of every release, oldest first."""
    read: dict[str, WeekRead] = {}
    for number, key in enumerate(keys):
        drawn = _vector(artefacts[key], table, weekday)
        if drawn is None:
            continue
        values, of_draws = drawn.astype(np.float64), np.zeros(len(keys))
        of_draws[number] = 1.0
        for other in artefacts[key].carried:
            if other in read and (multiple := _multiple(table, key, other)):
                values = values - multiple * read[other].values
                of_draws = of_draws - multiple * read[other].of_draws
        read[key] = WeekRead(values / UNIT, of_draws / UNIT)
    return read


def _multiple(table: TableSpec, key: str, carried: str) -> int:
    """Return how often the draws of a release hold the counts of an earlier one; 0: not."""
    if table.year_from is None:
        return 0
    monday = _week(key).monday
    age = (monday - _week(carried).monday).days // DAYS_PER_WEEK
    return multiples()[age] if age <= age_in_year(table.year_from, monday) else 0


def _sum(
    by_weekday: list[dict[str, WeekRead]], keys: tuple[str, ...], deviation: float
) -> dict[str, list[Column]]:
    """Return the sum of some releases over all weekdays, with its error."""
    weekdays = [[read[key] for key in keys if key in read] for read in by_weekday]
    drawn = [readings for readings in weekdays if readings]
    total = np.sum([reading.values for readings in drawn for reading in readings], axis=0)
    noise = [np.sum([reading.of_draws for reading in readings], axis=0) for readings in drawn]
    variance = sum(float(np.sum(of_draws**2)) for of_draws in noise)
    error = deviation * math.sqrt(variance)
    cells = total.size
    return {
        "weeks": [np.full(cells, len(keys))],
        "reconciled": [total.round(3)],
        "standard_deviation": [np.full(cells, round(error, _DECIMALS))],
        **{
            f"half_width_{level}": [
                np.full(cells, round(normal_half_width(error, level=level), _DECIMALS))
            ]
            for level in LEVELS
        },
    }


def _vector(artefact: Artefact, table: TableSpec, weekday: int) -> NDArray[np.int64] | None:
    """Return the draw of a table on a weekday."""
    return next(
        (
            noisy.values
            for noisy in artefact.tables
            if noisy.table == table.name
            and noisy.service_date is not None
            and noisy.service_date.weekday() == weekday
        ),
        None,
    )


def _own_key(drawn: Drawn) -> str:
    """Name the release itself."""
    plan = drawn.plan
    return str(ReleaseKey(plan.programme, str(plan.week), plan.revision))


def _order(key: str) -> tuple[ServiceWeek, int]:
    """Return where a release stands: it carries those of earlier weeks alone."""
    return _week(key), ReleaseKey.parse(key).revision


def _week(key: str) -> ServiceWeek:
    return ServiceWeek.parse(ReleaseKey.parse(key).period)
