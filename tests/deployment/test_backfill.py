"""What is shown of a failed task: the last messages of its log."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from turnstile.operations.airflow_api import DagRun, TaskState
from turnstile.programme.calendar.release_schedule import starts_at
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile_native.backfill import WeekBackfill, log_tail

INCLUDE = Path(__file__).parents[2] / "include"
WEEKS = (ServiceWeek(2016, 30), ServiceWeek(2016, 31))


def test_the_tail_shows_messages_and_the_failures_sentence() -> None:
    failure = {"event": "Task failed", "error_detail": [{"exc_value": "asks for 2, 1 is left"}]}
    text = "\n".join([json.dumps({"event": "counted"}), json.dumps(failure), "no json", "[1]"])
    assert log_tail(text) == ("counted", "Task failed: asks for 2, 1 is left", "no json", "[1]")


def test_the_tail_is_short() -> None:
    lines = [json.dumps({"event": str(number)}) for number in range(100)]
    assert log_tail("\n".join(lines)) == tuple(str(number) for number in range(85, 100))


@pytest.mark.parametrize(
    ("states", "task", "stands_still", "asks"),
    [
        (("success", "failed"), "success", True, False),
        (("success", "running"), "running", False, False),
        (("running", "queued"), "awaiting_input", True, True),
        (("running",), "awaiting_input", False, True),  # the other run is not known yet
    ],
)
def test_a_week_that_people_are_asked_about_is_waited_for_by_nobody(
    states: tuple[str, ...], task: str, *, stands_still: bool, asks: bool
) -> None:
    """Whoever is to answer is told address and password only after the wait."""
    opal = load_programme("opal", INCLUDE)
    at = [starts_at(week, opal.time.zone) for week in WEEKS]
    runs = tuple(DagRun(f"run_{n}", state, at[n]) for n, state in enumerate(states))
    api: Any = SimpleNamespace(
        runs=lambda _: runs, tasks=lambda *_: (TaskState("ask", task, attempt=1),)
    )
    said: list[str] = []
    backfill = WeekBackfill(api, (opal,), WEEKS, Path("logs"), said.append)
    assert backfill.stands_still() == stands_still
    questions = backfill.questions()
    assert [text.partition(" (")[0] for text in questions] == (
        ["opal 2016-W30: people are asked"] if asks else []
    )
