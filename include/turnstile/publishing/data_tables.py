"""The tables of a package: one a grain, each with the number to use, its interval and its origin.

What was drawn, what least squares makes of it and what is estimated are rows of one table
(docs/PACKAGES.md; adr/0024). They are put together from the three parts that a release has under
embargo, and that packages of version 1 published as they were; so both versions read alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from turnstile.arrow_columns import column, dates, texts
from turnstile.estimates.error_bars import error_bar
from turnstile.estimates.intervals import LEVELS
from turnstile.estimates.table_names import BESIDE_MEANS, DAILY, HOURLY, OF_COUNTS, OF_MEANS, ROWS
from turnstile.estimates.usable import GRADES, grades
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.noise import normal_half_width
from turnstile.programme.field import Role
from turnstile.programme.field_registry import field_of

Floats = NDArray[np.float64]
Columns = Mapping[str, Mapping[str, Sequence[str]]]
Read = Callable[[str, str], pa.Table]

MEASURED, UNBIASED, ESTIMATES = "measurements", "tables", "estimates"
PARTS = (ESTIMATES, UNBIASED, MEASURED)
TAP, DAY, MODE = "tap", "service_date", "mode"
VALUE, USABLE = "value", "usable"
ENDS = tuple(f"{end}_{level}" for level in LEVELS for end in ("low", "high"))
NUMBERS = (VALUE, *ENDS, USABLE, "unbiased", "unbiased_sd", "measured")
TRIPS, BUSES = ("trips counted", "trips"), ("buses", "buses a day")
_OLD_NAMES = {"reconciled": "estimate"}  # as version 0.1.0 called it
_SIDES = {"tap_on_": "on", "tap_off_": "off", "boarding_": "on", "alighting_": "off"}
_MEAN = re.compile(r"mean_([a-z]+)_(kmh|minutes)")
_UNITS = {"kmh": "km/h", "minutes": "minutes"}
_DEVIATION = "standard_deviation"
_FAR = 3.0  # standard deviations above a threshold, where it decides next to nothing
_COARSE = 1.0  # standard deviation from which tenths are enough


@dataclass(frozen=True, slots=True)
class Source:
    """Where some rows of a table come from.

    Args:
        where: labels that tell them from the table's others, such as `{"tap": "on"}`.
        estimates: what the card's record of estimates calls them; empty if there are none.
        unbiased: what the plan's unbiased numbers are called, a drawn table or a roll-up of one.
        table: drawn table whose numbers they hold as `measured`; empty where none were drawn.
        statistic: of that table.
    """

    where: Mapping[str, str] = field(default_factory=dict)
    estimates: str = ""
    unbiased: str = ""
    table: str = ""
    statistic: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """One table of a package.

    Args:
        name: of its file.
        what: its value is.
        unit: of its value.
        sources: of its rows.
        measured_unit: of its numbers as drawn; empty where none were.
    """

    name: str
    what: str
    unit: str
    sources: tuple[Source, ...]
    measured_unit: str

    @property
    def is_count(self) -> bool:
        """Whether its values count trips."""
        return self.unit == TRIPS[1]

    @property
    def is_mean(self) -> bool:
        """Whether its values are means, which do not add up."""
        return self.what.startswith("mean")

    def unit_of(self, column: str) -> str:
        """Return the unit of a column of numbers of this table."""
        return self.measured_unit if column == "measured" else self.unit

    def record(self) -> dict[str, Any]:
        """Return plain values for the release card."""
        sources = [
            {
                "where": dict(source.where),
                "estimates": source.estimates,
                "unbiased": source.unbiased,
            }
            | ({"draw": f"{source.table}/{source.statistic}"} if source.table else {})
            for source in self.sources
        ]
        units = {"unit": self.unit, "measured_unit": self.measured_unit}
        return {"name": self.name, "what": self.what, **units, "sources": sources}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Layout:
        """Return the layout that a release card states."""
        sources = []
        for entry in record["sources"]:
            table, _, statistic = entry.get("draw", "").partition("/")
            named = (entry["estimates"], entry["unbiased"])
            sources.append(Source(entry["where"], *named, table, statistic))
        told = (record["name"], record["what"], record["unit"])
        return cls(*told, tuple(sources), record.get("measured_unit", ""))


@dataclass(frozen=True, slots=True)
class Week:
    """What of a release decides how its parts are read.

    Args:
        events: its draws.
        gaps: service days without input.
        days: how many service days have input.
    """

    events: tuple[DrawEvent, ...]
    gaps: tuple[date, ...]
    days: int

    @property
    def draws(self) -> Mapping[tuple[str, str], DrawEvent]:
        """One draw of each table and statistic."""
        return {(event.table, event.statistic): event for event in one_of_each_label(self.events)}


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one source, and the columns of the parts that they are made from.

    Args:
        source: that they are of.
        what: of the value, and its unit.
        number: column of the unbiased number, and of its error; empty if there is none.
        ends: how its columns of intervals end.
        limit: column and value of the limit that the rows are about.
    """

    source: Source
    what: tuple[str, str]
    number: str = ""
    error: str = ""
    ends: str = ""
    limit: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Named:
    """A piece, and the table of the package that it is in.

    Args:
        grain: name of that table.
        drawn: table that the piece is made from.
        piece: of it.
        is_of_grain: whether the table is called by its labels, so that both taps are in it.
    """

    grain: str
    drawn: str
    piece: _Piece
    is_of_grain: bool = False


def labels_of(names: Sequence[str]) -> list[str]:
    """Return the columns that say where, when or what a row is of."""
    labels = []
    for name in names:
        known = field_of(name)
        if known is not None and known.role in (Role.KEY, Role.DIMENSION):
            labels.append(name)
    return labels


def layouts(columns: Columns, events: Sequence[DrawEvent]) -> dict[str, Layout]:
    """Return the tables that the parts of a release make, by name, coarse grains first.

    Args:
        columns: of each table of each part.
        events: draws of the plan.
    """
    steps = {(event.table, event.statistic): event.step for event in events}
    made = {}
    for name, pieces in _grains(columns, events).items():
        what, unit = pieces[0].what
        sources = tuple(piece.source for piece in pieces)
        made[name] = Layout(name, what, unit, sources, _measured_unit(sources, unit, steps))
    return made


def _measured_unit(
    sources: Sequence[Source], unit: str, steps: Mapping[tuple[str, str], int]
) -> str:
    """Return the unit of numbers as drawn; empty where none were."""
    drawn = next((source for source in sources if source.table), None)
    if drawn is None:
        return ""
    if (step := steps.get((drawn.table, drawn.statistic), 1)) > 1:
        return f"1/{step} {unit}, parts of earlier weeks among them"
    known = field_of(drawn.statistic)
    return f"0.1 {unit}" if drawn.statistic == "sum" else known.unit if known else ""


def rows_of(name: str, columns: Columns, read: Read, week: Week) -> pa.Table:
    """Return the rows of a table, in the order of the public cells, labels first.

    Args:
        name: of a layout of these parts.
        columns: of each table of each part.
        read: returns a table of a part.
        week: whose parts they are.
    """
    pieces = _grains(columns, week.events)[name]
    if not pieces[0].number and not pieces[0].source.table and not pieces[0].source.estimates:
        return read(UNBIASED, name)  # rows of the source's own form: labels alone
    parts = [_rows(piece, read, week) for piece in pieces]
    names = list(dict.fromkeys(name for part in parts for name in part.column_names))
    names.sort(key=lambda name: NUMBERS.index(name) if name in NUMBERS else -1)
    extra = [name for name in names if name not in NUMBERS and name not in labels_of(names)]
    names = [name for name in names if name not in extra] + extra
    whole = pa.concat_tables(parts, promote_options="default").unify_dictionaries().select(names)
    if len(parts) == 1:
        return whole.combine_chunks()
    return whole.take(_order(whole, [len(part) for part in parts])).combine_chunks()


def _order(rows: pa.Table, sizes: Sequence[int]) -> pa.Array:
    """Return the order by day, mode, tap and place; rows of limits stand beside each other."""
    source = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    keys = [source, place] if TAP not in rows.column_names else [place, source]
    if MODE in rows.column_names:
        modes = rows[MODE].combine_chunks().cast(pa.string())
        keys.append(modes.dictionary_encode().indices.to_numpy())
    if DAY in rows.column_names:
        keys.append(rows[DAY].cast(pa.int32()).to_numpy())
    return column(np.lexsort(keys))


def _grains(columns: Columns, events: Sequence[DrawEvent]) -> dict[str, list[_Piece]]:
    """Return the pieces of each table by its name; a tap's number is drawn where it can be."""
    grains: dict[str, list[_Piece]] = {}
    for named in _named(columns, events):
        beside = grains.setdefault(named.grain, [])
        same = [
            candidate for candidate in beside if candidate.source.where == named.piece.source.where
        ]
        if not same:
            beside.append(named.piece)
        elif named.piece.source.table and not same[0].source.table:
            beside[beside.index(same[0])] = named.piece
    for pieces in grains.values():
        pieces.sort(
            key=lambda candidate: candidate.source.where.get(TAP) == "off"
        )  # a trip begins with on
    return {name: grains[name] for name in sorted(grains, key=lambda n: (n.count("_"), n))}


def _named(columns: Columns, events: Sequence[DrawEvent]) -> Iterator[_Named]:
    """Yield every piece of every drawn table with the name of the table that it is in."""
    separate_tables = {event.table for event in events if event.own_records}
    for drawn in columns[MEASURED]:
        _, sides = stripped(_labels(drawn, columns))
        for name, piece in _pieces(drawn, columns):
            if len(sides) != 1 or not (
                piece.number or piece.source.table or piece.source.estimates
            ):
                yield _Named(name, drawn, piece)
                continue
            labels, _ = stripped(_labels(name, columns))
            where = {TAP: sides[0], **piece.source.where}
            own_piece = replace(piece, source=replace(piece.source, where=where))
            if drawn not in separate_tables and piece.number != "count":
                grain = _name(labels, is_hourly=name.endswith(HOURLY))
                yield _Named(grain, drawn, own_piece, is_of_grain=True)
            else:
                yield _Named(name, drawn, own_piece)


def clashes(columns: Columns, events: Sequence[DrawEvent]) -> Iterator[tuple[str, list[str]]]:
    """Yield names of tables in which rows of several drawn tables would lie over each other.

    Args:
        columns: of each table of each part.
        events: draws of the plan.
    """
    by_grain: dict[str, list[_Named]] = {}
    for named in _named(columns, events):
        by_grain.setdefault(named.grain, []).append(named)
    for grain, beside in by_grain.items():
        clashing = beside
        if all(named.is_of_grain for named in beside):  # a roll-up gives way to what was drawn
            clashing = [named for named in beside if named.piece.source.table]
            sides = {named.piece.source.where[TAP] for named in clashing}
            if len(clashing) == len(sides):
                continue
        if len(tables := list(dict.fromkeys(named.drawn for named in clashing))) > 1:
            yield grain, tables


def _labels(name: str, columns: Columns) -> list[str]:
    """Return the labels of a table of the parts."""
    return labels_of(next(columns[part][name] for part in PARTS if name in columns[part]))


def stripped(labels: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return labels without the end of the trip in their names, and which ends those are.

    Examples:
        >>> stripped(["mode", "tap_on_slot"])
        ({'mode': 'mode', 'tap_on_slot': 'slot'}, ['on'])
    """
    renamed, sides = {}, []
    for label in labels:
        prefix = next((side for side in _SIDES if label.startswith(side)), "")
        renamed[label] = label.removeprefix(prefix)
        sides += [_SIDES[prefix]] if prefix and _SIDES[prefix] not in sides else []
    if len(sides) != 1:
        return {label: label for label in labels}, sides
    return renamed, sides


def _name(labels: Mapping[str, str], *, is_hourly: bool) -> str:
    """Name a table of counts by its labels: place before time."""
    parts = [label for label in labels.values() if label not in (DAY, MODE)]
    parts.sort(key=lambda label: label == "slot")
    if not parts:
        return "day" if DAY in labels else "total"
    return "_".join("hour" if label == "slot" and is_hourly else label for label in parts)


def _pieces(drawn: str, columns: Columns) -> Iterator[tuple[str, _Piece]]:
    """Yield the tables that a drawn one makes, with the columns of their numbers."""
    statistics = [
        name
        for name in columns[MEASURED][drawn]
        if (known := field_of(name)) is not None and known.role is Role.MEASUREMENT
    ]
    if statistics == ["count"]:
        yield from _of_counts(drawn, columns)
    elif "buses" in statistics:
        yield from _of_buses(drawn, columns, is_mean="sum" in statistics)
    else:
        yield from _of_limits(drawn, columns, statistics)


def _of_counts(drawn: str, columns: Columns) -> Iterator[tuple[str, _Piece]]:
    """Yield a table of counts and its roll-ups; of ends of trips the coarsest is by day."""
    if _is_of_the_week(drawn, columns):  # flows: days as drawn, estimates of all of them together
        yield drawn, _Piece(Source({}, drawn), TRIPS, number="reconciled")
        daily = _Piece(Source({}, "", drawn, drawn, "count"), TRIPS, "reconciled", _DEVIATION)
        yield drawn + DAILY, daily
        return
    for suffix in OF_COUNTS:
        name = drawn + suffix
        presented = columns[UNBIASED].get(name)
        if presented is None and name not in columns[ESTIMATES] and suffix:
            continue
        known = ("reconciled", _OLD_NAMES["reconciled"], "count")
        number = next((candidate for candidate in known if candidate in (presented or ())), "")
        named = (_if_there(columns, name), name if number else "")
        source = Source({}, *named, *((drawn, "count") if not suffix else ()))
        yield name, _Piece(source, TRIPS, number, _DEVIATION)
    if (rows := drawn + ROWS) in columns[UNBIASED]:
        yield rows, _Piece(Source(), TRIPS)


def _is_of_the_week(drawn: str, columns: Columns) -> bool:
    """Whether estimates are of a week whose days were drawn apart."""
    estimates = columns[ESTIMATES].get(drawn)
    return estimates is not None and DAY in columns[MEASURED][drawn] and DAY not in estimates


def _of_buses(drawn: str, columns: Columns, *, is_mean: bool) -> Iterator[tuple[str, _Piece]]:
    """Yield means or headways, and the buses that they are of."""
    presented = columns[UNBIASED].get(drawn, ())
    mean = next((match for match in map(_MEAN.fullmatch, presented) if match), None)
    shown, counted = "", drawn
    if mean is not None:
        what, unit = f"mean {mean[1]} of buses", mean[2]
        shown, number, error = mean[0], mean[0], f"standard_deviation_{mean[2]}"
    elif "headway_minutes" in presented:
        what, unit, shown, number, error = "mean headway", "minutes", drawn, "headway_minutes", ""
    if shown:
        counted = drawn + BESIDE_MEANS
        estimates = _if_there(columns, drawn) if is_mean else ""
        source = Source({}, estimates, drawn, *((drawn, "sum") if is_mean else ()))
        said = (what, _UNITS[unit])
        yield drawn, _Piece(source, said, number, error, f"_{unit}")
        for suffix in OF_MEANS:
            if (name := drawn + suffix) in columns[ESTIMATES]:
                yield name, _Piece(Source({}, name), said)
    estimates = _if_there(columns, counted) or ("" if is_mean else _if_there(columns, drawn))
    yield counted, _Piece(Source({}, estimates, "", drawn, "buses"), BUSES)


def _of_limits(
    drawn: str, columns: Columns, statistics: Sequence[str]
) -> Iterator[tuple[str, _Piece]]:
    """Yield a stretch of rows for each limit."""
    for statistic in statistics:
        kind, _, value = statistic.partition("_")
        label = "limit_kmh" if kind == "over" else "occupancy_class"
        source = Source({label: value}, _if_there(columns, drawn), "", drawn, statistic)
        yield drawn, _Piece(source, ("buses above the limit", BUSES[1]), limit=(label, value))


def _if_there(columns: Columns, name: str) -> str:
    """Return the name of a table of estimates; empty if there is none."""
    return name if name in columns[ESTIMATES] else ""


def _rows(piece: _Piece, read: Read, week: Week) -> pa.Table:
    estimates = read(ESTIMATES, piece.source.estimates) if piece.source.estimates else None
    if estimates is not None and piece.limit is not None:
        label, value = piece.limit
        estimates = estimates.filter(pc.equal(estimates[label], int(value)))
    presented = read(UNBIASED, piece.source.unbiased) if piece.source.unbiased else None
    measured = read(MEASURED, piece.source.table) if piece.source.table else None
    labelled = next(part for part in (estimates, presented, measured) if part is not None)
    presented, measured = (_of_days(part, labelled) for part in (presented, measured))
    columns = _labels_and_side(labelled, piece)
    is_gap = np.zeros(len(labelled), dtype=np.bool_)
    if DAY in labelled.column_names:
        is_gap = pc.is_in(labelled[DAY].cast(pa.date32()), value_set=dates(week.gaps)).to_numpy()
    has_own = estimates is not None and not piece.source.unbiased and piece.number
    unbiased, error = _unbiased(piece, estimates if has_own else presented, measured, week)
    numbers = (
        _of_estimates(estimates)
        if estimates is not None
        else _of_unbiased(piece, unbiased, error, presented, week)
    )
    numbers = {name: np.where(is_gap, np.nan, values) for name, values in numbers.items()}
    ends = ("90", "95") if np.isfinite(numbers["high_90"]).any() else ("95", "95")
    codes = grades(numbers[VALUE], numbers[f"low_{ends[0]}"], numbers[f"high_{ends[0]}"], is_gap)
    columns |= {name: column(numbers[name]) for name in (VALUE, *ENDS)}
    columns[USABLE] = pa.DictionaryArray.from_arrays(column(codes), texts(list(GRADES)))
    if error is not None:
        columns["unbiased"] = column(np.where(is_gap, np.nan, _rounded(unbiased, error)))
        columns["unbiased_sd"] = column(np.where(is_gap, np.nan, error.round(4)))
    if measured is not None:
        columns["measured"] = measured[piece.source.statistic]
    if estimates is not None:
        columns |= {n: estimates[n] for n in estimates.column_names if _is_further(n)}
    return pa.table(columns)


def _of_days(part: pa.Table | None, labelled: pa.Table) -> pa.Table | None:
    """Return a part with a row for each label: of a day without service nothing was drawn."""
    if part is None or len(part) == len(labelled):
        return part
    has_row = pc.is_in(labelled[DAY], value_set=pc.unique(part[DAY])).to_numpy()
    places = np.cumsum(has_row) - 1
    return part.take(pa.array(places, mask=~has_row))


def _is_further(name: str) -> bool:
    """Whether a table of estimates says more in a column than every other does."""
    known = field_of(name)
    roles = (Role.ESTIMATE, Role.ERROR)
    named = ("estimate", "reconciled", _DEVIATION, *ENDS)
    return known is not None and known.role in roles and name not in named


def _labels_and_side(labelled: pa.Table, piece: _Piece) -> dict[str, Any]:
    """Return labels without the end of the trip in their names, and that as a column."""
    named = (piece.source.unbiased, piece.source.estimates)
    is_hourly = any(name.endswith(HOURLY) for name in named)
    limit = piece.limit[0] if piece.limit else ""
    names, columns = labels_of(labelled.column_names), dict[str, Any]()
    renamed, _ = stripped(names)
    side = piece.source.where.get(TAP)
    size = np.zeros(len(labelled), dtype=np.int8)
    for old, new in renamed.items():
        if old == limit:
            continue
        columns[new if not (new == "slot" and is_hourly) else "hour"] = labelled[old]
        if side is not None and old == _before_side(names):
            columns[TAP] = pa.DictionaryArray.from_arrays(column(size), texts([side]))
    if side is not None and TAP not in columns:
        tap = pa.DictionaryArray.from_arrays(column(size), texts([side]))
        columns = {TAP: tap, **columns}
    if piece.limit is not None:
        columns[limit] = column(np.full(len(labelled), int(piece.limit[1]), dtype=np.int64))
    return columns


def _before_side(names: Sequence[str]) -> str:
    """Return the last label that stands before the end of a trip: the mode, or the day."""
    return next((name for name in (MODE, DAY) if name in names), "")


def _unbiased(
    piece: _Piece, presented: pa.Table | None, measured: pa.Table | None, week: Week
) -> tuple[Floats, Floats | None]:
    """Return the unbiased numbers of rows with their errors; no error where there are none."""
    if presented is not None and piece.number and piece.number != "count":
        name = piece.error or _DEVIATION
        errors = _floats(presented, name) if name in presented.column_names else None
        return _floats(presented, piece.number), errors
    if presented is not None and piece.number:
        return _floats(presented, piece.number), None  # what a threshold let through
    if measured is None:
        return np.empty(0), None
    event = week.draws[piece.source.table, piece.source.statistic]
    divisor = 1 if piece.what == TRIPS else week.days
    drawn = _floats(measured, piece.source.statistic) / divisor
    deviation = error_bar(event).standard_deviation / divisor
    return drawn, np.full(drawn.shape, deviation)


def _of_estimates(estimates: pa.Table) -> dict[str, Floats]:
    """Return value and interval as they were estimated."""
    return {VALUE: _floats(estimates, "estimate")} | {n: _floats(estimates, n) for n in ENDS}


def _of_unbiased(
    piece: _Piece, unbiased: Floats, error: Floats | None, presented: pa.Table | None, week: Week
) -> dict[str, Floats]:
    """Return value and interval of numbers that nothing estimates, as their own noise says."""
    known = set() if presented is None else set(presented.column_names)
    numbers = {VALUE: unbiased if piece.ends or error is None else np.maximum(unbiased, 0)}
    key = piece.source.table, piece.source.statistic
    event = week.draws.get(key)
    for level in LEVELS:
        ends = [f"{end}_{level}{piece.ends}" for end in ("low", "high")]
        if presented is not None and ends[0] in known:
            low, high = (_floats(presented, end) for end in ends)
        elif piece.ends:
            low = high = np.full(unbiased.shape, np.nan)
        else:
            half = _half_width(piece, error, presented, level, event)
            low, high = unbiased - half, unbiased + half
            if error is not None:
                low, high = np.maximum(low, 0), np.maximum(high, 0)
        numbers |= {f"low_{level}": low, f"high_{level}": high}
    return {name: values.round(4) for name, values in numbers.items()}


def _half_width(
    piece: _Piece,
    error: Floats | None,
    presented: pa.Table | None,
    level: int,
    event: DrawEvent | None,
) -> Floats:
    """Return half-widths: as published, of the drawn noise, or of a sum of draws.

    Near a threshold large noise was let through and small noise was not: no interval holds there.
    """
    if presented is not None and f"half_width_{level}" in presented.column_names:
        return _floats(presented, f"half_width_{level}")
    if error is None and presented is not None and event is not None:
        deviation = _floats(presented, piece.error)
        least = (event.threshold or 0) + _FAR * deviation
        is_told = _floats(presented, piece.number) > least
        return np.where(is_told, _drawn_half(event, level), np.nan)
    if error is None:
        raise ValueError(f"{piece.source.unbiased}: a number without an error")
    if event is not None:
        bar = error_bar(event)
        return error / bar.standard_deviation * _drawn_half(event, level)
    return normal_half_width(error, level=level)


def _drawn_half(event: DrawEvent, level: int) -> float:
    """Return the half-width of a drawn number."""
    bar = error_bar(event)
    return float(bar.half_width_90 if level == LEVELS[0] else bar.half_width_95)


def _rounded(values: Floats, error: Floats) -> Floats:
    """Return numbers to what their noise leaves of them."""
    is_noisy = np.nanmin(error, initial=np.inf) >= _COARSE
    return values.round(1 if is_noisy else 4)


def _floats(table: pa.Table, name: str) -> Floats:
    """Return a column of numbers; what is absent is not a number."""
    values = table[name].cast(pa.float64())
    return np.asarray(values.combine_chunks().to_numpy(zero_copy_only=False))
