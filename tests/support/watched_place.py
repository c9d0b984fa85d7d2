"""A ledger, a journal and a clock, for tests of what is watched and reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.entries import instant
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.operations.airflow_now import AirflowNow, RunNow, TaskNow
from turnstile.operations.calendar_of_weeks import calendar_of
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.operations.people.release_preview import WeekPreview
from turnstile.operations.programme_now import (
    BrokenProgramme,
    ProgrammeNow,
    programme_now,
    weeks_to_go_on_with,
)
from turnstile.operations.watchdog.alerts import Alert
from turnstile.operations.watchdog.private_comparison import of_looks, of_missing_looks
from turnstile.operations.watchdog.watch import watched
from turnstile.operations.week_states import Evidence, WeekMark
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.loading import load_programme

INCLUDE = Path(__file__).resolve().parents[2] / "include"
OPAL = load_programme("opal", INCLUDE)
MONDAY = datetime(2016, 8, 1, 12, tzinfo=UTC)


@dataclass
class Clock:
    """Time that a test moves."""

    now: datetime = MONDAY

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Place:
    """A ledger whose cap is 1000 millionths of epsilon a card, and a journal.

    Whether somebody looks every day is asked where `are_looks_asked` says so: few tests play them.
    """

    ledger: Ledger
    journal: Journal
    clock: Clock
    broken: list[BrokenProgramme] = field(default_factory=list)
    heard: datetime | None = None
    are_looks_asked: bool = False

    @classmethod
    def new(cls, folder: Path) -> Self:
        clock = Clock()
        ledger = Ledger.open(f"sqlite:///{folder}/ledger.sqlite", clock=clock)
        return cls(ledger, Journal(folder / "journal"), clock)

    def reserve(self, week: str, cost: int = 10, revision: int = 0) -> str:
        said = ("files changed", "ana") if revision else (None, None)
        posting = Posting(ProtectionUnit.CARD, "ever", cost, cost, 0)
        request = Request(
            key=ReleaseKey("opal", week, revision),
            family="opal_cards",
            bindings=Bindings("p", "d", "s"),
            plan_digest="plan",
            events=(),
            postings=(posting,),
            week=week,
            caps=(Cap(ProtectionUnit.CARD, epsilon_micro=1000),),
            reason=said[0],
            approver=said[1],
        )
        return self.ledger.reserve(request).attempt_id

    def seal(self, week: str, cost: int = 10) -> None:
        attempt = self.reserve(week, cost)
        self.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
        self.ledger.seal(attempt, f"bytes of {week}")

    def publish(self, week: str, cost: int = 10) -> None:
        self.seal(week, cost)
        self.ledger.publish(ReleaseKey("opal", week), f"manifest of {week}")

    def say(self, happening: Happening, week: str, run_id: str = "run", **details: object) -> None:
        self.journal.write(Line(instant(self.clock.now), happening, "opal", week, run_id, details))

    def airflow(
        self,
        state: str | None = "running",
        tasks: Mapping[str, str | None] | None = None,
        *,
        paused: bool = False,
    ) -> AirflowNow:
        """What an Airflow says whose runs of opal are all in one state, or that has none."""
        of = {name: TaskNow(task_state) for name, task_state in (tasks or {}).items()}
        ids = {line.run_id for line in self.journal.of_programme("opal")} - {""}
        runs = [] if state is None else [RunNow(run_id, "", state, of) for run_id in sorted(ids)]
        return AirflowNow({"opal": paused}, {"opal": tuple(runs)}, self.heard)

    def marks(
        self, airflow: AirflowNow | None = None, standing: ApprovalStanding | None = None
    ) -> tuple[WeekMark, ...]:
        """The calendar of opal, as a deployment that asked Airflow reads it."""
        keys = (str(attempt.key) for attempt in LedgerFollower(self.ledger).now().attempts)
        evidence = Evidence(
            self.journal.of_programme("opal"),
            dict.fromkeys(keys, standing) if standing else {},
            airflow or self.airflow(),
            self.ledger.living_draws(),
        )
        return calendar_of(OPAL, LedgerFollower(self.ledger).now(), evidence, self.clock.now)

    def now(
        self, airflow: AirflowNow | None = None, standing: ApprovalStanding | None = None
    ) -> ProgrammeNow:
        """Where opal stands."""
        marks = self.marks(airflow, standing)
        going_on = {
            week: WeekPreview(week, "charged", "another is drawn", "eps 4")
            for week in weeks_to_go_on_with(OPAL, marks, self.clock.now)
        }
        return programme_now(OPAL, marks, self.clock.now, airflow or self.airflow(), going_on)

    def watched(
        self,
        state: str | None = "running",
        tasks: Mapping[str, str | None] | None = None,
        *,
        paused: bool = False,
    ) -> list[Alert]:
        airflow = self.airflow(state, tasks or {"draw": "running"}, paused=paused)
        of_opal = (self.now(airflow), self.marks(airflow), self.journal.of_programme("opal"))
        picture = LedgerFollower(self.ledger).now()
        now = self.clock.now
        of_days = [*of_looks(self.journal)]
        if self.are_looks_asked:
            of_days += of_missing_looks(self.journal, picture.began, now)
        return list(watched(picture, [of_opal], self.broken, of_days, now))
