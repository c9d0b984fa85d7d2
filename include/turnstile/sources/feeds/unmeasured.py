"""Vehicles that need not state a speed: it is asked for where a table measures speeds."""

from __future__ import annotations

from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds import itms
from turnstile.sources.feeds.layout import reads_speeds


def typed_sql(programme: Programme, week: ServicePeriod, relation: str = "raw") -> str:
    """Return the SELECT from the fields of records to canonical telemetry; else a speed is 0."""
    if not reads_speeds(programme):
        relation = f"(SELECT * REPLACE ('0' AS speed) FROM {relation})"
    return itms.typed_sql(programme, week, relation)
