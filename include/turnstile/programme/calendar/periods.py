"""The periods that a programme is released over, as people name them."""

from __future__ import annotations

from turnstile.errors import InputError
from turnstile.programme.spec import Programme
from turnstile.service_calendar import DAYS_PER_WEEK, ServicePeriod, ServiceWeek, parse_period


def period_named(programme: Programme, text: str, *, where: str = "--week") -> ServicePeriod:
    """Read the name of a period of a programme, such as `2016-W30`.

    Raises:
        InputError: it names no period, one of another length, or a week by its days.
    """
    period = parse_period(text, where=where)
    asked = programme.schedule.period_days
    is_week = isinstance(period, ServiceWeek)
    if len(period.days) != asked or is_week != (asked == DAYS_PER_WEEK):
        form = "an ISO week" if asked == DAYS_PER_WEEK else f"{asked} days, FIRST..LAST"
        rule = f"{programme.name} is not released over {period}; ask for {form}"
        raise InputError(where=where, field="period", rule=rule)
    return period
