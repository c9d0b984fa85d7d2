"""Typical weekday and four-week means, from reconciled numbers, with their errors.

Noise of different days and weeks was drawn independently, so variances of numbers of one cell add
up over days; the mean of n has the root of their sum over n. Post-processing: costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from turnstile.errors import InputError
from turnstile.estimates.labelled import read_parquet
from turnstile.estimates.rolling_means import read_week, rolling_means
from turnstile.programme.field import Role
from turnstile.programme.fields import field_of
from turnstile.publishing.contents import NORMAL_95
from turnstile.publishing.series.days import SATURDAY
from turnstile.release.columns import dates

WEEKS = 4
_DAYS_OF = {"day": 1, "week": 7}
_VALUES = ("reconciled", "estimate")  # as version 0.1.0 called it
_ERROR, _DAY = "standard_deviation", "service_date"
_LABELS = frozenset({Role.KEY, Role.DIMENSION})


def typical_weekday(
    packages: Sequence[Path], table: str, holidays: Mapping[date, str], gaps: Sequence[str]
) -> pa.Table | None:
    """Return the mean of Mondays to Fridays that are no holidays and had input, by cell.

    Args:
        packages: of the weeks.
        table: name below `tables/`.
        holidays: by day.
        gaps: service days without input.
    """
    left_out = {*holidays, *(date.fromisoformat(day) for day in gaps)}
    return _means(packages, table, left_out, "day")


def four_weeks(packages: Sequence[Path], table: str, gaps: Sequence[str]) -> pa.Table | None:
    """Return the mean of whole weeks, by cell; a week with a gap is left out.

    Args:
        packages: of the weeks.
        table: name below `tables/`.
        gaps: service days without input.
    """
    return _means(packages, table, {date.fromisoformat(day) for day in gaps}, "week")


def four_weeks_of_speeds(packages: Sequence[Path], table: str, clamp_kmh: int) -> pa.Table | None:
    """Return the mean speeds over some weeks; None where their cells or noise differ.

    Args:
        packages: of the weeks.
        table: drawn table of speeds.
        clamp_kmh: V, km/h.
    """
    try:
        return rolling_means([read_week(one, table) for one in packages], clamp_kmh=clamp_kmh)
    except InputError:
        return None


def _means(packages: Sequence[Path], table: str, left_out: set[date], unit: str) -> pa.Table | None:
    """Return the means a day or a week; None where the table has no days or no errors."""
    found = [one for path in packages if (one := _rows(path, table, left_out, unit)) is not None]
    if not found or any(one.column_names != found[0].column_names for one in found):
        return None
    rows = pa.concat_tables(found)
    labels = [name for name in rows.column_names if name not in {"value", "variance", _DAY}]
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


def _rows(package: Path, table: str, left_out: set[date], unit: str) -> pa.Table | None:
    """Return labels, value and variance of the days of one package that count."""
    path = package / f"tables/{table}.parquet"
    names = set(pq.read_schema(path).names) if path.exists() else set()
    value = next((name for name in _VALUES if name in names), None)
    if value is None or not {_ERROR, _DAY} <= names:
        return None
    rows = read_parquet(path)
    days = rows[_DAY].unique().to_pylist()
    if unit == "day":
        kept = [day for day in days if day not in left_out and day.weekday() < SATURDAY]
    else:
        kept = [] if left_out.intersection(days) else days
    rows = rows.filter(pc.is_in(rows[_DAY], value_set=dates(kept)))
    fields = {name: field_of(name) for name in rows.column_names if name != _DAY}
    columns = {
        name: rows[name].cast(pa.string())
        for name, field in fields.items()
        if field is not None and field.role in _LABELS
    }
    deviation = rows[_ERROR]
    return pa.table(columns | {"value": rows[value], "variance": pc.multiply(deviation, deviation)})
