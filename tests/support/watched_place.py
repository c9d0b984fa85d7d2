"""A ledger, a journal and a clock, for tests of what is watched and reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from turnstile.ledger.amounts import Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.operations.alerts import Alert
from turnstile.operations.journal import Happening, Journal, Line, instant
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.operations.watch import watched
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit
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
    """A ledger whose cap is 1000 millionths of epsilon a card, and a journal."""

    ledger: Ledger
    journal: Journal
    clock: Clock

    @classmethod
    def new(cls, folder: Path) -> Self:
        clock = Clock()
        ledger = Ledger.open(f"sqlite:///{folder}/ledger.sqlite", clock=clock)
        return cls(ledger, Journal(folder / "journal"), clock)

    def reserve(self, week: str, cost: int = 10) -> str:
        posting = Posting(ProtectionUnit.CARD, "ever", cost, cost, 0)
        request = Request(
            key=ReleaseKey("opal", week),
            family="opal_cards",
            bindings=Bindings("p", "d", "s"),
            plan_digest="plan",
            events=(),
            postings=(posting,),
            week=week,
            caps=(Cap(ProtectionUnit.CARD, epsilon_micro=1000),),
        )
        return self.ledger.reserve(request).attempt_id

    def publish(self, week: str, cost: int = 10) -> None:
        attempt = self.reserve(week, cost)
        self.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
        self.ledger.seal(attempt, f"bytes of {week}")
        self.ledger.publish(ReleaseKey("opal", week), f"manifest of {week}")

    def say(self, happening: Happening, week: str, run_id: str = "run", **details: object) -> None:
        self.journal.write(Line(instant(self.clock.now), happening, "opal", week, run_id, details))

    def watched(
        self, state: str | None = "running", tasks: Mapping[str, str | None] | None = None
    ) -> list[Alert]:
        found = watched(
            LedgerFollower(self.ledger).now(),
            (OPAL,),
            self.journal,
            run_now=lambda dag_id, _: (
                (state, tasks or {"draw": "running"})
                if state is not None and dag_id == "release_opal"
                else None
            ),
            now=self.clock.now,
        )
        return list(found)
