"""What runs report: the journal of each week, the first task's note, and alerts to people.

Nothing here may stop a release: what cannot be reported is logged by its kind and tried again by
the watchdog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_interfaces import address_of_ui
from alert_addresses import addresses_of
from audit_log import who_set_going_again

from turnstile.ledger.entries import instant
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.airflow_names import ZONES, dag_of
from turnstile.operations.journal import (
    Happening,
    Journal,
    Line,
    append_line,
    open_runs,
    starters,
)
from turnstile.operations.lineage import lineage_events, lineage_file
from turnstile.operations.watchdog.alerts import (
    Severity,
    of_budget,
    of_questions,
    of_run,
    runbook_link,
)
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from turnstile.errors import TurnstileError
    from turnstile.operations.watchdog.alerts import Alert
    from turnstile.pipeline.landing.arrival import Arrival

LAST_STEP = "audit"
_log = logging.getLogger("turnstile")


@dataclass(frozen=True, slots=True)
class RunOfWeek:
    """One run, and the week that it stands for.

    Args:
        settings: of the deployment.
        programme: name.
        week: ISO week.
        run_id: Airflow's name of the run; empty outside Airflow.
        revision: of the week, that the run works on.
    """

    settings: Settings
    programme: str
    week: str
    run_id: str
    revision: int = 0

    @property
    def key(self) -> str:
        """What is released, as the ledger names it."""
        return str(ReleaseKey(self.programme, self.week, self.revision))

    def begin(self, triggered_by: str) -> str:
        """Write that the run takes the week up; return what it will do to the budget."""
        note = self._note()
        details = {"triggered_by": triggered_by, "note": note, "revision": self.revision}
        self._write(Happening.BEGUN, **details)
        return note

    def resume(self, step: str) -> None:
        """Write that a run which said how it ended goes on after all: somebody cleared it."""
        if self.run_id and self.run_id not in {run.run_id for run in open_runs(self._lines())}:
            self._write(Happening.RESUMED, step=step)

    def goes_on(self, step: str) -> None:
        """Write that a wait or a question is over."""
        self._write(Happening.RESUMED, step=step)

    def waits(self, sentence: str) -> None:
        """Write what the run waits for, once."""
        said = [line for line in self._lines() if line.run_id == self.run_id]
        if not said or (said[-1].happening, said[-1].details.get("sentence")) != (
            Happening.WAITS,
            sentence,
        ):
            self._write(Happening.WAITS, sentence=sentence)

    def did(self, step: str) -> None:
        """Write what a step that succeeded gives cause to report; after the last, notify people."""
        self._tell_lineage(step, has_failed=False)
        if step == "ingest" and self._is_restated():
            self._write(Happening.RESTATED)
        if step == "validate":
            self._write_verdicts()
        if step == LAST_STEP:
            self._write(Happening.ENDED)
            self.notify()

    def failed(self, step: str, kind: str, sentence: str) -> None:
        """Write that a step stopped the run, and notify people."""
        self._tell_lineage(step, has_failed=True)
        if step == "validate":
            self._write_verdicts()
        self._write(Happening.FAILED, step=step, kind=kind, sentence=sentence)
        self.notify()

    def asks(self, task: str, sentence: str) -> None:
        """Write that people are asked, perhaps once more after the question failed; notify them."""
        self.resume(task)
        self._write(Happening.ASKED, task=task, sentence=sentence)
        self.notify()

    def restated(self) -> None:
        """Write that files of a sealed week came again, and notify people at once."""
        self._write(Happening.RESTATED)
        self.notify()

    def refusal(self, dag_run: Any) -> TurnstileError | None:  # noqa: ANN401 - Airflow's own
        """Return how ledger or people would refuse the week, before anything is read.

        Raises:
            NotApproved: no answer of anybody would count.
        """
        from turnstile.operations.people.approval import nobody_to_ask
        from turnstile.pipeline.context import open_release
        from turnstile.pipeline.ledger_preview import refusal_before_reading

        release = open_release(self.programme, self.week, self.revision)
        asked = release.ledger, release.programme, release.plan, self.settings
        return refusal_before_reading(*asked) or nobody_to_ask(
            release, starters(self._lines()), partial(who_set_going_again, dag_run)
        )

    def is_sealed(self) -> bool:
        """Return whether the week has its bytes, whatever its files are now."""
        from turnstile.pipeline.context import open_release

        return open_release(self.programme, self.week, self.revision).sealed is not None

    def arrival(self) -> Arrival:
        """Return what of the week has arrived."""
        from turnstile.pipeline.landing.arrival import arrival_of
        from turnstile.programme.loading import load_programme
        from turnstile.release.zone_copies import zones

        source = load_programme(self.programme, self.settings.include).source
        period = parse_period(self.week)
        changed_at = zones(self.settings).fetch_landing(source, period)
        return arrival_of(source, period, self.settings.landing, changed_at)

    def notify(self) -> None:
        """Send one digest of this run to those who are named for it."""
        from turnstile.ledger.of_deployment import open_ledger

        lines = self._lines()
        alerts = [*of_run(lines, self.run_id)]
        alerts += [
            question
            for question in of_questions(lines, system_clock())
            if question.run_id == self.run_id
        ]
        alerts += of_budget(open_ledger(self.settings).forecast())
        send_alerts(alerts, self.settings)

    def _note(self) -> str:
        """Say what running the steps of the week will do to the budget."""
        from turnstile.operations.budget_page.plan_view import cost_in_words
        from turnstile.operations.people.run_notes import effect_on_budget
        from turnstile.pipeline.context import open_release

        release = open_release(self.programme, self.week, self.revision)
        revision = release.ledger.revision(release.key)
        entries = release.ledger.entries_of(release.key)
        cost, drawing = cost_in_words(release.plan), release.ledger.living_draws()
        effect = effect_on_budget(revision, entries, cost, drawing)
        return f"{release.key}: {effect.sentence}"

    def _lines(self) -> tuple[Line, ...]:
        """Return the journal of the week."""
        return Journal.of(self.settings).of_week(self.programme, self.week)

    def _write(self, happening: Happening, **details: object) -> None:
        """Append a line about this run."""
        at = instant(system_clock())
        line = Line(at, happening, self.programme, self.week, self.run_id, details)
        Journal.of(self.settings).write(line)

    def _tell_lineage(self, step: str, *, has_failed: bool) -> None:
        """Write from which zone to which a step brought the week."""
        if step in ZONES:
            run = (self.programme, parse_period(self.week), self.run_id)
            for event in lineage_events(run, step, system_clock(), has_failed=has_failed):
                append_line(lineage_file(self.settings), event)

    def _is_restated(self) -> bool:
        """Return whether the files changed since the week was sealed."""
        from turnstile.pipeline.before_charge import RESTATED

        folder = self.settings.private / self.key
        return (folder / RESTATED).exists()

    def _write_verdicts(self) -> None:
        """Write what may leave the private zone: one word a rule."""
        from turnstile.pipeline.before_charge import verdicts
        from turnstile.pipeline.context import open_release

        release = open_release(self.programme, self.week, self.revision)
        if release.sealed is None and (rule_verdicts := verdicts(release)):
            self._write(Happening.JUDGED, verdicts=rule_verdicts)


def report_success(run: RunOfWeek, step: str) -> None:
    """Report that a step succeeded; trouble in that does not undo the step."""
    _try(lambda: run.did(step))


def report_resumed(run: RunOfWeek, step: str) -> None:
    """Report that a run goes on; trouble in that does not stop it."""
    _try(lambda: run.resume(step))


def report_goes_on(run: RunOfWeek, task: str) -> None:
    """Report that a wait or a question is over; trouble in that loses no answer."""
    _try(lambda: run.goes_on(task))


def report_question(run: RunOfWeek, task: str, sentence: str) -> None:
    """Notify people that they are asked; trouble in that does not take the question back."""
    _try(lambda: run.asks(task, sentence))


def report_restated(run: RunOfWeek) -> None:
    """Report that files of a sealed week came again; trouble in that does not undo it."""
    _try(run.restated)


def report_failure(run: RunOfWeek, step: str, kind: str, sentence: str) -> None:
    """Report that a step stopped the run; trouble in that does not hide why."""
    _try(lambda: run.failed(step, kind, sentence))


def _try(report: Callable[[], None]) -> None:
    """Report something; log trouble by its kind."""
    try:
        report()
    except Exception as error:  # noqa: BLE001 - whatever it is, the report matters more
        _log.warning("a report failed: %s; the watchdog tries again", type(error).__name__)


def send_alerts(alerts: Iterable[Alert], settings: Settings) -> tuple[Alert, ...]:
    """Send what was not sent before to Airflow's connections; return it."""
    from turnstile.operations.watchdog.delivery import deliver, send_by_apprise

    return deliver(
        alerts,
        {severity: addresses_of(severity) for severity in Severity},
        Journal.of(settings),
        send=send_by_apprise,
        now=system_clock(),
        links=_links,
    )


def _links(alert: Alert) -> tuple[str, ...]:
    """Return where to look, below an alert."""
    address, links = address_of_ui(), []
    if alert.run_id:
        run = f"{address}/dags/{dag_of(alert.programme)}/runs/{quote(alert.run_id)}"
        task = alert.subject.partition(",")[0]
        if alert.rule not in {"people_asked", "people_reminded"}:
            links.append(f"run: {run}")
        elif task.startswith("ask_revision"):
            links.append(f"answer: {run}/tasks/{task}/required_actions")
        else:
            desk = f"{quote(alert.programme)}/{quote(alert.week)}"
            links.append(f"look and answer: {address}/privacy-budget/embargoed/{desk}")
    return (*links, f"budget: {address}/privacy-budget/", *runbook_link(alert))
