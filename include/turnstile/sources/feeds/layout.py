"""What a feed's module has to say: which columns it reads, and the SQL to canonical rows.

A further feed is one more module with a `FeedLayout`, under the feed's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from turnstile.duckdb_engine import name, text
from turnstile.errors import ProgrammeError
from turnstile.measures.registry import OF_SPEEDS
from turnstile.programme.fields import categories
from turnstile.programme.source_spec import (
    DecimalMark,
    DelayUnit,
    Feed,
    FileSpec,
    RowShape,
    SourceSpec,
    WithoutCard,
)
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.made_records import Record
from turnstile.sources.feeds.stop_approaches import COLUMNS as COLUMNS_OF_TRIP
from turnstile.sources.ingest.canonical import (
    FIRST_BATCH,
    FROM_TIMETABLE,
    carried_names,
    columns_of,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows later than this after a week's end come from a wrong clock, not from a file of several weeks.
_WRONG_CLOCK_AFTER = timedelta(days=31)
_TRIP, _A_DAY_S = "trip", 86_400
_SECONDS_LATE = dict(zip(DelayUnit, (1, 60, -1, -60), strict=True))
NO_CARD = " without card "
"""How the name of a row begins that is a unit of its own: no id begins with a blank."""
NUMBERS = ("latitude", "longitude", "end_latitude", "end_longitude", "speed", "delay")
INSTANTS = ("tapped_at", "observed_at", "ended_at")


class ColumnMissing(LookupError):  # noqa: N818 - a finding of a layout, reported as InputError by ingest
    """A file lacks a column that the feed needs: the first argument; others would do, together."""

    def __str__(self) -> str:
        """Say which columns would do."""
        column, *instead = self.args
        return f"{column} (or {' and '.join(instead)})" if instead else str(column)


# columns of a file and the name in the source of each field -> SQL of each field as text
FieldsOf = Callable[[frozenset[str], Mapping[str, str]], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Joined:
    """What became of records when those of one trip were put together.

    Args:
        duplicates: records that came twice.
        joined: records that are now part of another one's row.
        added: rows beyond the first of records that count several passengers.
        unnamed: of the duplicates, those that no id of their own tells from other records.
    """

    duplicates: int
    joined: int
    added: int = 0
    unnamed: int = 0


@dataclass(frozen=True, slots=True)
class Joining:
    """How a feed puts records together once all files are read: several of a row, or equal ones.

    Args:
        columns: pairs (name, type) that `typed_sql` gives beside the canonical ones.
        join: turns the table `staged` from records to rows, each there once.
        numbers: SELECT from `staged`, before that, of how the numbers of each gate go on.
    """

    columns: tuple[tuple[str, str], ...]
    join: Callable[[DuckDBPyConnection], Joined]
    numbers: str = ""


@dataclass(frozen=True, slots=True)
class FeedLayout:
    """One feed.

    Args:
        shape: canonical rows that it becomes.
        names: pairs (field, its usual column name); the fields that `source.columns` may rename.
        fields_of: SQL of each field over a file's text columns; raises `ColumnMissing`.
        typed_sql: SELECT from `raw` (the fields) of canonical columns, `broken_rule` and `fields`,
            the row as it came, for the quarantine.
        made: raw records of a `MadeTrip` or a `MadeReading`, whichever the shape; of a programme
            and the column names of the fields. The canaries of a release are made by it.
        joining: for a feed in which a row is several records.
        other_columns: columns beside those of the names that a record may have in their place.
        composed: what rows may be asked to carry that `typed_sql` makes of these fields; of an id
            the fields any of which may be it.
        spellings: the columns any of which may hold what a name of a field stands for.
    """

    shape: RowShape
    names: tuple[tuple[str, str], ...]
    fields_of: FieldsOf
    typed_sql: Callable[[Programme, ServicePeriod], str]
    made: Callable[[Any, Programme, Mapping[str, str]], list[Record]]
    joining: Joining | None = None
    other_columns: Callable[[Mapping[str, str]], tuple[str, ...]] = lambda _: ()
    composed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spellings: Callable[[str], tuple[str, ...]] = lambda name: (name,)

    def columns_of(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """Return every column that a record may have, each once."""
        return tuple(dict.fromkeys((*names.values(), *self.other_columns(names))))

    def staged_columns(self, programme: Programme) -> tuple[tuple[str, str], ...]:
        """Return pairs (name, type) of what a record is staged as: what rows do not have alike."""
        joined_columns = self.joining.columns if self.joining else ()
        of_trip = COLUMNS_OF_TRIP if programme.source.timetable else ()
        every = (*columns_of(self.shape, programme.carried), *joined_columns, *of_trip)
        same = dict(self.same_for_all(programme))
        return tuple(column for column in every if column[0] not in same)

    def same_for_all(self, programme: Programme) -> tuple[tuple[str, str], ...]:
        """Return pairs (name, value) of the canonical columns that every row has alike."""
        mode = (("mode", programme.source.modes[0]),) if self.shape is RowShape.TELEMETRY else ()
        return (*mode, ("batch", FIRST_BATCH))


def names_in_source(layout: FeedLayout, programme: Programme) -> dict[str, str]:
    """Return the column name of each field, the programme's own names included.

    Raises:
        ProgrammeError: `source.columns` renames a field that the feed does not have, or names one
            column for both ends of a gate.
    """
    source = programme.source
    names = {name: name for name in _of_columns(layout, programme.carried)} | dict(layout.names)
    without_list = {category.name for category in categories(layout.shape)} - {*names}
    for field_name, column in source.columns:
        if (
            field_name in without_list
        ):  # is named here, and read once a public list names its values
            continue
        if field_name not in names:
            rule = f"{field_name!r} is no field of {source.feed}; it has {', '.join(names)}"
            raise ProgrammeError(where="programme", field="source.columns", rule=rule)
        names[field_name] = column
    require_two_ends(names)
    return names


def require_two_ends(names: Mapping[str, str]) -> None:
    """Refuse one column for who goes in and who comes out; gate and place may share theirs.

    Raises:
        ProgrammeError: these names do.
    """
    if "exits" in names and names["entries"] == names["exits"]:
        rule = "one column is named for entries and for exits, so that each entry would be an "
        rule += "alighting too; name a column for each (docs/FEEDS.md says what to do without one)"
        raise ProgrammeError(where="programme", field="source.columns", rule=rule)


def fields_in(
    layout: FeedLayout, columns: frozenset[str], names: Mapping[str, str], programme: Programme
) -> tuple[tuple[str, str], ...]:
    """Return SQL of each field of a feed, and of what rows are asked to carry.

    Raises:
        ColumnMissing: the file lacks a column that the feed needs, or that is asked for; also that
            of actions, modes or status, where it is named and nothing says what holds without it.
    """
    for name_of in programme.carried:
        by_timetable = programme.source.timetable and name_of in FROM_TIMETABLE
        components = (_TRIP,) if by_timetable else layout.composed.get(name_of, (name_of,))
        for needed in components:
            if not columns & {*layout.spellings(names[needed])}:
                raise ColumnMissing(names[needed])
    source = programme.source
    without = {"action": source.without_action, "mode": source.without_mode, "status": None}
    for unsaid, said in without.items():
        column = dict(source.columns).get(unsaid)
        if column and column not in columns and said is None:
            raise ColumnMissing(column)  # else each tap-off would be a tap-on, each train a bus
    if names.get("passengers", "") not in {"", *columns} and source.without_count is None:
        raise ColumnMissing(names["passengers"])  # else each event would be one passenger
    as_columns = _of_columns(layout, programme.carried)
    rest = {field: column for field, column in names.items() if field not in as_columns}
    return (*layout.fields_of(columns, rest), *if_there(columns, names, as_columns))


def _of_columns(layout: FeedLayout, carried: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is carried that is one column of the source."""
    names = carried_names(layout.shape, carried)
    return tuple(n for n in names if n not in layout.composed and n not in FROM_TIMETABLE)


def carried_sql(programme: Programme) -> str:
    """Return SQL of the canonical columns that need no reading: categories, each with a comma."""
    carried = carried_names(programme.source.feed.shape, programme.listed)
    later = () if programme.source.feed.names_stops else FROM_TIMETABLE
    return "".join(f"NULL AS {name}, " if name in later else f"{name}, " for name in carried)


def require_columns(
    columns: frozenset[str], names: Mapping[str, str], fields: tuple[str, ...]
) -> None:
    """Refuse a file without the column of one of these fields.

    Raises:
        ColumnMissing: the file lacks one of them.
    """
    for needed in fields:
        if names[needed] not in columns:
            raise ColumnMissing(names[needed])


def plain_fields(
    columns: frozenset[str], names: Mapping[str, str], fields: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the fields of columns that a file has to have.

    Raises:
        ColumnMissing: the file lacks one of them.
    """
    require_columns(columns, names, fields)
    return if_there(columns, names, fields)


def if_there(
    columns: frozenset[str], names: Mapping[str, str], fields: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the fields of columns that a file may lack; NULL where it does."""
    return tuple(
        (field, name(names[field]) if names[field] in columns else "CAST(NULL AS VARCHAR)")
        for field in fields
    )


def as_usual(field: str, sql: str, spec: FileSpec) -> str:
    """Return SQL of a field as it is usually written: decimals behind a point, an instant as text.

    Args:
        field: of a record.
        sql: of its text.
        spec: how files are written.
    """
    if field in NUMBERS and spec.decimal is DecimalMark.COMMA:
        return f"replace({sql}, ',', '.')"
    if field in INSTANTS and spec.times.of_second:
        units = f"floor(TRY_CAST({sql} AS DECIMAL(38, 9)))"  # not rounded
        seconds = f"TRY_CAST({units} AS BIGINT) // {spec.times.of_second}"
        # a number beyond all years is no instant, and nothing else
        return f"TRY(strftime(make_timestamp({seconds} * 1000000), '%Y-%m-%dT%H:%M:%SZ'))"
    return sql


def as_it_came(fields: tuple[str, ...]) -> str:
    """Return SQL of a row's fields as JSON text."""
    pairs = ", ".join(f"{text(field)}, {name(field)}" for field in fields)
    return f"CAST(json_object({pairs}) AS VARCHAR)"


def set_aside(fields: tuple[str, ...]) -> str:
    """Return SQL of a row's fields as JSON text, for rows that break a rule only.

    It stands in a SELECT behind `broken_rule`: most rows break none and pay nothing.
    """
    return f"CASE WHEN broken_rule IS NOT NULL THEN {as_it_came(fields)} END"


def unit_sql(programme: Programme, fields: tuple[str, ...]) -> str:
    """Return SQL of the card that bounds a row's contribution; NULL where a row has none.

    A row without a card that is a unit of its own is named by the digest of its fields, so that it
    has the same name in every file, order and retry, and no card has it. Rows that are equal in
    all fields cannot be distinguished from one that came twice and count once, as with cards.

    Args:
        programme: says what happens to rows without a card, and which categories rows carry.
        fields: columns that are the row as it came, `card_id` among them.
    """
    if programme.source.without_card is WithoutCard.DROP:
        return "card_id"
    no_card = f"'{NO_CARD}' || sha256({as_it_came(fields + programme.listed)})"
    return f"coalesce(card_id, {no_card})"


def mode_sql(source: SourceSpec) -> str:
    """Return SQL of the mode that a source's own name stands for, or the usual one without a name.

    Other names stay as they are.
    """
    branches = " ".join(
        f"WHEN {text(source_name)} THEN {text(mode)}" for source_name, mode in source.mode_names
    )
    named = f"CASE mode {branches} ELSE mode END" if branches else "mode"
    return f"coalesce({named}, {text(source.usual_mode) if source.usual_mode else 'NULL'})"


def reads_speeds(programme: Programme) -> bool:
    """Return whether speeds are read: of feeds that may state none, where a table measures them."""
    measured = any(table.measure in OF_SPEEDS for table in programme.tables)
    return measured or programme.source.feed not in (Feed.HFP, Feed.SIRI_VM)


def delay_sql(source: SourceSpec) -> str:
    """Return SQL of the seconds of the column `delay`, a day at most; NULL of no number."""
    seconds = f"{_SECONDS_LATE[source.delay_unit or DelayUnit.SECONDS]} * TRY_CAST(delay AS DOUBLE)"
    within = f"CAST(round(greatest(-{_A_DAY_S}, least({_A_DAY_S}, {seconds}))) AS BIGINT)"
    return f"CASE WHEN isfinite({seconds}) THEN {within} END"


def week_rules(day: str, programme: Programme, week: ServicePeriod) -> str:
    """Return SQL branches (`WHEN ... THEN rule`) for rows that are not of a week.

    Args:
        day: SQL of the service day.
        programme: says which days have no service; their rows are not read.
        week: week that is read.
    """
    last = week.days[-1]
    absent = sorted(set(week.days) - set(programme.days_of(week)))
    is_absent = "".join(f" OR {day} = DATE '{absent_day}'" for absent_day in absent)
    return (
        f"WHEN {day} > DATE '{last + _WRONG_CLOCK_AFTER}' THEN 'future_date' "
        f"WHEN {day} < DATE '{week.first_day}' OR {day} > DATE '{last}'{is_absent} "
        "THEN 'outside_week'"
    )
