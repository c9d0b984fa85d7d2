"""Which service days of a period are stated as gaps: a public fact, decided here alone.

A gap is a day that the programme declares to be without service, or one without a file where every
file is named by a service day. Whether any row of a day is there, or survived, decides nothing:
then one person's trip would decide what a release says of the day (PRIVACY 9.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import PurePosixPath

from turnstile.errors import InputError
from turnstile.programme.source_spec import MissingDay, SourceSpec
from turnstile.service_calendar import ServicePeriod

_BESIDE = timedelta(days=1)  # the last night of a week may be delivered in two folders


def stated_gaps(
    source: SourceSpec, period: ServicePeriod, names: Iterable[str]
) -> tuple[date, ...]:
    """Return the service days that a release states as gaps, in order.

    Args:
        source: of the programme.
        period: released.
        names: of the delivered files, archives as such.
    """
    without = set(source.absent_days)
    if source.missing_day is MissingDay.PUBLISH_WITH_GAP:
        without.update(days_without_file(period, names))
    return tuple(day for day in period.days if day in without)


def has_no_day(source: SourceSpec, period: ServicePeriod, names: Iterable[str]) -> bool:
    """Return whether every service day of a period is stated as a gap."""
    return stated_gaps(source, period, names) == tuple(period.days)


def require_a_day(source: SourceSpec, period: ServicePeriod, names: Iterable[str]) -> None:
    """Refuse a period of gaps alone: it would be charged, and tell nothing.

    Raises:
        InputError: every service day of it is stated as a gap.
    """
    if has_no_day(source, period, names):
        rule = (
            f"no file is named by a day of {period} that has service, so every day would be a gap; "
            "name files by the day that they hold, and one of several days by none or two; a week "
            "without data is stated by turnstile ledger no-release KEY --reason TEXT"
        )
        raise InputError(where=source.landing, field="files", rule=rule)


def days_without_file(period: ServicePeriod, names: Iterable[str]) -> tuple[date, ...]:
    """Return the service days without a file, in order, where every file is named by one day.

    Where one of them is not, it may hold any day, and files tell of none that it is missing.

    Examples:
        >>> from turnstile.service_calendar import parse_period
        >>> week = parse_period("2016-W30")
        >>> [str(day) for day in days_without_file(week, (f"201607{n}.csv" for n in range(26, 32)))]
        ['2016-07-25']
        >>> days_without_file(week, ["2016-07-25.csv", "late.csv"])
        ()
    """
    first, last = period.weeks[0].monday - _BESIDE, period.weeks[-1].plus(1).monday
    around = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    named = [_day_in(PurePosixPath(name).name, around) for name in names]
    if None in named:
        return ()
    return tuple(day for day in period.days if day not in named)


def _day_in(name: str, days: Iterable[date]) -> date | None:
    """Return the one service day that a name holds."""
    named_days = {day for day in days if str(day) in name or str(day).replace("-", "") in name}
    return named_days.pop() if len(named_days) == 1 else None
