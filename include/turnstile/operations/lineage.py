"""OpenLineage events: which step brought a week from which zone to which. Names and times alone.

A line of `operations/lineage.ndjson` is one event of OpenLineage 2-0-2, as backends take it at
`/api/v1/lineage`. Data sets are the zones of a programme, named as its Airflow assets are. An event
has no facet of statistics, columns, errors or sources: those would be computed from rows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from turnstile.operations.airflow_names import ZONES, asset_of, dag_of
from turnstile.operations.journal import FOLDER
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings

NAMESPACE = "turnstile"
_PRODUCER = "urn:turnstile"
_SPEC = "https://openlineage.io/spec"


def lineage_file(settings: Settings) -> Path:
    """Return the file of a deployment's events."""
    return settings.home / FOLDER / "lineage.ndjson"


def lineage_events(
    run: tuple[str, ServicePeriod, str], step: str, at: datetime, *, has_failed: bool
) -> tuple[dict[str, Any], ...]:
    """Return begin and end of one attempt at a step.

    Both carry the instant of the end: how long a step took depends on how many rows there were.

    Args:
        run: programme, period, and the orchestrator's name of the run.
        step: a key of `airflow_names.ZONES`.
        at: when it ended, aware.
        has_failed: whether it did.
    """
    programme, period, run_id = run
    source, target = ZONES[step]
    nominal = {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/1-0-1/NominalTimeRunFacet.json",
        "nominalStartTime": f"{period.days[0]}T00:00:00Z",
        "nominalEndTime": f"{period.days[-1]}T00:00:00Z",
    }
    name = f"{run_id}/{programme}/{period}/{step}/{at.isoformat()}"
    common: dict[str, Any] = {
        "eventTime": at.astimezone(UTC).isoformat(),
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(uuid5(NAMESPACE_URL, name)), "facets": {"nominalTime": nominal}},
        "job": {"namespace": NAMESPACE, "name": f"{dag_of(programme)}.{step}"},
        "inputs": [{"namespace": NAMESPACE, "name": asset_of(programme, source)}],
    }
    made = [] if has_failed else [{"namespace": NAMESPACE, "name": asset_of(programme, target)}]
    end = {"eventType": "FAIL" if has_failed else "COMPLETE", "outputs": made}
    return ({**common, "eventType": "START", "outputs": []}, {**common, **end})
