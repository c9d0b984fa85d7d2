"""A published week as the page shows it: map, heat map, error bars, gates; public bytes only.

Sums over cells add variances of the published standard deviations; where tables were reconciled
that is an upper picture of the error, and the published tables hold the exact ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from turnstile.errors import InputError
from turnstile.estimates.error_bars import error_bar
from turnstile.ledger.records import ReleaseKey
from turnstile.measures.buses import Mean
from turnstile.operations.budget_page.picture_shapes import (
    Bar,
    Columns,
    Location,
    MapPicture,
    Shape,
    columns,
    heat_map,
    map_of,
    number,
)
from turnstile.operations.budget_page.week_compared import WeekCompared, compared
from turnstile.privacy.noise import normal_half_width
from turnstile.programme.domain.files import load_domain
from turnstile.programme.spec import Programme, TableSpec
from turnstile.publishing.data_tables import VALUE, labels_of
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.week.geography import Feature, features_of
from turnstile.settings import Settings

_WEEK = "the week"
_WHOLE = "all days of both"
_TIMES, _PLACES = ("slot",), ("location", "cell")  # endings of dimensions


@dataclass(frozen=True, slots=True)
class PublishedWeek:
    """What is shown of one package.

    Args:
        card: release card as published.
        gates: gate, whether it passed, and its statement.
        locations: of the map, with their numbers.
        rows: service days, or the one word for the week.
        slots: names of the time slots, in order.
        heat: (row, slot) to the number there.
        series: numbers by slot over the whole week.
        unit: what the numbers are.
        adds_up: whether they are counts.
    """

    card: Mapping[str, Any]
    gates: tuple[Mapping[str, Any], ...]
    locations: tuple[Location, ...]
    rows: tuple[str, ...]
    slots: tuple[str, ...]
    heat: Mapping[tuple[str, str], Bar]
    series: tuple[Bar, ...]
    unit: str
    adds_up: bool = True

    def by_row(self) -> dict[str, Bar]:
        """Return the sum of each row of the heat map, by the day of the week."""
        sums: dict[str, list[Bar]] = {}
        for (row, _), bar in self.heat.items():
            if bar.value is not None:
                sums.setdefault(_day_of_week(row), []).append(bar)
        return {name: _sum(name, bars) for name, bars in sums.items()}

    def by_place(self) -> dict[str, Bar]:
        """Return the number of each place of the map."""
        return {
            location.name: Bar(location.name, location.value, location.deviation)
            for location in self.locations
        }

    @property
    def map(self) -> MapPicture | None:
        """Locations where they lie."""
        return map_of(self.locations)

    @property
    def heat_shapes(self) -> tuple[Shape, ...]:
        """Day by time."""
        return heat_map(self.rows, self.slots, self.heat)

    @property
    def columns(self) -> Columns:
        """By time, over the whole week."""
        return columns(self.series)

    @property
    def noise_words(self) -> str:
        """Say how large the noise of a number of the map, or of the times, is."""
        bars: Sequence[Bar | Location] = self.locations or self.series
        widths = sorted(
            normal_half_width(bar.deviation, level=95) for bar in bars if bar.value is not None
        )
        if not widths:
            return "no number is shown"
        what = "locations" if self.locations else "times of day"
        middle, widest = number(widths[len(widths) // 2]), number(widths[-1])
        if number(widths[0]) == widest:
            return f"95 % of the numbers of {what} are within ± {widest} of the truth"
        return f"its error of 95 % is at most ± {middle} in half of the {what}, ± {widest} in all"


def card_of(package: Path) -> dict[str, Any]:
    """Return the release card of a package."""
    card: dict[str, Any] = json.loads((package / "release_card.json").read_bytes())
    return card


def week_in(
    package: Path, programme: Programme, include: Path, card: Mapping[str, Any]
) -> PublishedWeek:
    """Read tables and gates of a package, or of a week that is still under embargo.

    Args:
        package: folder of a package, or of a release under embargo that was assessed.
        programme: whose week it is.
        include: folder of the public domain files.
        card: what is said of it: title, guarantee, ledger entry.
    """
    gates = json.loads((package / "assessment.json").read_bytes())["gates"]
    domain, tables = load_domain(programme, include), Tables(package)
    drawn = {source.table for layout in tables.layouts.values() for source in layout.sources}
    of_both = [table for table in programme.tables if table.name in drawn]  # a text may be lost
    in_time, in_space = _table_by(of_both, _TIMES), _table_by(of_both, _PLACES)
    heat = _summed(tables, in_time, _row_and_slot) if in_time else {}
    series = _summed(tables, in_time, _slot) if in_time else {}
    space = _summed(tables, in_space, _location) if in_space else {}
    rows = tuple(dict.fromkeys(row for row, _ in heat))
    slots = tuple(sorted({slot for _, slot in heat}))  # modes have their own; UNKNOWN is last
    chosen = in_time or in_space
    return PublishedWeek(
        card=card,
        gates=tuple(gates),
        locations=tuple(_locations(space, features_of(programme, domain, include))),
        rows=rows,
        slots=slots,
        heat=heat,
        series=tuple(series[slot] for slot in slots),
        unit=_unit(chosen) if chosen else "",
        adds_up=chosen is not None and chosen.measure.kind.is_of_trips,
    )


def _day_of_week(row: str) -> str:
    """Return the name of a service day's day, so that two weeks can be set side by side."""
    try:
        return f"{date.fromisoformat(row):%A}"
    except ValueError:  # the one word for the week
        return row


def _sum(name: str, bars: Sequence[Bar]) -> Bar:
    """Add numbers up."""
    deviation = math.hypot(*(bar.deviation for bar in bars))
    return Bar(name, math.fsum(bar.value or 0.0 for bar in bars), deviation)


def _table_by(tables: Sequence[TableSpec], endings: tuple[str, ...]) -> TableSpec | None:
    """Return the smallest table with a dimension that ends so."""
    fitting = [t for t in tables if any(by.endswith(endings) for by in t.by)]
    return min(fitting, key=lambda table: len(table.by), default=None)


def _unit(table: TableSpec) -> str:
    """Say what a table's numbers are."""
    kind = table.measure.kind
    if isinstance(kind, Mean):
        return f"mean of the mean {kind.noun}s shown, {kind.unit}"
    return "taps" if kind.is_of_trips else "buses a day, mean of the cells"


def _summed(tables: Tables, table: TableSpec, key_of: Any) -> dict[Any, Bar]:  # noqa: ANN401 - a key
    """Add a table's unbiased numbers up by a key; counts are summed, other numbers averaged."""
    rows = tables.of_draw(table.name, table.statistics[0])
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    size = rows.num_rows
    if "unbiased" in columns:
        values, deviations = columns["unbiased"], columns["unbiased_sd"]
    else:  # of a thresholded table, or of headways, nothing is unbiased
        values = columns[VALUE]
        deviations = [_deviation(tables, table) if table.measure.kind.is_of_trips else 0.0] * size
    labels = {name: columns[name] for name in labels_of(rows.column_names)}
    labels.setdefault("service_date", [_WEEK] * size)
    totals: dict[Any, list[float]] = {}
    for n in range(size):
        key = key_of({name: str(column[n]) for name, column in labels.items()})
        total = totals.setdefault(key, [0.0, 0.0, 0.0])
        value, deviation = values[n], deviations[n]
        if value is not None:
            total[0] += value
            total[1] += (deviation or 0.0) ** 2
            total[2] += 1
    is_sum = table.measure.kind.is_of_trips
    return {key: _bar(key, total, is_sum=is_sum) for key, total in totals.items()}


def _deviation(tables: Tables, table: TableSpec) -> float:
    """Return the standard deviation of a drawn number."""
    event = next(draw_event for draw_event in tables.events if draw_event.table == table.name)
    return error_bar(event).standard_deviation


def _bar(key: object, total: list[float], *, is_sum: bool) -> Bar:
    """Make a number of a sum, a sum of variances and how many went in."""
    value, variance, parts = total
    name = key if isinstance(key, str) else ", ".join(key) if isinstance(key, tuple) else str(key)
    if not parts:
        return Bar(name, None, 0.0)
    divisor = 1.0 if is_sum else parts
    return Bar(name, value / divisor, math.sqrt(variance) / divisor)


def _row_and_slot(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return service day and slot of a row."""
    return labels["service_date"], _slot(labels)


def _slot(labels: Mapping[str, str]) -> str:
    return next(value for name, value in labels.items() if name.endswith(_TIMES))


def _location(labels: Mapping[str, str]) -> str:
    return next(value for name, value in labels.items() if name.endswith(_PLACES))


def _locations(space: Mapping[str, Bar], features: Sequence[Feature]) -> Iterable[Location]:
    """Give each number its place on the map; what has none is left out.

    Numbers are of all modes together, so a place of several stands where the first has it.
    """
    rings = {feature.label: feature.ring for feature in reversed(features)}
    for name, bar in space.items():
        if name in rings:
            yield Location(name, rings[name], bar.value, bar.deviation)


def _with_whole(week: Mapping[str, Bar], other: Mapping[str, Bar]) -> Mapping[str, Bar]:
    """Return the days of a week, and the sum of those that another has, too."""
    days = [bar for day, bar in week.items() if day in other]
    return {**week, _WHOLE: _sum(_WHOLE, days)} if days else week


def week_beside(
    shown: PublishedWeek, last: ReleaseKey, programme: Programme, settings: Settings
) -> WeekCompared | None:
    """Return a week beside the last public one; None where that shows nothing like it.

    Args:
        shown: the week that is looked at.
        last: release in force of the last public week.
        programme: as the last one was made under it.
        settings: where the public zone is.
    """
    package = settings.public / str(last)
    if not (package / "assessment.json").is_file():
        return None
    try:
        before = week_in(package, programme, settings.include, card_of(package))
    except (KeyError, FileNotFoundError, InputError):  # it had other tables or columns
        return None
    is_count = shown.adds_up
    then, now = before.by_row(), shown.by_row()
    return compared(
        last.period,
        (_with_whole(then, now), _with_whole(now, then)) if is_count else ({}, {}),
        (before.by_place(), shown.by_place()),
        adds_up=is_count,
    )
