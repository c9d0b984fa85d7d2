"""What page, watchdog and journal say of weeks beside what Airflow says, looked at again and again.

A look asks Airflow and the page twice, around all else: only where both answer the same before and
after it can two of them be held against each other.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise
from threading import Event, Thread
from typing import Any

from real_airflow import PASSWORD, RealAirflow, week_at

from turnstile.operations.airflow_api import AirflowApi
from turnstile.operations.airflow_now import ASKS, UNDER_WAY, AirflowNow, RunNow, TaskNow
from turnstile.operations.deployment_state import DeploymentState
from turnstile.operations.journal import Happening, Journal
from turnstile.operations.watchdog.alerts import Alert
from turnstile.operations.week_states import OF_PEOPLE, TURNS_AND_ENDS
from turnstile.settings import Settings, system_clock

PAGE = "/privacy-budget"
EVERY_S = 1.0
_ITEM = re.compile(r'<li data-state="(\w+)"><strong>([^<]+)</strong>(.*?)</li>', re.DOTALL)
_PROGRAMME = '<section [^>]*data-programme="{}">(.*?)</section>'
_SAYS_ITS_COST = re.compile("it charges |What its run then does: refused|no draw is left")
_LEADS_ON = frozenset({"dead", "charged", "held", "stopped", "overdue"})
"""States whose advice is to clear or release a week, or to let its run go on."""
_OF_A_STOP = frozenset({"week_stopped", "week_refused", "week_missing", "bytes_disagree"})


@dataclass(frozen=True)
class Look:
    """One look at one week.

    Args:
        run: Airflow's word of its run; empty if it has none, or if it changed during the look.
        mark: the page's calendar, as JSON; empty if it changed during the look.
        trouble: state of the week among what somebody has to look at; empty if it is not there.
        words: that the page says of it there.
        alerts: of the watchdog, about the week.
        has_failed: whether its run's last word in the journal is that it failed.
        asks: whether Airflow has a question about it open; None if that changed during the look.
    """

    run: str
    mark: Mapping[str, Any]
    trouble: str
    words: str
    alerts: tuple[Alert, ...]
    has_failed: bool
    asks: bool | None = False

    @property
    def faults(self) -> tuple[str, ...]:
        """What is false, what costs and does not say so, and what differs."""
        rules = {alert.rule for alert in self.alerts}
        faults = [*self._faults_of_life(rules)]
        if self.trouble and self.mark:
            if self.mark["state"] != self.trouble and not self._is_paused():
                faults.append("list and calendar differ")
            if self._may_draw() and not _SAYS_ITS_COST.search(self.words):
                faults.append("advice does not say what it charges")
        if self.run and self.mark:
            if (self.trouble == "dead") != ("run_died" in rules):
                faults.append("page and watchdog differ about a death")
            if self.trouble == "dead" and not self._is_told_alike():
                faults.append("page and watchdog say a death in other words")
            is_stopped = self.run == "failed" and self.has_failed
            if is_stopped and not (self.trouble and rules & _OF_A_STOP):
                faults.append("page or watchdog is silent about a run that failed")
        return tuple(faults)

    def _faults_of_life(self, rules: set[str]) -> Iterator[str]:
        """Yield what is falsely said of a run that lives, or of a question."""
        lives = self.run in UNDER_WAY
        is_true = self.trouble in {"", *OF_PEOPLE} or self._is_paused()
        if lives and not self.has_failed and not is_true:
            yield "trouble of a run that lives"
        if lives and not self.has_failed and "run_died" in rules:
            yield "a death of a run that lives"
        is_known = self.run and self.mark and self.asks is not None
        if is_known and self.asks != (lives and self.mark["state"] in OF_PEOPLE):
            yield "page and Airflow differ about a question"
        if self.asks is False and rules & {"people_asked", "people_reminded"}:
            yield "a mail about a question that Airflow has not"

    def _may_draw(self) -> bool:
        """Say whether following the advice may charge a draw."""
        return self.trouble in _LEADS_ON and self.mark["of_budget"] in {
            "nothing",
            "held",
            "charged",
        }

    def _is_paused(self) -> bool:
        """Say whether the trouble is that somebody paused the DAG of a run that lives."""
        return self.trouble == "overdue" and "its DAG is paused" in self.words

    def _is_told_alike(self) -> bool:
        """Say whether the watchdog's sentence of a death stands on the page."""
        told = next((alert.sentence for alert in self.alerts if alert.rule == "run_died"), "")
        return told.partition(": ")[2] in self.words


@dataclass
class Looks:
    """Looks at an Airflow, by week."""

    airflow: RealAirflow
    weeks: tuple[str, ...]
    seen: dict[str, list[Look]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._api = AirflowApi(self.airflow.address, "vera", PASSWORD)
        self._state = DeploymentState(Settings.from_environment(), system_clock)

    @contextmanager
    def once_a_second(self) -> Iterator[None]:
        """Look while the block runs."""
        is_over, failed = Event(), []

        def go_on() -> None:
            try:
                while not is_over.is_set():
                    began = time.monotonic()
                    self._look()
                    is_over.wait(max(0.0, EVERY_S - (time.monotonic() - began)))
            except Exception as error:  # noqa: BLE001 - raised below, in the test's own thread
                failed.append(error)

        thread = Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
        if failed:
            raise failed[0]

    def faults(self, week: str) -> set[str]:
        """Return what was wrong with any look at a week; print those looks."""
        for before, current in pairwise([None, *self.seen[week]]):
            if current is not None and current.faults:
                sys.stdout.write(
                    "\n".join((*current.faults, f"  {current}", f"  after {before}\n"))
                )
        return {f"{look.run}: {fault}" for look in self.seen[week] for fault in look.faults}

    def states(self, week: str) -> list[str]:
        """Return the states of the calendar that a week went through, one after the other."""
        states: list[str] = []
        for look in self.seen[week]:
            state = look.mark.get("state")
            if state is not None and states[-1:] != [state]:
                states.append(state)
        return states

    def last_state(self, week: str) -> str:
        """Return the state of the calendar that a week was in last; empty before the first look."""
        return (self.states(week) or [""])[-1] if week in self.seen else ""

    def until(self, week: str, state: str) -> Look:
        """Wait for a look at a week in trouble of a state, which did not change; return it."""
        latest: list[Look] = []

        def has_come() -> bool:
            latest[:] = self.seen.get(week, [])[-1:]
            return bool(latest) and latest[0].trouble == state and bool(latest[0].mark)

        self.airflow.until(has_come, what=f"{week} {state} on the page")
        return latest[0]

    def _look(self) -> None:
        """Look at every week once."""
        api, state = self._api, self._state
        dag = self.airflow.dag
        programme = dag.removeprefix("release_")
        runs, marks = _runs(api, dag), _marks(api, programme)
        asks = _asks(api, dag, runs, self.weeks)
        page = _troubles(api, programme)
        alerts = state.watched(_asked_by_a_task(api, state, programme))
        lines = [
            line
            for line in Journal.of(state.settings).of_programme(programme)
            if line.happening in TURNS_AND_ENDS
        ]
        asks_then = _asks(api, dag, runs, self.weeks)
        runs_then, marks_then = _runs(api, dag), _marks(api, programme)
        for week in self.weeks:
            trouble, words = page.get(week, ("", ""))
            last = [line.happening for line in lines if line.week == week][-1:]
            run, mark = runs.get(week, ""), marks.get(week, {})
            look = Look(
                run=run if runs_then.get(week) == run else "",
                mark=mark if marks_then.get(week) == mark else {},
                trouble=trouble,
                words=words,
                alerts=tuple(
                    alert for alert in alerts if (alert.programme, alert.week) == (programme, week)
                ),
                has_failed=last == [Happening.FAILED],
                asks=week in asks if (week in asks) == (week in asks_then) else None,
            )
            self.seen.setdefault(week, []).append(look)


def _runs(api: AirflowApi, dag: str) -> dict[str, str]:
    """Return the state of the run of each week."""
    return {week_at(run.starts): run.state for run in api.runs(dag)}


def _asks(
    api: AirflowApi, dag: str, runs: Mapping[str, str], weeks: tuple[str, ...]
) -> frozenset[str]:
    """Return those of the weeks of which Airflow has a question open."""
    if not {"running"} & {runs.get(week) for week in weeks}:
        return frozenset()
    ids = {run.run_id: week_at(run.starts) for run in api.runs(dag) if run.state == "running"}
    return frozenset(
        week
        for run_id, week in ids.items()
        if any(task.state == ASKS for task in api.tasks(dag, run_id))
    )


def _marks(api: AirflowApi, programme: str) -> dict[str, dict[str, Any]]:
    """Return the page's calendar, by week."""
    calendar = api._request("GET", f"{PAGE}/data/calendar.json")
    return {mark["week"]: mark for mark in calendar[programme]}


def _troubles(api: AirflowApi, programme: str) -> dict[str, tuple[str, str]]:
    """Return what the page has people look at in a programme: state and words, by week."""
    answer = api._send("GET", f"{PAGE}/", headers=api._authorization())
    answer.raise_for_status()
    (section,) = re.findall(_PROGRAMME.format(programme), answer.text, re.DOTALL)
    return {
        weeks: (state, " ".join(unescape(re.sub(r"<[^>]+>", "", words)).split()))
        for state, weeks, words in _ITEM.findall(section)
    }


def _asked_by_a_task(api: AirflowApi, state: DeploymentState, programme: str) -> AirflowNow:
    """Return what the watchdog's task gets from Airflow: the runs that the journal names."""
    dag = f"release_{programme}"
    asked = state.runs_asked(frozenset({programme}))
    runs = [
        RunNow(
            run.run_id,
            "",
            run.state,
            {task.task_id: TaskNow(task.state) for task in api.tasks(dag, run.run_id)},
        )
        for run in api.runs(dag)
        if run.run_id in asked.runs[programme]
    ]
    return AirflowNow(runs={programme: tuple(runs)}, asked=asked)
