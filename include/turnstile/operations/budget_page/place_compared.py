"""A place's week as the page shows it: unbiased numbers against estimates, by time of day.

Reads a published package alone. Both are sums over the days of the week, each with the interval
that `sums.py` of every package gives it; of speeds, the published means.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import isnan
from pathlib import Path

import pyarrow.compute as pc

from turnstile.publishing.carried.sums import Row, Sum
from turnstile.publishing.contents import NORMAL_95
from turnstile.publishing.data_tables import TAP, labels_of
from turnstile.publishing.package_reader import Tables, texts_of
from turnstile.publishing.week.sums import Sums, as_texts

_PLACES, _TIME, _KEYS = ("location", "cell"), "slot", ("service_date", "mode", TAP)


@dataclass(frozen=True, slots=True)
class Compared:
    """One time of day: what was drawn says, and what the estimate says, with 95 % intervals."""

    time: str
    unbiased: str
    unbiased_interval: str
    estimate: str
    estimate_interval: str


@dataclass(frozen=True, slots=True)
class PlaceCompared:
    """One place of a package.

    Args:
        places: that may be chosen.
        place: that was; empty for none.
        unit: of the numbers.
        lines: by time of day.
    """

    places: tuple[str, ...]
    place: str
    unit: str
    lines: tuple[Compared, ...]


def place_in(package: Path, place: str) -> PlaceCompared | None:
    """Compare the numbers of a place; None where the package has no estimates by time and place.

    Args:
        package: a published package.
        place: a label of it; any other shows the choice alone.
    """
    tables = Tables(package)
    name = next((table for table in tables.layouts if _is_compared(tables, table)), None)
    if name is None:
        return None
    layout, rows = tables.layouts[name], tables.rows(name)
    column = next(place_column for place_column in _PLACES if place_column in rows.column_names)
    unit = "tap-ons of the week" if layout.is_count else f"{layout.what}, {layout.unit}"
    places = tuple(sorted(pc.unique(texts_of(rows, column)).to_pylist()))
    if place not in places:
        return PlaceCompared(places, "", unit, ())
    place_rows = as_texts(rows.filter(pc.equal(texts_of(rows, column), place)))
    place_rows = [row for row in place_rows if row.get(TAP, "on") == "on"]
    lines = _sums(package, name, place_rows) if layout.is_count else _means(place_rows)
    return PlaceCompared(places, place, unit, lines)


def _is_compared(tables: Tables, name: str) -> bool:
    """Whether a table has estimates beside drawn counts or means, by place and time alone."""
    layout, columns = tables.layouts[name], tables.columns(name)
    labels = {label for label in labels_of(columns) if label not in _KEYS}
    is_place = any(labels == {place, _TIME} for place in _PLACES)
    kinds = {source.statistic for source in layout.sources if source.estimates}
    return is_place and bool(kinds & {"count", "sum"}) and "unbiased" in columns


def _sums(package: Path, name: str, rows: list[Row]) -> tuple[Compared, ...]:
    """Add up the days, hour by hour."""
    reader = Sums(package)
    by_hour: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        label = row[_TIME]
        by_hour[f"{label[:2]}:00" if label[:2].isdigit() else label].append(row)
    comparisons = []
    for hour, hour_rows in sorted(by_hour.items()):
        drawn, estimate = reader.reconciled(name, hour_rows), reader.estimated(name, hour_rows)
        comparisons.append(
            Compared(
                hour,
                f"{drawn.value:,.0f}",
                _interval(drawn),
                f"{estimate.value:,.0f}",
                _interval(estimate),
            )
        )
    return tuple(comparisons)


def _interval(total: Sum) -> str:
    """Say the 95 % interval, or why there is none."""
    if total.no_interval or isnan(total.low_95):
        return f"none: {total.no_interval}"
    return f"{total.low_95:,.0f} to {total.high_95:,.0f}"


def _means(rows: list[Row]) -> tuple[Compared, ...]:
    """Put published means beside each other."""
    half = {True: "none", False: "\N{PLUS-MINUS SIGN} {:.1f}"}
    return tuple(
        Compared(
            row[_TIME],
            row["unbiased"] or "withheld",
            half[not row["unbiased_sd"]].format(NORMAL_95 * float(row["unbiased_sd"] or 0)),
            row["value"] or "hardly a bus",
            _ends(row, "low_95", "high_95"),
        )
        for row in rows
    )


def _ends(row: Row, low: str, high: str) -> str:
    """Say a published interval."""
    return f"{row[low]} to {row[high]}" if row[low] and row[high] else "none"
