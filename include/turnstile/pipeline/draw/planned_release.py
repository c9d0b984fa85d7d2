"""One release as the trusted core sees it: programme, cells, key, folders and ledger.

Also what earlier steps wrote down, and what the ledger is told: a step has everything from
this one record. Who opened it, and from where, is the pipeline's business.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Self

from turnstile.errors import RefusedError, TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.records import Attempt, Bindings, ReleaseKey, Request
from turnstile.pipeline.code_version import code_version
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.programme.terms import binding_terms
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.release.zones import (
    ReleaseFolders,
    bounding_secret,
    commitment,
    known_secrets,
    landing_place,
    name_of_secret,
)
from turnstile.service_calendar import ServicePeriod, parse_period
from turnstile.settings import Settings

_log = logging.getLogger("turnstile")
COUNTED_AS = "counted_as.json"
"""Name of the note that says what a count is of."""
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
        """The plan, made once from programme and calendar; it never sees data.

        Caps change no draw, so that of a sealed key is held to none.
        """
        programme = self.programme if self.sealed is None else self.programme.charged
        return make_plan(programme, self.domain, self.week, revision=self.key.revision)

    @property
    def sealed(self) -> Attempt | None:
        """The sealed attempt, if the key has its bytes."""
        return self.ledger.revision(self.key).sealed

    @property
    def terms(self) -> dict[str, str]:
        """What of the programme decides loss and cells, key by key."""
        return binding_terms(self.programme, self.week)

    @property
    def bindings(self) -> Bindings:
        """Digests that the key is bound to."""
        return Bindings(
            programme_digest=self.programme.digest,
            domain_digest=self.domain.digest,
            snapshot_digest=commitment(
                bounding_secret(self.settings), self.recorded("snapshot", step="ingest")
            ),
        )

    def of(self, key: ReleaseKey) -> Self:
        """Return another week or revision of the same programme, as it is promised now."""
        return replace(self, key=key, week=parse_period(key.period))

    def recorded(self, name: str, *, step: str) -> str:
        """Return a digest that an earlier step wrote down.

        Raises:
            TurnstileError: that step has not run.
        """
        path = self.folders.private / name
        if not path.exists():
            raise TurnstileError(f"{self.key}: step {step} has not run; run it first")
        return path.read_text()

    def counted_as(self, exact: str) -> bytes:
        """Return what a count is of: its rows, cells, key, terms, and the code that counted.

        Tables of code that was mended since are those of the mistake: the loss is that of the code
        which is there now.

        Args:
            exact: digest of its tables.
        """
        of = {
            "snapshot": self.recorded("snapshot", step="ingest"),
            "domain": self.domain.digest,
            "terms": self.terms,
            "bounding_key": name_of_secret(bounding_secret(self.settings)),
            "engine": self.settings.counting_engine,
            "code": code_version(),
            "exact": exact,
        }
        return json.dumps(of, sort_keys=True).encode()

    def is_counted_so(self, exact: str) -> bool:
        """Return whether tables were counted from the present rows and terms, by this code.

        Args:
            exact: digest of the tables; a version before the note wrote none, and is believed.
        """
        note = self.folders.private / COUNTED_AS
        return not note.is_file() or note.read_bytes() == self.counted_as(exact)

    def require_counted_so(self) -> str:
        """Return the digest of the exact tables; those of other rows, terms or code are refused.

        Raises:
            RefusedError: they, or the plan, are others than when they were written down.
        """
        plan, planned = self.folders.embargoed / "plan.json", ""
        with suppress(ValueError, FileNotFoundError):  # never written, or cut by a loss of power
            planned = json.loads(plan.read_bytes())["plan_digest"]
        exact = self.recorded("exact", step="count")
        if planned != self.plan.digest or not self.is_counted_so(exact):
            again = f"turnstile run {self.key.programme} --week {self.key.period}"
            again += f" --revision {self.key.revision} --reason TEXT" if self.key.revision else ""
            raise RefusedError(
                f"{self.key}: programme, cells, rows, bounding key or code are others than when "
                "the week was planned and counted, or that was stopped, so nothing is charged; "
                f"clear its run from ingest on, or run it again: {again}"
            )
        return exact

    def request(self, statement: Statement) -> Request:
        """Return what the ledger has to know.

        Raises:
            RefusedError: what was counted is not what would be charged.
        """
        exact = self.require_counted_so()
        reason, approver, public_note = statement
        secret = bounding_secret(self.settings)
        return Request(
            key=self.key,
            family=self.plan.family,
            bindings=self.bindings,
            plan_digest=self.plan.digest,
            events=tuple(encode_event(event) for event in self.plan.events),
            postings=self.plan.postings,
            week=str(self.plan.charged_in),
            first_week=str(self.week.weeks[0]),
            landing=landing_place(self.settings, self.programme.source.landing),
            files=tuple(  # under earlier keys too: files of a group from before a rotation
                commitment(known, digest)
                for known in known_secrets(self.settings)
                for digest in self.recorded("files", step="ingest").split()
            ),
            exact=commitment(secret, exact),
            bounding_key=name_of_secret(secret),
            terms=self.terms,
            caps=tuple(ledger_cap(cap) for cap in self.programme.caps),
            reason=reason,
            approver=approver,
            public_note=public_note,
        )

    def say(self, sentence: str) -> None:
        """Log one sentence; it must hold nothing that was computed from rows."""
        _log.info("%s: %s", self.key, sentence)
