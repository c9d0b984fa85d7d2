"""What is asked of Airflow to release weeks: one run for each, called by programme and week. Pure.

A run is started by its name, with the data interval of its period, in the name of whoever asks: so
Airflow records the person of each, which a backfill forgets for all runs but the first. A week that
has a run is cleared: it goes on under the same name, and re-issues what is sealed. Of queued runs
Airflow begins that of the earliest `run_after`: it is the end of the period, as the timetable has
it, so that new runs and cleared ones go in the order of their weeks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from turnstile.operations.airflow_names import dag_of
from turnstile.operations.airflow_now import UNDER_WAY
from turnstile.programme.calendar.release_schedule import run_name, starts_at
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run that Airflow has for a period; held if its backfill is paused or was canceled."""

    run_id: str
    state: str
    is_held_back: bool = False


@dataclass(frozen=True, slots=True)
class WeekRequest:
    """One request of Airflow's REST API.

    Args:
        period: that it releases.
        run_id: of the run that is started or cleared.
        path: below the API server.
        body: of the POST; empty where nothing has to be asked, because the run is under way.
    """

    period: ServicePeriod
    run_id: str
    path: str
    body: Mapping[str, Any]


def week_requests(
    programme: Programme, periods: Sequence[ServicePeriod], known: Mapping[datetime, KnownRun]
) -> tuple[WeekRequest, ...]:
    """Return what to ask, in the order of the periods.

    Args:
        programme: to be released.
        periods: which.
        known: runs that there are, by their logical date.
    """
    return tuple(_request(programme, period, known) for period in periods)


def _request(
    programme: Programme, period: ServicePeriod, known: Mapping[datetime, KnownRun]
) -> WeekRequest:
    """Start the run of a period, or clear the one that there is."""
    zone = programme.time.zone
    start, base = starts_at(period, zone), f"/api/v2/dags/{dag_of(programme.name)}/dagRuns"
    run = known.get(start)
    if run is None:
        name, end = run_name(programme.name, period), period.ends_at(zone).isoformat()
        body = {
            "dag_run_id": name,
            "logical_date": start.isoformat(),
            "data_interval_start": start.isoformat(),
            "data_interval_end": end,
            "run_after": end,
            "conf": {},
        }
        return WeekRequest(period, name, base, body)
    if run.state in UNDER_WAY:
        return WeekRequest(period, run.run_id, "", {})
    again = {"dry_run": False, "only_failed": False, "run_on_latest_version": True}
    return WeekRequest(period, run.run_id, f"{base}/{quote(run.run_id)}/clear", again)
