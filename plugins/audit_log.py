"""Who set a run going again: read from Airflow's audit log; tasks cannot know it.

A run names who triggered it first; who cleared it later, or asked for a backfill over it, stands in
the audit log alone. Airflow writes that line before it acts. Tasks have no access to its database,
so the log is read through the REST API, by the user of the connection `turnstile_airflow` (type
`http`; a reader is enough).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from turnstile.errors import AirflowAway, NotApproved
from turnstile.operations.airflow_api import AirflowApi

if TYPE_CHECKING:
    from turnstile.operations.airflow_now import AirflowNow
    from turnstile.operations.budget_page.page import BudgetPage

_log = logging.getLogger("turnstile")

CONNECTION = "turnstile_airflow"
SETS_GOING = (
    "bulk_dag_runs",
    "clear_dag_run",
    "clear_dag_run_partitions",
    "clear_dag_runs",
    "create_backfill",
    "patch_dag_run",
    "patch_task_group_instances",
    "patch_task_instance",
    "post_clear_task_instances",
)
"""Events of the audit log, which are the REST API's own names of what was asked for.

Without `trigger_dag_run`: its line names no run, and the run itself names who triggered it.
"""

_CLEARS = ("clear_", "post_clear_")
_APPROVAL = re.compile(r"ask(_\d+)?")


def who_set_going_again(dag_run: Any) -> frozenset[str]:  # noqa: ANN401 - Airflow's own
    """Return the names of the users who cleared a run, marked it or its tasks, or backfilled it.

    A clear of nothing but the questions before publishing is no such thing: it asks again.

    Raises:
        NotApproved: the audit log cannot be read, or names fewer who did it than there were:
            Airflow 3.3 writes no line where tasks are marked from their list.
        AirflowAway: Airflow's API does not answer; it may in a moment.
    """
    counted = int(getattr(dag_run, "clear_number", 0) or 0)
    try:
        lines = airflow_api().events(SETS_GOING)
    except AirflowAway:
        raise
    except Exception as error:  # noqa: BLE001 - no connection, no rights: no approval
        if not counted and isinstance(error, AirflowNotFoundException):
            return frozenset()  # without the connection, Airflow's own count is all that is known
        raise NotApproved(
            "who set this run going again cannot be read from Airflow's audit log "
            f"({type(error).__name__}); let the connection {CONNECTION} name a user who may read "
            "it, then clear this task"
        ) from None
    about = lines_about(lines, dag_run.dag_id, dag_run.run_id, dag_run.logical_date)
    if not counted:
        return users_in(filter(_is_not_counted, about))
    named = sum(map(_sets_going, about))
    if named < counted:
        raise NotApproved(
            f"this run was set going again {counted} times, and Airflow's audit log "
            f"names who did it {named} times: whoever marks tasks from their list or clears by "
            "the airflow command stands nowhere, nor does what the log keeps no longer. Delete the "
            "run in Airflow, and let somebody who will not approve the week release it by name; "
            "its bytes stand, 0 charged"
        )
    return users_in(about)


def lines_about(
    lines: Iterable[Mapping[str, Any]], dag_id: str, run_id: str, logical_date: datetime | None
) -> list[Mapping[str, Any]]:
    """Return the lines of the audit log that concern a run."""
    return [
        line
        for line in lines
        if line["dag_id"] in {dag_id, None, "~"} and _concerns(line, run_id, logical_date)
    ]


def users_in(lines: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the users in lines about a run, but for those who only asked its questions again."""
    return frozenset(str(line["owner"]) for line in lines if not _asks_again(line))


def _concerns(line: Mapping[str, Any], run_id: str, logical_date: datetime | None) -> bool:
    """Return whether a line of the DAG is about the run; in doubt it is."""
    extra = json.loads(line["extra"] or "{}")
    if line["event"] == "create_backfill" and {"from_date", "to_date"} <= extra.keys():
        if logical_date is None:
            return False  # of a run by hand that names its week in a field: no backfill takes it
        return _instant(extra["from_date"]) <= logical_date <= _instant(extra["to_date"])
    if logical_date is not None and (extra.get("include_past") or extra.get("include_future")):
        return True  # of another run, and of those before or after it
    return line["run_id"] in {run_id, None, "~"}


def _sets_going(line: Mapping[str, Any]) -> bool:
    """Return whether a line is of what sets a run going again; the others name people alone.

    A note, a run that is marked, and the backfill that made a run raise its `clear_number` not.
    """
    event, extra = str(line["event"]), json.loads(line["extra"] or "{}")
    if _is_mark(event, extra):
        return True
    if event == "create_backfill":
        return extra.get("reprocess_behavior") not in {None, "none"}
    return event.startswith(_CLEARS) and extra.get("reset_dag_runs", True)


def _is_not_counted(line: Mapping[str, Any]) -> bool:
    """Return whether a line is of what a run under way goes on with, and Airflow never counts.

    That is a clear which leaves the run's state alone, and a mark on a task that waits.
    """
    event, extra = str(line["event"]), json.loads(line["extra"] or "{}")
    is_clear = event.startswith(_CLEARS) and not extra.get("reset_dag_runs", True)
    return is_clear or _is_mark(event, extra)


def _is_mark(event: str, extra: Mapping[str, Any]) -> bool:
    return event.startswith("patch_task") and "new_state" in extra


def _asks_again(line: Mapping[str, Any]) -> bool:
    """Return whether a line is of a clear of nothing but questions."""
    tasks = json.loads(line["extra"] or "{}").get("task_ids") or [line["task_id"]]
    is_question = all(_APPROVAL.fullmatch(str(task)) for task in tasks)
    return line["event"] == "post_clear_task_instances" and is_question


def _instant(text: str) -> datetime:
    """Read an instant; Airflow takes one without a zone for UTC."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def airflow_api() -> AirflowApi:
    """Return a client of Airflow's own API."""
    its = Connection.get(CONNECTION)
    scheme = its.schema or "http"
    port = f":{its.port}" if its.port else ""
    return AirflowApi(f"{scheme}://{its.host}{port}", str(its.login), str(its.password))


def airflow_of_api(page: BudgetPage, programmes: frozenset[str]) -> AirflowNow | None:
    """Return what Airflow's own API says of the runs of programmes; None where it says nothing."""
    try:
        return airflow_api().now(page.runs_asked(programmes), page.period_of_run)
    except Exception as error:  # noqa: BLE001 - no connection, no rights, no answer
        _log.warning("Airflow's API says nothing of its runs: %s", type(error).__name__)
    return None
