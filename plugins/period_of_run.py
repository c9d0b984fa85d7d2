"""Which programme, period and revision a run stands for.

The period follows from the run's data interval, never from its conf; the revision from the ledger,
never from what was marked, skipped or cleared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnstile.programme.loading import load_programme
from turnstile.programme.release_schedule import period_of_interval
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from turnstile.pipeline.context import Release


def programme_and_period(name: str, context: Mapping[str, Any]) -> tuple[Programme, ServicePeriod]:
    """Return the programme as its file stands now, and the period of the run's data interval.

    Args:
        name: of the programme.
        context: the task's, of which `data_interval_start` and `data_interval_end` are read.

    Raises:
        InputError: the run has no data interval, or one that is no period of the programme.
        NotFinal: the period is not over.
    """
    programme = load_programme(name, Settings.from_environment().include)
    interval = (context.get("data_interval_start"), context.get("data_interval_end"))
    zone, now = programme.time.zone, system_clock()
    return programme, period_of_interval(*interval, programme.schedule, zone=zone, now=now)


def revision_of(programme: Programme, period: ServicePeriod) -> int:
    """Return the revision of a period that the steps of any run work on now."""
    from turnstile.pipeline.context import open_ledger
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
