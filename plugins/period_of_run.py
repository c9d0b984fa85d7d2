"""Which programme, period and revision a run stands for.

The period of a scheduled or backfilled run follows from its data interval, and a field `week` that
names another stops it; a run by hand names its own, in the form's field `week` or by a logical date
that is the period's start. The revision follows from the ledger, never from what was marked,
skipped or cleared.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from turnstile.errors import InputError
from turnstile.programme.calendar.release_schedule import (
    period_containing,
    period_of_interval,
    starts_at,
)
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod, parse_period
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from turnstile.pipeline.context import Release

BY_HAND = (
    "a run by hand names its week: fill the form's field `week`, or ask for weeks on the page "
    "Budget, Release weeks"
)


def programme_and_period(name: str, context: Mapping[str, Any]) -> tuple[Programme, ServicePeriod]:
    """Return the programme as its file stands now, and the period of the run's data interval.

    Args:
        name: of the programme.
        context: the task's, of which `data_interval_start`, `data_interval_end`, `dag_run` and
            `params` are read.

    Raises:
        InputError: the run has no data interval, or one that is no period of the programme, or was
            started by hand and names no period, or names another one than its dates.
        NotFinal: the period is not over.
    """
    programme = load_programme(name, Settings.from_environment().include)
    interval = (context.get("data_interval_start"), context.get("data_interval_end"))
    zone, now = programme.time.zone, system_clock()
    dag_run = context.get("dag_run")
    named = str((context.get("params") or {}).get("week") or "")
    is_by_hand = getattr(dag_run, "run_type", "") == "manual"
    if is_by_hand:
        if named:
            period = parse_period(named, where="run")
            _require_no_date_of_another(period, getattr(dag_run, "logical_date", None), programme)
            interval = (starts_at(period, zone), period.ends_at(zone))
        elif interval[0] is None or interval[0] != getattr(dag_run, "logical_date", None):
            raise InputError(where="run", field="week", rule=BY_HAND)
    period = period_of_interval(*interval, programme.schedule, zone=zone, now=now)
    if named and not is_by_hand and str(period) != named:
        # A backfill hands its one field to the run of each of its dates.
        rule = (
            f"it names {named}, and this run of a backfill stands for {period} by its dates, so "
            f"nothing is charged; delete this run, and release {period} with the field left empty"
        )
        raise InputError(where="run", field="week", rule=rule)
    return programme, period


def _require_no_date_of_another(
    period: ServicePeriod, logical_date: datetime | None, programme: Programme
) -> None:
    """Refuse a run by hand at the first instant of another period than it names.

    Airflow keeps one run for each date: it would take the place of that period's own run, and
    whoever asked for that period would be given this one.
    """
    zone = programme.time.zone
    if logical_date is None:
        return
    other = period_containing(logical_date.astimezone(zone).date(), programme.schedule)
    if other != period and starts_at(other, zone) == logical_date:
        rule = (
            f"it names {period}, and its logical date is that of {other}, whose run it would be "
            f"taken for, so nothing is charged; delete this run, and release {period} by name"
        )
        raise InputError(where="run", field="week", rule=rule)


def revision_of(programme: Programme, period: ServicePeriod) -> int:
    """Return the revision of a period that the steps of any run work on now."""
    from turnstile.ledger.of_deployment import open_ledger
    from turnstile.pipeline.revision_in_force import revision_in_force

    settings = Settings.from_environment()
    return revision_in_force(open_ledger(settings), programme, str(period), settings)


def release_of_run(name: str, context: Mapping[str, Any]) -> Release:
    """Open the release that a run works on now.

    Raises:
        InputError: the run has no data interval, or one that is no period of the programme.
        NotFinal: the period is not over.
    """
    from turnstile.pipeline.context import open_release

    programme, period = programme_and_period(name, context)
    return open_release(name, str(period), revision_of(programme, period))
