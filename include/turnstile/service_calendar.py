"""Service days, weeks and slots in an agency's own time zone.

Time of day is never read here: a week is asked for by name, from a run or a command. A service day
is the calendar day in the agency's time zone; a slot is a stretch of that day's clock, so a day of
a daylight-saving change keeps its slots (one of them empty, or twice as full).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from turnstile.errors import InputError

_ISO_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
_CLOCK = re.compile(r"([0-9]{2}):([0-5][0-9])(?::00)?")
_DAYS_RANGE = re.compile(r"([12][0-9]{3}-[0-9]{2}-[0-9]{2})\.\.([12][0-9]{3}-[0-9]{2}-[0-9]{2})")
_YEARS = (1900, 2999)
DAYS_PER_WEEK, SATURDAY = 7, 5  # as date.weekday() counts
MINUTES_PER_DAY = 1440


@dataclass(frozen=True, slots=True, order=True)
class ServiceWeek:
    """Seven service days from a Monday on, named as in ISO 8601 (`2016-W30`)."""

    iso_year: int
    iso_week: int

    def __post_init__(self) -> None:
        """Refuse a week that the ISO calendar does not have.

        Raises:
            ValueError: no such week.
        """
        date.fromisocalendar(self.iso_year, self.iso_week, 1)

    @classmethod
    def parse(cls, text: str, *, where: str = "--week") -> ServiceWeek:
        """Read `2016-W30`.

        Raises:
            InputError: the text is not an ISO week of a possible year.
        """
        match = _ISO_WEEK.fullmatch(text)
        rule = f"{text!r} is not an ISO week; write 2016-W30"
        if match is not None and not _YEARS[0] <= int(match[1]) <= _YEARS[1]:
            rule = f"{text!r}: a year has to lie between {_YEARS[0]} and {_YEARS[1]}"
        elif match is not None:
            with suppress(ValueError):
                return cls(int(match[1]), int(match[2]))
            rule = f"{text!r} is not an ISO week: a year has 52, some have 53"
        raise InputError(where=where, field="week", rule=rule)

    @classmethod
    def containing(cls, day: date) -> ServiceWeek:
        """Name the week that a service day belongs to."""
        iso = day.isocalendar()
        return cls(iso.year, iso.week)

    @property
    def monday(self) -> date:
        """First service day."""
        return date.fromisocalendar(self.iso_year, self.iso_week, 1)

    @property
    def first_day(self) -> date:
        """First service day."""
        return self.monday

    @property
    def days(self) -> tuple[date, ...]:
        """Return the seven service days in order."""
        return tuple(self.monday + timedelta(days=n) for n in range(DAYS_PER_WEEK))

    @property
    def weeks(self) -> tuple[ServiceWeek, ...]:
        """Weeks that this period touches: itself."""
        return (self,)

    def plus(self, weeks: int) -> ServiceWeek:
        """Return the week that lies so many weeks later (earlier, if negative)."""
        return ServiceWeek.containing(self.monday + timedelta(weeks=weeks))

    def ends_at(self, zone: ZoneInfo) -> datetime:
        """Instant at which the last service day is over, in UTC."""
        midnight = datetime.combine(self.monday + timedelta(weeks=1), time(), zone)
        return midnight.astimezone(UTC)

    def __str__(self) -> str:
        """Name of the week, `2016-W30`."""
        return f"{self.iso_year:04d}-W{self.iso_week:02d}"


@dataclass(frozen=True, slots=True, order=True)
class ServiceDays:
    """Service days in a row, of any number: a month, say, named `2021-11-15..2021-12-15`.

    Args:
        first_day: first service day.
        last_day: last service day, included.
    """

    first_day: date
    last_day: date

    def __post_init__(self) -> None:
        """Refuse days that run backwards.

        Raises:
            ValueError: the last day lies before the first.
        """
        if self.last_day < self.first_day:
            raise ValueError("the last service day lies before the first")

    @property
    def days(self) -> tuple[date, ...]:
        """Return the service days in order."""
        count = (self.last_day - self.first_day).days + 1
        return tuple(self.first_day + timedelta(days=n) for n in range(count))

    @property
    def weeks(self) -> tuple[ServiceWeek, ...]:
        """Weeks that these days touch, in order."""
        return tuple(sorted({ServiceWeek.containing(day) for day in self.days}))

    def plus(self, periods: int) -> ServiceDays:
        """Return the equally long period that lies so many periods later."""
        shift = timedelta(days=periods * len(self.days))
        return ServiceDays(self.first_day + shift, self.last_day + shift)

    def ends_at(self, zone: ZoneInfo) -> datetime:
        """Instant at which the last service day is over, in UTC."""
        midnight = datetime.combine(self.last_day + timedelta(days=1), time(), zone)
        return midnight.astimezone(UTC)

    def __str__(self) -> str:
        """Name of the period, `2021-11-15..2021-12-15`."""
        return f"{self.first_day}..{self.last_day}"


ServicePeriod = ServiceWeek | ServiceDays


def parse_period(text: str, *, where: str = "--week") -> ServicePeriod:
    """Read an ISO week, or service days `2021-11-15..2021-12-15` with both ends included.

    Raises:
        InputError: neither of the two.

    Examples:
        >>> len(parse_period("2021-11-15..2021-12-15").days)
        31
    """
    match = _DAYS_RANGE.fullmatch(text)
    if match is None:
        return ServiceWeek.parse(text, where=where)
    try:
        return ServiceDays(date.fromisoformat(match[1]), date.fromisoformat(match[2]))
    except ValueError:
        rule = f"{text!r} is no range of service days; write 2021-11-15..2021-12-15"
        raise InputError(where=where, field="period", rule=rule) from None


def is_period(text: str) -> bool:
    """Return whether a text names a period; entries of a ledger may hold others, for ever."""
    try:
        parse_period(text)
    except InputError:
        return False
    return True


def zone_named(name: str, *, where: str) -> ZoneInfo:
    """Look up an IANA time zone.

    Raises:
        InputError: the tz database has no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        rule = f"{name!r} is no IANA time zone; write for example Australia/Sydney"
        raise InputError(where=where, field="time.zone", rule=rule) from None


def minute_of(label: str) -> int:
    """Return minutes after midnight of `HH:MM`; hours of the next day go on from 24.

    Raises:
        ValueError: the text has another form, an offset, or seconds other than 00.

    Examples:
        >>> minute_of("05:15"), minute_of("24:10")
        (315, 1450)
    """
    match = _CLOCK.fullmatch(label)
    if match is None:
        raise ValueError(label)
    return int(match[1]) * 60 + int(match[2])
