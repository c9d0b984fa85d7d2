"""The tables of a package by place, and by place and slot, in one shape for the explorer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

import pyarrow.parquet as pq

from turnstile.estimates.labelled import read_parquet
from turnstile.programme.field import Role
from turnstile.programme.field_registry import field_of
from turnstile.programme.spec import Programme
from turnstile.publishing.carried.sums import Package, Row, Sum

_SLOT, _DAY, _MODE, _PLACE_OF_TRIPS = "slot", "service_date", "mode", "location"
_TAP = "tap_on_"


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One number.

    Args:
        mode: empty where there is one.
        place: label.
        day: service day; empty where the number is of the week.
        slot: start of the stretch of the day; empty where it is of all of it.
        value: the number to use; None where there is none.
        low: end of its 95 % interval; None where none is known.
        high: the other end.
        unbiased: number, and its standard deviation; None where it is no count.
        said: as `sums.py` of the package reads it, and by which name of the table.
    """

    mode: str
    place: str
    day: str
    slot: str
    value: float | None
    low: float | None
    high: float | None
    unbiased: tuple[float, float] | None
    said: tuple[str, Row]


@dataclass(frozen=True, slots=True)
class PlaceTables:
    """Numbers of places.

    Args:
        places: a row of each place and day, or of the week.
        hours: the same by slot; empty where no table is.
        gaps: service days without input.
        what: is counted or averaged, in words.
        unit: of the numbers.
    """

    places: Sequence[PlaceRow]
    hours: Sequence[PlaceRow]
    gaps: tuple[str, ...]
    what: str
    unit: str

    @property
    def is_count(self) -> bool:
        """Whether numbers of days add up."""
        return self.unit == "tap-ons"


def place_tables(programme: Programme, package: Path) -> PlaceTables | None:
    """Return the tables of places of a package; None where it has none with intervals.

    Args:
        programme: whose package it is.
        package: its folder.
    """
    read = _read(package)
    labels = {
        path.stem: _labels(pq.read_schema(path).names)
        for path in sorted((package / "estimates").glob("*.parquet"))
    }
    first = programme.tables[0]
    is_trips = not first.statistics[1:] and first.measure.kind.is_of_trips
    place = {_PLACE_OF_TRIPS} if is_trips else {one for one in first.by if one != _SLOT}

    def named(axes: set[str]) -> list[str]:
        return [
            name
            for name, own in labels.items()
            if set(own.values()) - {_DAY, _MODE} == axes
            and (name.startswith(first.name) if not is_trips else any(_TAP in one for one in own))
        ]

    of_place = named(place)
    if not of_place:
        return None
    of_hour = sorted(named({*place, _SLOT}), key=lambda name: (not name.endswith("_hourly"), name))
    rows = [list(_rows(read, name, labels[name], place)) for name in (of_place[0], *of_hour[:1])]
    kind = first.measure.kind
    what = "tap-ons" if is_trips else f"mean {getattr(kind, 'noun', 'number')} of buses"
    unit = "tap-ons" if is_trips else str(getattr(kind, "unit", "buses"))
    return PlaceTables(rows[0], rows[1] if of_hour else (), tuple(read.card["gaps"]), what, unit)


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Return the columns that say where and when, and what they say, tap-offs left out."""
    found = {}
    for name in names:
        known = field_of(name)
        if known is not None and known.role in {Role.KEY, Role.DIMENSION}:
            found[name] = name.removeprefix(_TAP)
    return found


def _rows(
    package: Package, name: str, labels: Mapping[str, str], place: set[str]
) -> Iterator[PlaceRow]:
    """Yield the rows of a table."""
    beside = package.folder / f"tables/{name}.parquet"
    unbiased: Sequence[tuple[float, float]] = ()
    if beside.is_file() and "reconciled" in pq.read_schema(beside).names:
        other = read_parquet(beside)
        columns = (other[one].to_pylist() for one in ("reconciled", "standard_deviation"))
        unbiased = list(zip(*columns, strict=True))
    for row, beside_it in zip_longest(package.rows(f"estimates/{name}"), unbiased):
        own = {label: row[column] for column, label in labels.items()}
        value, low, high = (
            float(row[one]) if row[one] else None for one in ("estimate", "low_95", "high_95")
        )
        yield PlaceRow(
            mode=own.get(_MODE, ""),
            place=" / ".join(own[one] for one in own if one in place),
            day=own.get(_DAY, ""),
            slot=own.get(_SLOT, ""),
            value=value,
            low=low,
            high=high,
            unbiased=beside_it,
            said=(name, row),
        )


def sum_of(package: Path, rows: Sequence[PlaceRow]) -> Sum:
    """Return the sum of rows of one table with the interval that `sums.py` gives it."""
    read = _read(package)
    return read.estimated(rows[0].said[0], [row.said[1] for row in rows])


@lru_cache(maxsize=1)
def _read(package: Path) -> Package:
    """Return the package as its own `sums.py` reads it."""
    return Package(package)
