"""Until when private data of a period stay, by the programme's days and the calendar alone. Pure.

Exact tables that later weeks of their year carry along stay until nobody releases or corrects a
week of that year any more.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from turnstile.privacy.year_to_date import YEAR_WEEKS
from turnstile.programme.spec import Programme, RetentionSpec
from turnstile.release.carried_weeks import age_in_year
from turnstile.service_calendar import ServicePeriod, ServiceWeek


def rows_due(programme: Programme, spec: RetentionSpec, period: ServicePeriod) -> datetime:
    """Return from when on raw files and rows of a period may go; aware."""
    return period.ends_at(programme.time.zone) + timedelta(days=spec.raw_days)


def exact_due(programme: Programme, spec: RetentionSpec, period: ServicePeriod) -> datetime:
    """Return from when on exact tables of a period may go; aware."""
    zone = programme.time.zone
    due = period.ends_at(zone) + timedelta(days=spec.exact_days)
    for year_from in years_of(programme):
        last = _last_of_year(year_from, period.first_day)
        due = max(due, last.ends_at(zone) + timedelta(days=spec.backfill_days))
    return due


def is_carried_by(programme: Programme, earlier: ServicePeriod, later: ServicePeriod) -> bool:
    """Return whether draws of a later period hold the exact tables of an earlier one."""
    return any(
        earlier.first_day < later.first_day <= _last_of_year(year_from, earlier.first_day).first_day
        for year_from in years_of(programme)
    )


def years_of(programme: Programme) -> tuple[ServiceWeek, ...]:
    """Return the weeks with which years of tables begin that carry their year along."""
    return tuple(table.year_from for table in programme.tables if table.year_from is not None)


def _last_of_year(year_from: ServiceWeek, day: date) -> ServiceWeek:
    """Return the last week of the year in which a day lies."""
    return ServiceWeek.containing(day).plus(YEAR_WEEKS - 1 - age_in_year(year_from, day))
