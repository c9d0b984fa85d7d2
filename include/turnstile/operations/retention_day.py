"""One day of retention: who is told, what goes, what stays. Knows the journal and the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Any

from turnstile.errors import IntegrityError, TurnstileError
from turnstile.ledger.entries import instant
from turnstile.ledger.of_deployment import open_ledger
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.pipeline.private_zone.retention import NO_FILE, Retention, Verdict
from turnstile.programme.spec import RetentionSpec
from turnstile.settings import Settings

_ALL_WEEKS = "all"
_PATIENCE = timedelta(days=7)
"""How long data may stay beyond their days before somebody is told why."""


@dataclass(frozen=True)  # without slots: what becomes of everything is remembered in the instance
class RetentionDay:
    """Retention of a deployment at one moment; the zones are looked at once, when first asked.

    Args:
        settings: of the deployment.
        now: aware.
        said: person and reason, if all that is due may go, however much it is.
    """

    settings: Settings
    now: datetime
    said: tuple[str, ...] = ()

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return what becomes of all private data; changes nothing."""
        return self._verdicts

    def waiting(self) -> tuple[Verdict, ...]:
        """Return what is due and waits for people: of a changed file, or more than a day takes."""
        verdicts = (verdict for verdict in self.verdicts() if verdict.is_told_at_once)
        return tuple(verdict for verdict in verdicts if verdict.due and verdict.due <= self.now)

    def act(self) -> tuple[Verdict, ...]:
        """Write down whom to tell, delete what may go, and return that.

        The watchdog sends what is written down: whoever sees private data reaches no web.

        Raises:
            TurnstileError: something cannot be deleted; all else that may go is.
        """
        retention = self._retention
        for programme in retention.programmes:
            days = {"days": asdict(programme.retention)} if programme.retention else {}
            self._say_changed(programme.name, {"digest": programme.digest, **days})
        for name in retention.gone:
            self._say_changed(name, {"digest": NO_FILE})
        verdicts = self._verdicts
        self._announce(verdicts)
        gone, failures = list[Verdict](), list[TurnstileError]()
        for verdict in verdicts:
            with _kept_for_the_end(failures):
                if verdict.may_go(self.now) and retention.delete(verdict):
                    gone.append(verdict)
        with _kept_for_the_end(failures):
            retention.delete_reports(verdicts)
        if failures:
            is_grave = any(isinstance(error, IntegrityError) for error in failures)
            kind = IntegrityError if is_grave else TurnstileError
            raise kind("; and ".join(dict.fromkeys(map(str, failures))))
        return tuple(gone)

    @cached_property
    def _verdicts(self) -> tuple[Verdict, ...]:
        """What becomes of everything that is there."""
        return self._retention.verdicts()

    @cached_property
    def _retention(self) -> Retention:
        """What decides."""
        return Retention(
            self.settings,
            open_ledger(self.settings),
            self.now,
            self._alarmed_at,
            self._in_force_since,
            self._days_met,
            self.said,
        )

    def _in_force_since(self, programme: str, digest: str) -> datetime:
        """Return when a day of retention first met the present file of a programme, unbroken."""
        latest = reversed(self._changes(programme))
        met = [*takewhile(lambda line: line.details["digest"] == digest, latest)]
        return datetime.fromisoformat(met[-1].at) if met else self.now

    def _changes(self, programme: str) -> list[Line]:
        """Return every file of a programme that a day of retention met, oldest first."""
        lines = Journal.of(self.settings).of_week(programme, _ALL_WEEKS)
        return [line for line in lines if line.happening is Happening.CHANGED]

    def _days_met(self, programme: str, digest: str) -> RetentionSpec | None:
        """Return the days that a file of a programme stated when a day of retention met it."""
        met = (line.details for line in self._changes(programme))
        days = (of["days"] for of in met if of["digest"] == digest and "days" in of)
        return next((RetentionSpec(**stated) for stated in days), None)

    def _say_changed(self, programme: str, details: dict[str, Any]) -> None:
        """Write down the file of a programme that is another than the day before, and its days."""
        changes = self._changes(programme)
        if not changes or changes[-1].details != details:
            at = instant(self.now)
            line = Line(at, Happening.CHANGED, programme, _ALL_WEEKS, "", details)
            Journal.of(self.settings).write(line)

    def _alarmed_at(
        self, programme: str, period: str, after: datetime, words: str
    ) -> datetime | None:
        """Return when somebody was first told of a period, after its data were written."""
        lines = Journal.of(self.settings).of_week(programme, period)
        told = (datetime.fromisoformat(line.at) for line in lines if _is_alarm_sent(line, words))
        return min((at for at in told if at > after), default=None)

    def _announce(self, verdicts: Iterable[Verdict]) -> None:
        """Write a line about each period whose data go unfinished, or stay too long."""
        for verdict in verdicts:
            if verdict.due is None:
                continue
            if verdict.needs_alarm(self.now):
                for programme, period in verdict.unfinished:
                    self._say(
                        Happening.EXPIRES, programme, period, day=f"{verdict.due:%Y-%m-%d %H:%M}"
                    )
            if verdict.held and (verdict.is_told_at_once or verdict.due + _PATIENCE < self.now):
                why = {
                    "why": verdict.held,
                    "of": verdict.kept.name,
                    "part": verdict.kept.part.value,
                }
                for user, of in verdict.kept.users:
                    self._say(Happening.OVERSTAYS, user.name, str(of), **why)

    def _say(self, happening: Happening, programme: str, period: str, **details: str) -> None:
        """Write a line, unless the period has the same already."""
        journal = Journal.of(self.settings)
        said = ((line.happening, line.details) for line in journal.of_week(programme, period))
        if (happening, details) not in said:
            at = instant(self.now)
            journal.write(Line(at, happening, programme, period, details=details))


@contextmanager
def _kept_for_the_end(failures: list[TurnstileError]) -> Iterator[None]:
    """Let no data that cannot be deleted keep others beyond their days."""
    try:
        yield
    except TurnstileError as error:
        failures.append(error)


def _is_alarm_sent(line: Line, words: str) -> bool:
    """Return whether a line says that somebody was told something of data that go."""
    identity = str(line.details.get("identity", ""))
    return (
        line.happening is Happening.NOTIFIED
        and identity.startswith("retention_")
        and words in identity
    )
