"""One release as the trusted core sees it: programme, cells, key, folders and ledger.

Also what its earlier steps wrote down. Who opened it, and from where, is the pipeline's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from turnstile.errors import TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.release.zones import ReleaseFolders
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings

_log = logging.getLogger("turnstile")
Statement = tuple[str | None, str | None, str]
"""Reason and approver of a correction, None for a first release, and what the public is told."""


@dataclass(frozen=True)  # without slots: the plan is remembered in the instance
class PlannedRelease:
    """Everything that a step needs, except rows.

    Args:
        settings: where the zones are.
        programme: what is promised.
        domain: public cells.
        week: service week, or the service days of a longer period.
        key: name of the release for ever.
        ledger: open ledger.
        clock: source of the present instant.
    """

    settings: Settings
    programme: Programme
    domain: PublicDomain
    week: ServicePeriod
    key: ReleaseKey
    ledger: ChargingLedger
    clock: Callable[[], datetime]

    @property
    def folders(self) -> ReleaseFolders:
        """Where the records of this release live."""
        return ReleaseFolders(self.settings, self.key)

    @cached_property
    def plan(self) -> ReleasePlan:
        """The plan, made once from programme and calendar; it never sees data."""
        return make_plan(self.programme, self.domain, self.week, revision=self.key.revision)

    @property
    def sealed(self) -> Attempt | None:
        """The sealed attempt, if the key has its bytes."""
        attempt = self.ledger.find(self.key)
        return attempt if attempt is not None and attempt.is_sealed else None

    def say(self, sentence: str) -> None:
        """Log one sentence; it must hold nothing that was computed from rows."""
        _log.info("%s: %s", self.key, sentence)


def recorded(release: PlannedRelease, name: str, *, step: str) -> str:
    """Return a digest that an earlier step wrote down.

    Raises:
        TurnstileError: that step has not run.
    """
    path = release.folders.private / name
    if not path.exists():
        raise TurnstileError(f"{release.key}: step {step} has not run; run it first")
    return path.read_text()
