"""The tables of a package by place, and by place and time of day, in one shape for the explorer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from turnstile.estimates.table_names import PLACES
from turnstile.publishing.carried.sums import Row, Sum
from turnstile.publishing.data_tables import DAY, MODE, TAP, VALUE, Layout, labels_of
from turnstile.publishing.package_reader import where
from turnstile.publishing.series.dataset import Pairs, terms_in
from turnstile.publishing.week.sums import Sums, as_texts

_TIMES = ("hour", "slot")
_PLACES = ("location", "cell", "route", "direction", "stop")


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
        unbiased: number, and its standard deviation; None where there is none.
        said: as `sums.py` of the package reads it.
    """

    mode: str
    place: str
    day: str
    slot: str
    value: float | None
    low: float | None
    high: float | None
    unbiased: tuple[float, float] | None
    said: Row


@dataclass(frozen=True)  # without slots: what is read is remembered
class PlaceTables:
    """Numbers of places.

    Args:
        sums: the package.
        of_places: table of places: a row a day, or one of the week.
        of_hours: of places and times of day; None where there is none.
    """

    sums: Sums
    of_places: Layout
    of_hours: Layout | None

    @property
    def gaps(self) -> tuple[str, ...]:
        """Service days without input."""
        return tuple(self.sums.card["gaps"])

    @property
    def terms(self) -> list[Pairs]:
        """What decides which records are counted: weeks of others are not compared."""
        tables = [table for table in (self.of_places, self.of_hours) if table is not None]
        return [terms_in(self.sums.published, table.name) for table in tables]

    def rows(self, table: Layout | None) -> list[PlaceRow]:
        """Return the rows of boardings, or of all, of a table."""
        return [] if table is None else list(_rows(self.sums, table))

    def sum_of(self, table: Layout, rows: Sequence[PlaceRow]) -> Sum | None:
        """Return the sum of rows with the interval that `sums.py` gives it; None if it gives none.

        Of numbers that have no estimate it is not known how far their errors go together.
        """
        try:
            total = self.sums.estimated(table.name, [row.said for row in rows])
        except ValueError:
            return None
        return None if total.no_interval else total


def place_tables(package: Path) -> PlaceTables | None:
    """Return the tables of places of a package; None where it has none with intervals."""
    sums = Sums(package)
    layouts = {
        name: {*labels_of(sums.published.columns(name))} - {DAY, MODE, TAP}
        for name, layout in sums.published.layouts.items()
        if any(source.estimates for source in layout.sources)
    }
    places = [name for name, labels in layouts.items() if labels and labels <= {*_PLACES}]
    places.sort(key=lambda name: (not name.endswith(PLACES), len(name), name))
    if not places:
        return None
    chosen = sums.published.layouts[places[0]]
    hours = [
        name
        for name, labels in layouts.items()
        if labels - {*_TIMES} == layouts[places[0]] and labels & {*_TIMES}
        and sums.published.layouts[name].unit == chosen.unit
    ]  # fmt: skip
    hours.sort(key=lambda name: ("slot" in layouts[name], name))
    return PlaceTables(sums, chosen, sums.published.layouts[hours[0]] if hours else None)


def _rows(sums: Sums, table: Layout) -> Iterator[PlaceRow]:
    rows = sums.published.rows(table.name)
    if TAP in rows.column_names:
        rows = where(rows, {TAP: "on"})
    names = [name for name in labels_of(rows.column_names) if name in _PLACES]
    for row in as_texts(rows):
        value, low, high, unbiased, deviation = (
            float(row[name]) if row.get(name) else None
            for name in (VALUE, "low_95", "high_95", "unbiased", "unbiased_sd")
        )
        yield PlaceRow(
            mode=row.get(MODE, ""),
            place=" / ".join(row[name] for name in names),
            day=row.get(DAY, ""),
            slot=next((row[name] for name in _TIMES if name in row), ""),
            value=value,
            low=low,
            high=high,
            unbiased=None if unbiased is None or deviation is None else (unbiased, deviation),
            said=row,
        )
