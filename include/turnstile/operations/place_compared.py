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
import pyarrow.parquet as pq

from turnstile.programme.field import Role
from turnstile.programme.field_registry import field_of
from turnstile.publishing.carried.sums import Package, Row, Sum

_PLACES = ("tap_on_location", "cell")
_TIMES = ("tap_on_slot", "slot")
_MEAN, _COUNT = "mean_speed_kmh", "reconciled"
_PARTS = ("tables", "estimates")


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
    names = [path.stem for path in sorted(package.glob("estimates/*.parquet"))]
    for name in names:
        path = package / "estimates" / f"{name}.parquet"
        columns = pq.read_schema(path).names
        wanted = {"estimate", _of(columns, _PLACES), _of(columns, _TIMES)}
        if wanted <= {*columns} and _is_compared(package, path.name, columns):
            break
    else:
        return None
    column, time = _of(columns, _PLACES), _of(columns, _TIMES)
    found = pc.unique(pq.read_table(path, columns=[column]).column(column)).to_pylist()
    is_mean = _MEAN in pq.read_schema(package / "tables" / path.name).names
    unit = "mean speed, km/h" if is_mean else "tap-ons of the week"
    places = tuple(sorted(found))
    if place not in places:
        return PlaceCompared(places, "", unit, ())
    unbiased, estimates = (_rows(package, part, name, column, place) for part in _PARTS)
    compare = _means if is_mean else _sums
    return PlaceCompared(places, place, unit, compare(package, name, time, unbiased, estimates))


def _is_compared(package: Path, file: str, columns: list[str]) -> bool:
    """Whether a table is of mean speeds or counts, and told apart by place and time alone."""
    fields = (field_of(name) for name in columns)
    labels = [field.name for field in fields if field and field.role is Role.DIMENSION]
    path = package / "tables" / file
    known = pq.read_schema(path).names if path.is_file() else ()
    return len(labels) == len(("place", "time")) and bool({_MEAN, _COUNT} & {*known})


def _of(columns: list[str], wanted: tuple[str, ...]) -> str:
    """Return the first of these that is a column; the first of them where none is."""
    return next((name for name in wanted if name in columns), wanted[0])


def _rows(package: Path, part: str, name: str, column: str, place: str) -> list[Row]:
    """Return the rows of a place as texts, as `sums.py` reads them."""
    path = package / part / f"{name}.parquet"
    rows = pq.read_table(path, filters=[(column, "=", place)]).to_pylist()
    return [{key: "" if value is None else str(value) for key, value in r.items()} for r in rows]


def _sums(
    package: Path, name: str, time: str, unbiased: list[Row], estimates: list[Row]
) -> tuple[Compared, ...]:
    """Add up the days, hour by hour."""
    reader = Package(package)
    by_hour: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for number, rows in enumerate((unbiased, estimates)):
        for row in rows:
            label = row[time]
            hour = f"{label[:2]}:00" if label[:2].isdigit() else label
            by_hour[hour][number].append(row)
    found = []
    for hour, (own, borrowed) in sorted(by_hour.items()):
        drawn, estimate = reader.reconciled(name, own), reader.estimated(name, borrowed)
        found.append(
            Compared(
                hour,
                f"{drawn.value:,.0f}",
                _interval(drawn),
                f"{estimate.value:,.0f}",
                _interval(estimate),
            )
        )
    return tuple(found)


def _interval(one: Sum) -> str:
    """Say the 95 % interval, or why there is none."""
    if one.withheld or isnan(one.low_95):
        return f"none: {one.withheld}"
    return f"{one.low_95:,.0f} to {one.high_95:,.0f}"


def _means(
    _package: Path, _name: str, time: str, unbiased: list[Row], estimates: list[Row]
) -> tuple[Compared, ...]:
    """Put published means beside each other."""
    return tuple(
        Compared(
            own[time],
            own[_MEAN] or "withheld",
            _ends(own, "low_95_kmh", "high_95_kmh"),
            borrowed["estimate"] or "hardly a bus",
            _ends(borrowed, "low_95", "high_95"),
        )
        for own, borrowed in zip(unbiased, estimates, strict=True)
    )


def _ends(row: Row, low: str, high: str) -> str:
    """Say a published interval."""
    return f"{row[low]} to {row[high]}" if row[low] and row[high] else "none"
