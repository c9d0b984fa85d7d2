"""Typical weekday, typical week and four-week means, from unbiased numbers, with their errors.

Noise of different days and weeks was drawn independently, so variances of numbers of one cell add
up over days; the mean of n has the root of their sum over n. Post-processing: costs nothing.
Weeks that are read from draws that carry their year along share noise, which takes more from
their sum than it adds: taken as independent their error comes out too large, never too small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import takewhile
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from turnstile.arrow_columns import dates
from turnstile.errors import InputError
from turnstile.estimates.vehicles.rolling_means import rolling_means
from turnstile.publishing.contents import NORMAL_95
from turnstile.publishing.data_tables import labels_of
from turnstile.publishing.package_numbers import read_week
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.series.dataset import terms_in
from turnstile.service_calendar import SATURDAY

WEEKS = 4
_DAYS_OF = {"day": 1, "week": 7}
_Days = Callable[[list[date]], list[date]]
_ERROR, _DAY = "standard_deviation", "service_date"


class Mean(NamedTuple):
    """A mean over some weeks: the first of them, and its rows."""

    first: str
    rows: pa.Table


def newest_alike(packages: Sequence[Tables], table: str) -> list[Tables]:
    """Return the newest weeks, without a break, whose rows of a table mean the same (`terms_in`).

    Args:
        packages: of the weeks, in order; those without the table are passed over.
        table: its name.
    """
    with_table = [package for package in reversed(packages) if table in package.layouts]
    if not with_table:
        return []
    terms = terms_in(with_table[0], table)
    return [*takewhile(lambda package: terms_in(package, table) == terms, with_table)][::-1]


def weeks_of(packages: Sequence[Tables], table: str) -> tuple[pa.Table, ...]:
    """Return days, labels, values and variances of the weeks whose table has days and errors.

    Args:
        packages: of the weeks.
        table: its name.
    """
    weeks = (_rows(package, table) for package in packages)
    return tuple(week for week in weeks if week is not None)


def typical_weekday(
    weeks: Sequence[pa.Table], holidays: Mapping[date, str], gaps: Sequence[str]
) -> pa.Table | None:
    """Return the mean of Mondays to Fridays that are no holidays and had input, by cell.

    Args:
        weeks: rows of one table (`weeks_of`).
        holidays: by day.
        gaps: service days without input.
    """
    usual = _usual_days(holidays, gaps)

    def kept(days: list[date]) -> list[date]:
        return [day for day in usual(days) if day.weekday() < SATURDAY]

    return _means(weeks, kept, "day")


def typical_week(
    weeks: Sequence[pa.Table], holidays: Mapping[date, str], gaps: Sequence[str]
) -> pa.Table | None:
    """Return the mean of each day of the week, without holidays and gaps, by cell.

    Args:
        weeks: rows of one table (`weeks_of`).
        holidays: by day.
        gaps: service days without input.
    """

    def named(rows: pa.Table) -> pa.Table:
        days = rows[_DAY].unique().to_pylist()
        places = pc.index_in(rows[_DAY], value_set=dates(days))
        names = pa.array([f"{day:%A}" for day in days]).take(places)
        return rows.add_column(0, "weekday", names)

    return _means([named(week) for week in weeks], _usual_days(holidays, gaps), "day")


def _usual_days(holidays: Mapping[date, str], gaps: Sequence[str]) -> _Days:
    """Return what keeps of some days those that are no holidays and had input."""
    left_out = {*holidays, *(date.fromisoformat(day) for day in gaps)}
    return lambda days: [day for day in days if day not in left_out]


def four_weeks(weeks: Sequence[pa.Table], gaps: Sequence[str]) -> pa.Table | None:
    """Return the mean of whole weeks, by cell; a week with a gap is left out.

    Args:
        weeks: rows of one table (`weeks_of`).
        gaps: service days without input.
    """
    left_out = {date.fromisoformat(day) for day in gaps}
    return _means(weeks, lambda days: [] if left_out.intersection(days) else days, "week")


def four_weeks_of_speeds(packages: Sequence[Tables], table: str) -> pa.Table | None:
    """Return the mean speeds over some weeks; None where their cells, noise or range differ.

    Args:
        packages: of the weeks.
        table: drawn table of speeds.
    """
    try:
        return rolling_means([read_week(package.folder, table) for package in packages])
    except InputError:
        return None


def _means(weeks: Sequence[pa.Table], kept: _Days, unit: str) -> pa.Table | None:
    """Return the means a day or a week; None without a table."""
    if not weeks:
        return None
    rows = pa.concat_tables([_of_days(week, kept) for week in weeks])
    labels = [name for name in rows.column_names if name not in {"value", "variance"}]
    summed = rows.group_by(labels, use_threads=False).aggregate(
        [("value", "sum"), ("variance", "sum"), ("value", "count")]
    )
    if not summed.num_rows:
        return None
    number = pc.divide(pc.cast(summed["value_count"], pa.float64()), float(_DAYS_OF[unit]))
    mean = pc.divide(summed["value_sum"], number)
    deviation = pc.divide(pc.sqrt(summed["variance_sum"]), number)
    half = pc.multiply(deviation, NORMAL_95)
    columns = {name: summed[name] for name in labels}
    columns |= {
        f"{unit}s": pc.cast(pc.round(number), pa.int64()),
        f"trips_a_{unit}": pc.round(mean, 3),
        _ERROR: pc.round(deviation, 4),
        "low_95": pc.round(pc.subtract(mean, half), 3),
        "high_95": pc.round(pc.add(mean, half), 3),
    }
    return pa.table(columns)


def _of_days(rows: pa.Table, kept: Callable[[list[date]], list[date]]) -> pa.Table:
    """Return the rows of the days that count."""
    days = rows[_DAY].unique().to_pylist()
    chosen = pc.is_in(rows[_DAY], value_set=dates(kept(days)))
    return rows.drop_columns([_DAY]).filter(chosen)


def _rows(package: Tables, name: str) -> pa.Table | None:
    """Return days, labels, values and variances; None where the table has no days or no errors."""
    names = set(package.columns(name)) if name in package.layouts else set()
    if not {"unbiased", "unbiased_sd", _DAY} <= names or not package.layouts[name].is_count:
        return None
    rows = package.rows(name)
    labels = {
        label: rows[label].cast(pa.string())
        for label in labels_of(rows.column_names)
        if label != _DAY
    }
    variance = pc.multiply(rows["unbiased_sd"], rows["unbiased_sd"])
    return pa.table({_DAY: rows[_DAY], **labels, "value": rows["unbiased"], "variance": variance})
