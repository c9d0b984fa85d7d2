"""What the explorer takes from one package: numbers of each place by day and hour. Read once.

What is shown is the number to use, and sums of such numbers with the interval that `sums.py` of
the package gives them; where it withholds one, the unbiased sum. Changes, which estimates would
make too small, and sums over weeks are worked out from the unbiased number of the week (`test`):
its noise is independent of that of other weeks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from turnstile.errors import InputError
from turnstile.estimates.vehicles.rolling_means import over_slots, rolling_means
from turnstile.programme.domain.public_domain import UNKNOWN
from turnstile.programme.spec import Programme
from turnstile.publishing.contents import NORMAL_95
from turnstile.publishing.data_tables import Layout
from turnstile.publishing.explore.place_tables import PlaceRow, PlaceTables, place_tables
from turnstile.publishing.package_numbers import read_week
from turnstile.publishing.week.geography import Place
from turnstile.release.zones import digest_of
from turnstile.service_calendar import SATURDAY, parse_period

Ends = list[float | None]
"""A number and the ends of its 95 % interval; None where there is none; `IS_UNBIASED` behind it."""
IS_UNBIASED = 1  # a fourth entry, of a number that is no estimate
_NOTHING: Ends = [None, None, None]


@dataclass(frozen=True, slots=True)
class WeekOfPlaces:
    """One package as plain values for JSON.

    Args:
        about: its days, slots and gaps, what is counted, and a digest of what decides it.
        places: what is known of each place, by mode and label: `week`, `weekday`, `weekend` (a mean
            day), `hours`, each with its 95 % interval, and `test`, the unbiased number of the week
            with its standard deviation.
        hours_of_days: of each place its days, of each day three numbers a slot; empty where
            numbers are of the week.
    """

    about: Mapping[str, Any]
    places: Mapping[Place, Mapping[str, Any]]
    hours_of_days: Mapping[Place, list[list[float | None]]]


def week_of_places(programme: Programme, package: Path, period: str) -> WeekOfPlaces | None:
    """Return the numbers of places of a package; None where it has none that have intervals.

    Args:
        programme: whose package it is.
        package: its folder.
        period: its name.
    """
    tables = place_tables(package)
    if tables is None:
        return None
    days = [str(day) for day in parse_period(period).days]
    of_hours = tables.rows(tables.of_hours)
    of_place, of_hour = _grouped(tables.rows(tables.of_places)), _grouped(of_hours)
    slots = sorted({row.slot for row in of_hours} - {UNKNOWN})
    is_count = tables.of_places.is_count
    about = {
        "days": days,
        "slots": slots,
        "gaps": list(tables.gaps),
        "terms": digest_of(repr(tables.terms).encode()),
        "what": tables.of_places.what,
        "unit": tables.of_places.unit,
        "is_count": is_count,
    }
    tests = {} if is_count else _tests_of_speeds(programme, package)
    places = {
        place: _of_counts(tables, rows, of_hour[place], about)
        if is_count
        else _of_means(rows, of_hour[place], slots, tests.get(place[1]))
        for place, rows in sorted(of_place.items())
    }
    hours = {place: _hours_of_days(of_hour[place], days, slots) for place in places}
    return WeekOfPlaces(about, places, hours if is_count and slots else {})


def _grouped(rows: Iterable[PlaceRow]) -> defaultdict[Place, list[PlaceRow]]:
    by_place: defaultdict[Place, list[PlaceRow]] = defaultdict(list)
    for row in rows:
        if row.place != UNKNOWN:
            by_place[row.mode, row.place].append(row)
    return by_place


def _of_counts(
    tables: PlaceTables,
    rows: Sequence[PlaceRow],
    hours: Sequence[PlaceRow],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what is known of a place of which trips are counted."""
    by_slot: defaultdict[str, list[PlaceRow]] = defaultdict(list)
    for row in hours:
        by_slot[row.slot].append(row)
    there = [row for row in rows if row.value is not None]  # a mean is of days with input
    off = [row for row in there if date.fromisoformat(row.day).weekday() >= SATURDAY]
    on = [row for row in there if row not in off]
    of_day, of_hour = tables.of_places, tables.of_hours or tables.of_places
    return {
        "week": _sum(tables, of_day, rows),
        "test": _test(rows),
        "weekday": _sum(tables, of_day, on, len(on)),
        "weekend": _sum(tables, of_day, off, len(off)),
        "hours": [_sum(tables, of_hour, by_slot[slot]) for slot in about["slots"]],
    }


def _of_means(
    rows: Sequence[PlaceRow],
    hours: Sequence[PlaceRow],
    slots: Sequence[str],
    test: tuple[float, float] | None,
) -> dict[str, Any]:
    """Return what is known of a place of which a mean of the week is taken."""
    by_slot = {row.slot: row for row in hours}
    return {
        "week": _ends(rows[0]),
        "test": test,
        "weekday": _NOTHING,
        "weekend": _NOTHING,
        "hours": [_ends(by_slot.get(slot)) for slot in slots],
    }


def _hours_of_days(
    rows: Sequence[PlaceRow], days: Sequence[str], slots: Sequence[str]
) -> list[list[float | None]]:
    """Return of each day three numbers a slot."""
    by_cell = {(row.day, row.slot): row for row in rows}
    return [
        [number for slot in slots for number in _ends(by_cell.get((day, slot)))] for day in days
    ]


def _sum(tables: PlaceTables, of: Layout, rows: Sequence[PlaceRow], over: int = 1) -> Ends:
    """Return a sum of numbers to use, or the mean of so many days, with its interval."""
    if not rows or all(row.value is None for row in rows):
        return _NOTHING
    total = tables.sum_of(of, rows)
    if total is not None:
        return [_rounded(number / over) for number in (total.value, total.low_95, total.high_95)]
    if (unbiased := _test(rows)) is None:
        return _NOTHING
    value, deviation = unbiased
    half = NORMAL_95 * deviation
    return [
        *(_rounded(number / over) for number in (value, value - half, value + half)),
        IS_UNBIASED,
    ]


def _test(rows: Sequence[PlaceRow]) -> tuple[float, float] | None:
    """Return the sum of unbiased numbers and its standard deviation; None where one is missing."""
    known = [row.unbiased for row in rows if row.unbiased is not None]
    if not known or len(known) < len(rows):
        return None
    variance = sum(deviation**2 for _, deviation in known)
    return round(sum(value for value, _ in known), 1), round(math.sqrt(variance), 1)


def _ends(row: PlaceRow | None) -> Ends:
    """Return the number of a row with its interval."""
    return (
        _NOTHING if row is None else [_rounded(number) for number in (row.value, row.low, row.high)]
    )


def _rounded(number: float | None) -> float | None:
    """Return a number to a tenth, and without a fraction where it has none: shorter to write."""
    if number is None or math.isnan(number):
        return None
    return int(number) if number == int(number) else round(number, 1)


def _tests_of_speeds(programme: Programme, package: Path) -> dict[str, tuple[float, float]]:
    """Return the unbiased mean speed of the week of each cell, and its deviation."""
    speeds: dict[str, tuple[float, float]] = {}
    for spec in programme.speeds[:1]:
        try:
            week = over_slots(read_week(package, spec.name))
        except (InputError, KeyError):  # another label than cells
            return {}
        for row in rolling_means([week]).to_pylist():
            if not row["is_withheld"]:
                speeds[row["cell"]] = (row["mean_speed_kmh"], row["standard_deviation_kmh"])
    return speeds
