"""One day of retention at a small deployment, at any hour: what goes, what is held, who is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from small_deployment import WEEK, Deployment

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.journal import Journal
from turnstile.operations.retention_day import RetentionDay
from turnstile.operations.watchdog.alerts import Alert, Severity, of_retention
from turnstile.operations.watchdog.delivery import deliver
from turnstile.pipeline.private_zone.private_data import Part
from turnstile.pipeline.private_zone.retention import Verdict
from turnstile.settings import Settings, system_clock

Cli = Callable[..., int]
NOW = system_clock() + timedelta(days=1)  # whenever a test of this run copies its files, before it
WINDOW = timedelta(days=60)
KEY = ReleaseKey("itms", WEEK)


def ledger_at(now: datetime, *, new: bool = False) -> Ledger:
    ledger = open_ledger(Settings.from_environment(), new=new)
    ledger._clock = lambda: now
    return ledger


def day(now: datetime) -> RetentionDay:
    """A day of a live deployment: something was written to the ledger just before."""
    ledger_at(now).confirm_clock("ada", "a live deployment")
    return RetentionDay(Settings.from_environment(), now)


def act(now: datetime = NOW) -> dict[tuple[str, str], Verdict]:
    return by_name(day(now).act())


def by_name(verdicts: tuple[Verdict, ...], of: str = "itms") -> dict[tuple[str, str], Verdict]:
    mine = [
        verdict for verdict in verdicts if any(user.name == of for user, _ in verdict.kept.users)
    ]
    return {(verdict.kept.name, verdict.kept.part.value): verdict for verdict in mine}


def held(now: datetime = NOW, part: Part = Part.ROWS) -> str:
    return by_name(day(now).verdicts())[WEEK, part].held


def tombstones() -> list[Mapping[str, Any]]:
    entries = open_ledger(Settings.from_environment()).entries()
    return [entry.body for entry in entries if entry.kind is EntryKind.DELETED]


def deletions() -> list[tuple[str, str, int]]:
    return [(body["period"], body["part"], body["days"]) for body in tombstones()]


def tell(now: datetime, of: str = "itms") -> tuple[Alert, ...]:
    """Do what the watchdog does: send what is written down."""
    journal = Journal.of(Settings.from_environment())
    alerts = of_retention(journal.of_programme(of))
    return deliver(alerts, dict.fromkeys(Severity, ("json://receiver",)), journal,
                   send=lambda *_: True, now=now)  # fmt: skip


def files_of(deployment: Deployment, *parts: str) -> list[str]:
    folder = deployment.home.joinpath(*parts)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                  if path.is_file())  # fmt: skip


def names_of(verdicts: tuple[Verdict, ...]) -> set[tuple[str, str]]:
    return set(by_name(verdicts, "opal_sums"))


def make_steady(landed: Deployment) -> None:
    from deployment_fixtures import STEADY_ITMS

    shutil.copyfile(STEADY_ITMS, landed.include / "programmes/itms.yaml")
