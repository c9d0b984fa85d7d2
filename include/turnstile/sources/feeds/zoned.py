"""SQL that turns timestamps of a feed into instants (UTC) and into the agency's own clock.

The engine's time zone functions are not used: the zone's few offsets around a week are written out
as a CASE, so the same SQL gives the same answer on every engine. Beyond `_MARGIN` days from the
week the offset of the nearest end is taken: such rows belong to no day of the week anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from turnstile.programme.source_spec import DateForm, SourceSpec
from turnstile.service_calendar import ServicePeriod

_MARGIN = timedelta(days=3)
_STEP = timedelta(minutes=15)  # offsets change on a quarter of an hour in every zone since 1970
# date, a `T` or a space, time, fraction, AM or PM, then `Z`, `UTC`, `+05:30`, `+0530`, `+05`, what
# the stated zone is called (`PDT`), or nothing (local)
_STAMP = (  # in which each character says which part it begins, at half the cost of another one
    r"^(\d{4}-\d\d?-\d\d?[T ]\d\d?:\d{2}(?::\d{2})?)(?:[.,]\d+)?[ \t\x{a0}\x{202f}]*"
    r"(?:([AaPp])\.?[ \x{a0}]?[Mm]\.?[ \t]*)?(Z|UTC|[+-]\d{2}(?::?\d{2})?%s)?$"
)
_HALF_DAYS = "['%Y-%m-%d %I:%M:%S%p', '%Y-%m-%d %I:%M%p']"
# how texts begin that are usual already, and all of most of these; # is a digit
_USUAL, _YEAR_FIRST, _PLAIN = (
    form.replace("#", "[0-9]")
    for form in ("####-##-##[T ]##:*", "####*", "####-##-##[T ]##:##:##*")
)
# Others of a year first are brought to that: other marks between, then none.
_AS_USUAL = (
    (r"^([0-9./-]+)(?:T|, )", r"\1 "),
    (r"^(\d{4})(?:/(\d\d?)/|\.(\d\d?)\.)(\d\d?)", r"\1-\2\3-\4"),
    (r"^(\d{4})(\d\d)(\d\d)", r"\1-\2-\3"),
    (r"^(\d{4}-\d\d-\d\d) ?(\d\d)(\d\d)(\d\d)(\D|$)", r"\1 \2:\3:\4\5"),
)
# Only a date that begins with a day or a month is read by what the programme says of dates.
_YEAR_LAST = r"^(\d\d?)(?:/(\d\d?)/|\.(\d\d?)\.|-(\d\d?)-)(\d{4})(?:T|,? |$)"
ORDERS = {DateForm.DAY_FIRST: r"\5-\2\3\4-\1 ", DateForm.MONTH_FIRST: r"\5-\1-\2\3\4 "}
_PLAIN_LENGTH = 19


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A change of a zone's offset: at which instant (naive UTC), and both offsets in minutes."""

    at_utc: datetime
    before_minutes: int
    after_minutes: int

    @property
    def is_fold(self) -> bool:
        """True if the clock goes back, so that a stretch of it is passed twice."""
        return self.after_minutes < self.before_minutes


def _offset_minutes(zone: ZoneInfo, instant: datetime) -> int:
    """Offset of a zone at an instant (naive UTC)."""
    offset = instant.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta()
    return int(offset.total_seconds()) // 60


@cache
def changes_around(zone: ZoneInfo, week: ServicePeriod) -> tuple[OffsetChange, ...]:
    """Return the changes of a zone's offset from three days before a week to three days after.

    Examples:
        >>> from turnstile.service_calendar import ServiceWeek
        >>> week = ServiceWeek(2015, 10)
        >>> [c.after_minutes for c in changes_around(ZoneInfo("America/Chicago"), week)]
        [-300]
    """
    at = datetime.combine(week.first_day, time()) - _MARGIN
    end = at + timedelta(days=len(week.days)) + 2 * _MARGIN
    changes = []
    before = _offset_minutes(zone, at)
    while at < end:
        at += _STEP
        after = _offset_minutes(zone, at)
        if after != before:
            changes.append(OffsetChange(at, before, after))
            before = after
    return tuple(changes)


def _offset_sql(zone: ZoneInfo, week: ServicePeriod, *, of_utc: str | None, of_local: str) -> str:
    """SQL for the offset in minutes, looked up by instant or by the local clock.

    A local time that is passed twice is taken as its first pass, one that is never passed as if
    the clock had not changed (PEP 495, fold=0).
    """
    changes = changes_around(zone, week)
    last = (
        changes[-1].after_minutes
        if changes
        else _offset_minutes(zone, datetime.combine(week.first_day, time()))
    )
    branches = []
    for change in changes:
        if of_utc is not None:
            limit, value = change.at_utc, of_utc
        else:
            shift = max(change.before_minutes, change.after_minutes)
            limit, value = change.at_utc + timedelta(minutes=shift), of_local
        branches.append(f"WHEN {value} < TIMESTAMP '{limit}' THEN {change.before_minutes}")
    return f"CASE {' '.join(branches)} ELSE {last} END" if branches else str(last)


@dataclass(frozen=True, slots=True)
class ServiceClock:
    """SQL of the service day and the minute after its midnight, of a wall clock time.

    Args:
        starts: minutes after midnight at which a service day begins.
    """

    starts: int

    def day(self, local: str) -> str:
        """SQL of the service day, DATE, of a TIMESTAMP."""
        return (
            f"CAST({local} - to_minutes({self.starts}) AS DATE)"
            if self.starts
            else (f"CAST({local} AS DATE)")
        )

    def minute(self, of_clock: str) -> str:
        """SQL of the minute after the service day's midnight, of the minute on the clock."""
        if not self.starts:
            return of_clock
        return f"({of_clock} + CASE WHEN {of_clock} < {self.starts} THEN 1440 ELSE 0 END)"

    def day_of(self, date: str, of_clock: str) -> str:
        """SQL of the service day of a date and a minute on its clock."""
        if not self.starts:
            return date
        # what would be before the engine's first day stays: it is no fault of the whole file
        return f"coalesce(TRY({date} - ({of_clock} < {self.starts})::INTEGER), {date})"


def stamped_sql(
    relation: str,
    column: str,
    zone: ZoneInfo,
    week: ServicePeriod,
    source: SourceSpec | None = None,
) -> str:
    """Return the SQL of a relation with two more columns, read from a text column of timestamps.

    They are `local`, the wall clock of the agency to the second, and `utc`, the instant; TIMESTAMP,
    and NULL for a text that is no timestamp. A stamp with an offset or `Z` is an instant; one
    without is of the zone that files are written in, else of the agency's own clock. Fractions of a
    second are dropped. What was read on the way stands in columns that begin with `stamp_`.

    Args:
        relation: SQL of the relation.
        column: SQL of the text.
        zone: the agency's time zone.
        week: week that is read, for the offsets.
        source: says how dates are written, and the zone of stamps without an offset.
    """
    written = source.written.zone if source else None
    names = {} if written is None else _names_of(written, week)
    stamp = _STAMP % "".join(f"|{name}" for name in names)
    read, is_local, told = "stamp_read", "stamp_is_local", "stamp_told"
    usual = _offsets(zone, week)
    from_instant = _offset_sql(zone, week, of_utc=read, of_local="")
    from_local = _offset_sql(written or zone, week, of_utc=None, of_local=read)
    utc = f"CASE WHEN {is_local} THEN {read} - to_minutes({from_local}) ELSE {read} END"
    local = f"CASE WHEN {is_local} THEN {read} ELSE {read} + to_minutes({from_instant}) END"
    if written is not None:
        local = f"{utc} + to_minutes({_offset_sql(zone, week, of_utc=f'({utc})', of_local='')})"
    exact_mark = "stamp_parts.mark"
    exact_clock = f"""CASE stamp_parts.half
        WHEN '' THEN TRY_CAST(stamp_parts.clock AS TIMESTAMP)
        ELSE TRY_STRPTIME(stamp_parts.clock || stamp_parts.half || 'M', {_HALF_DAYS}) END"""
    return f"""(
        SELECT *, {local} AS local, {utc} AS utc
        FROM (
            SELECT *, coalesce({told}, {exact_mark} = '') AS {is_local},
                CASE WHEN NOT {told}
                    THEN make_timestamp(epoch_us(TRY_CAST({column} AS TIMESTAMPTZ)))
                    WHEN {told} THEN TRY_CAST({column} AS TIMESTAMP)
                    ELSE {exact_clock} - to_minutes({_mark_minutes(exact_mark, names)})
                    END AS {read}
            FROM (
                SELECT *, CASE WHEN {told} IS NULL
                    THEN regexp_extract({_as_usual_sql(column, source)}, '{stamp}',
                        ['clock', 'half', 'mark']) END AS stamp_parts
                FROM (SELECT *, {_told_sql(column, usual)} AS {told} FROM {relation})
            )
        )
    )"""


def _told_sql(column: str, usual: tuple[int, ...]) -> str:
    """SQL of whether a plain text is local, or an instant; NULL of one that must be taken apart.

    Args:
        column: SQL of the text.
        usual: minutes of the offsets that are told by their text.
    """
    signs = (("-" if minutes < 0 else "+", *divmod(abs(minutes), 60)) for minutes in usual)
    marks = ("Z", *(f"{sign}{hours:02}:{minutes:02}" for sign, hours, minutes in signs))
    told = " ".join(
        f"WHEN strlen({column}) = {_PLAIN_LENGTH + len(mark)} AND suffix({column}, '{mark}') "
        "THEN false"
        for mark in reversed(marks)
    )
    return (
        f"CASE WHEN {column} GLOB '{_PLAIN}' THEN CASE {told} "
        f"WHEN strlen({column}) = {_PLAIN_LENGTH} THEN true END END"
    )


def _offsets(zone: ZoneInfo, week: ServicePeriod) -> tuple[int, ...]:
    """Return the minutes of the offsets that a zone has around a week."""
    changes = changes_around(zone, week)
    first = _offset_minutes(zone, datetime.combine(week.first_day, time()))
    return tuple(sorted({first, *(change.after_minutes for change in changes)}))


def _names_of(zone: ZoneInfo, week: ServicePeriod) -> dict[str, int]:
    """Return what a zone's clock is called around a week, and the minutes of its offset."""
    first = datetime.combine(week.first_day, time())
    at = (
        first,
        *(change.at_utc + _STEP * n for change in changes_around(zone, week) for n in (-1, 0)),
    )
    names = {moment.replace(tzinfo=UTC).astimezone(zone).tzname() or "": moment for moment in at}
    return {name: _offset_minutes(zone, moment) for name, moment in names.items() if name.isalpha()}


def _as_usual_sql(column: str, source: SourceSpec | None) -> str:
    """SQL of a text with its date and time as ISO 8601 has them, if it begins with such.

    Args:
        column: SQL of the text.
        source: says how a date is read that does not begin with a year.
    """
    year_first, order = column, ORDERS.get(source.date_form, r"\0") if source else r"\0"
    for pattern, usual in _AS_USUAL:
        year_first = f"regexp_replace({year_first}, '{pattern}', '{usual}')"
    return (
        f"CASE WHEN {column} GLOB '{_USUAL}' THEN {column} WHEN {column} GLOB '{_YEAR_FIRST}' "
        f"THEN {year_first} ELSE regexp_replace({column}, '{_YEAR_LAST}', '{order}') END"
    )


def day_sql(field: str, form: DateForm) -> str:
    """SQL of the date with which a text begins, if a day or a month comes first."""
    usual = f"regexp_replace({field}, '{_YEAR_LAST}.*', '{ORDERS[form]}')"
    return f"TRY_CAST(nullif({usual}, {field}) AS DATE)"


def dated_sql(field: str, source: SourceSpec) -> str:
    """SQL of a date in a column of its own: a year first, or as the programme says."""
    stated = [day_sql(field, source.date_form)] if source.date_form in ORDERS else []
    return f"coalesce({', '.join([*stated, f'TRY_CAST({field} AS DATE)'])})"


def _mark_minutes(mark: str, names: Mapping[str, int]) -> str:
    """SQL of the minutes of an offset as it is written, 0 for none."""
    called = " ".join(f"WHEN {mark} = '{name}' THEN {minutes}" for name, minutes in names.items())
    sign = f"CASE WHEN left({mark}, 1) = '-' THEN -1 ELSE 1 END"
    minutes = f"coalesce(TRY_CAST(nullif(right(replace({mark}, ':', ''), -3), '') AS INTEGER), 0)"
    return (
        f"CASE {called} WHEN {mark} IN ('Z', 'UTC', '') THEN 0 "
        f"ELSE {sign} * (60 * CAST(substr({mark}, 2, 2) AS INTEGER) + {minutes}) END"
    )
