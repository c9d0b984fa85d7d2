"""`days.csv` of a series: every service day, its public holiday, and what there is of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from turnstile.programme.domain.csv_text import csv_text
from turnstile.programme.domain.public_file import open_public_file, refuse
from turnstile.programme.spec import Programme
from turnstile.publishing.series.periods import Period

COLUMNS = ("service_date", "weekday", "holiday", "period", "state")
GAP = "no input"


@dataclass(frozen=True, slots=True)
class Days:
    """What is special about service days.

    Args:
        holidays: names of public holidays by day.
        gaps: service days without input, by period.
    """

    holidays: Mapping[date, str]
    gaps: Mapping[str, Sequence[str]]


def holidays_of(programme: Programme, include: Path) -> Mapping[date, str]:
    """Return the names of public holidays, from the file that the programme names; empty without.

    Raises:
        ProgrammeError: no such file, or a line that is no date.
    """
    name = programme.publish.holidays
    if name is None:
        return {}
    holidays: dict[date, str] = {}
    for where, (day, holiday) in open_public_file(
        programme, "publish.holidays", name, include
    ).rows("service_date", "holiday"):
        try:
            holidays[date.fromisoformat(day)] = holiday
        except ValueError:
            refuse(where, "service_date", "is no date; write 2016-12-26")
    return holidays


def days_csv(periods: Sequence[Period], days: Days) -> bytes:
    """Return one line a service day of these periods, which stand in order."""
    rows = []
    for period in periods:
        name = str(period.period)
        for day in period.period.days:
            state = GAP if day.isoformat() in days.gaps.get(name, ()) else period.state
            rows.append((day, f"{day:%A}", days.holidays.get(day, ""), name, state))
    return csv_text(COLUMNS, rows).encode()
