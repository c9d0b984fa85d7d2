"""What runs tell: the journal of each week, the first task's note, and alerts to people.

Alerts go where Airflow's connections say: `turnstile_alerts_critical`, `turnstile_alerts_error` and
`turnstile_alerts_warn`, each falling back to `turnstile_alerts`. A connection is of type `smtp`
(extra: `from_email`, `to`), `http` or `https` (a webhook that takes JSON), or any other type whose
extra holds `config: {"path": "<Apprise URL>"}` or a list of such, as Airflow's Apprise provider has
it: Slack, Teams and a hundred more.

Nothing here may stop a release: what cannot be told is logged by its kind and tried again by the
watchdog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from airflow.sdk import Connection

from turnstile.operations.alerts import Severity, of_budget, of_run
from turnstile.operations.journal import Happening, Journal, Line, instant
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from turnstile.operations.alerts import Alert

CONNECTION = "turnstile_alerts"
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
    """

    settings: Settings
    programme: str
    week: str
    run_id: str

    def begin(self, triggered_by: str) -> str:
        """Write that the run takes the week up; return what it will do to the budget."""
        note = _note(self.programme, self.week)
        told = {"triggered_by": triggered_by, "note": note, "revision": 0}
        self._write(Happening.BEGUN, **told)
        return note

    def did(self, step: str) -> None:
        """Write what a step that succeeded gives cause to tell; after the last, tell people."""
        if step == "ingest" and self._is_restated():
            self._write(Happening.RESTATED)
        if step == "validate":
            self._write_verdicts()
        if step == LAST_STEP:
            self._write(Happening.ENDED)
            self.tell()

    def failed(self, step: str, kind: str, sentence: str) -> None:
        """Write that a step stopped the run, and tell people."""
        if step == "validate":
            self._write_verdicts()
        self._write(Happening.FAILED, step=step, kind=kind, sentence=sentence)
        self.tell()

    def tell(self) -> None:
        """Send one digest of this run to those who are named for it."""
        from turnstile.release.context import open_ledger

        alerts = [*of_run(self._lines(), self.run_id)]
        alerts += of_budget(open_ledger(self.settings).forecast())
        send_alerts(alerts, self.settings)

    def _lines(self) -> tuple[Line, ...]:
        """Return the journal of the week."""
        return Journal.of(self.settings).of_week(self.programme, self.week)

    def _write(self, happening: Happening, **told: object) -> None:
        """Append a line about this run."""
        at = instant(system_clock())
        line = Line(at, happening, self.programme, self.week, self.run_id, told)
        Journal.of(self.settings).write(line)

    def _is_restated(self) -> bool:
        """Tell whether the files changed since the week was sealed."""
        from turnstile.release.inputs import RESTATED

        return (self.settings.private / self.programme / self.week / "r0" / RESTATED).exists()

    def _write_verdicts(self) -> None:
        """Write what may leave the private zone: one word a rule."""
        from turnstile.release.context import open_release
        from turnstile.release.inputs import verdicts

        release = open_release(self.programme, self.week)
        if release.sealed is None and (found := verdicts(release)):
            self._write(Happening.JUDGED, verdicts=found)


def told(run: RunOfWeek, step: str) -> None:
    """Tell that a step succeeded; trouble in telling does not undo the step."""
    try:
        run.did(step)
    except Exception as error:  # noqa: BLE001 - whatever it is, the step is done
        _log.warning("telling failed: %s; the watchdog tries again", type(error).__name__)


def told_failure(run: RunOfWeek, step: str, kind: str, sentence: str) -> None:
    """Tell that a step stopped the run; trouble in telling does not hide why."""
    try:
        run.failed(step, kind, sentence)
    except Exception as error:  # noqa: BLE001 - whatever it is, the failure itself is raised
        _log.warning("telling failed: %s; the watchdog tries again", type(error).__name__)


def send_alerts(alerts: Iterable[Alert], settings: Settings) -> tuple[Alert, ...]:
    """Send what was not told before to Airflow's connections; return it."""
    from turnstile.operations.delivery import deliver, send_by_apprise

    return deliver(
        alerts,
        {severity: addresses_of(severity) for severity in Severity},
        Journal.of(settings),
        send=send_by_apprise,
        now=system_clock(),
    )


def addresses_of(severity: Severity) -> tuple[str, ...]:
    """Return the Apprise URLs of a severity's connection; none where there is no connection."""
    for name in (f"{CONNECTION}_{severity}", CONNECTION):
        try:
            return urls_of(Connection.get(name))
        except Exception as error:  # noqa: BLE001 - outside a task, or no such connection
            _log.debug("connection %s: %s", name, type(error).__name__)
    return ()


def urls_of(connection: Connection) -> tuple[str, ...]:
    """Return the Apprise URLs that a connection stands for."""
    extra = connection.extra_dejson
    config = extra.get("config", ())
    if config:
        entries = [config] if isinstance(config, dict) else config
        return tuple(str(entry["path"]) for entry in entries)
    host = connection.host or "localhost"
    place = f"{host}:{connection.port}" if connection.port else host
    if connection.login:
        place = f"{quote(connection.login)}:{quote(connection.password or '', safe='')}@{place}"
    if connection.conn_type == "smtp":
        secure = "insecure" if extra.get("disable_tls") and extra.get("disable_ssl") else "starttls"
        query = {"from": extra["from_email"], "to": extra["to"], "smtp": host, "mode": secure}
        return (f"mailto://{place}?{urlencode(query)}",)
    is_secure = connection.conn_type == "https" or connection.schema == "https"
    path = str(extra.get("path", "")).lstrip("/")
    return (f"{'jsons' if is_secure else 'json'}://{place}/{path}",)


def _note(programme: str, week: str) -> str:
    """Say what running the steps of a week will do to the budget."""
    from turnstile.operations.plan_view import cost_in_words
    from turnstile.operations.run_notes import effect_on_budget
    from turnstile.release.context import open_release

    release = open_release(programme, week)
    attempts = release.ledger.attempts(release.key)
    entries = release.ledger.entries_of(release.key)
    return f"{release.key}: {effect_on_budget(attempts, entries, cost_in_words(release.plan))}"
