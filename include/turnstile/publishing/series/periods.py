"""What became of every period of a programme, from the ledger's facts: pure.

A period without a release is as public as one with: a gap that nobody explains looks like a choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.service_calendar import ServicePeriod, ServiceWeek, is_period, parse_period


class PeriodState(StrEnum):
    """What a reader finds of a period."""

    PUBLISHED = "published"
    WITHDRAWN = "withdrawn"  # every published revision was
    NO_RELEASE = "no release"  # a person said so
    MISSING = "missing"  # between two others, and nobody said why


@dataclass(frozen=True, slots=True)
class Fact:
    """An entry of the ledger that the public sees.

    Args:
        sequence: its number.
        sha256: its hash.
        at: when it was written, ISO 8601 in UTC.
        reason: what a person wrote for the public; empty without one.
    """

    sequence: int
    sha256: str
    at: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Revision:
    """One published revision of a period."""

    key: ReleaseKey
    manifest_sha256: str
    published: Fact
    withdrawn: Fact | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """A period and its published revisions, oldest first."""

    period: ServicePeriod
    revisions: tuple[Revision, ...] = ()
    no_release: Fact | None = None

    @property
    def in_force(self) -> Revision | None:
        """The newest revision that was not withdrawn."""
        return next((one for one in reversed(self.revisions) if one.withdrawn is None), None)

    @property
    def state(self) -> PeriodState:
        """What a reader finds of it."""
        if self.in_force is not None:
            return PeriodState.PUBLISHED
        if self.revisions:
            return PeriodState.WITHDRAWN
        return PeriodState.NO_RELEASE if self.no_release else PeriodState.MISSING


def periods_of(programme: str, entries: Iterable[Entry]) -> tuple[Period, ...]:
    """Return every period from the first that is public to the last, in order.

    Args:
        programme: name.
        entries: of the ledger, oldest first.
    """
    revisions: dict[ReleaseKey, Revision] = {}
    without: dict[str, Fact] = {}
    for entry in entries:
        if entry.key is None or not entry.key.startswith(f"{programme}/"):
            continue
        key, body = ReleaseKey.parse(entry.key), entry.body
        fact = Fact(entry.sequence, entry.hash, entry.at, body.get("reason") or "")
        if entry.kind is EntryKind.PUBLISHED or (
            entry.kind is EntryKind.LOSS_DECLARED and body["state"] == ReleaseState.PUBLISHED
        ):
            manifest = str(body["manifest_digest"]).removeprefix("sha256:")
            revisions[key] = Revision(key, manifest, Fact(fact.sequence, fact.sha256, fact.at))
        elif entry.kind is EntryKind.WITHDRAWN and key in revisions:
            known = revisions[key]
            revisions[key] = Revision(key, known.manifest_sha256, known.published, fact)
        elif entry.kind is EntryKind.NO_RELEASE and is_period(key.period):
            without[key.period] = Fact(fact.sequence, fact.sha256, fact.at)
    by_period: defaultdict[str, list[Revision]] = defaultdict(list)
    for key in sorted(revisions, key=lambda key: key.revision):
        by_period[key.period].append(revisions[key])
    found = {
        (period := parse_period(name)): Period(
            period, tuple(by_period.get(name, ())), without.get(name)
        )
        for name in {*by_period, *without}
    }
    return tuple(sorted(_with_gaps(found), key=lambda one: one.period.first_day))


def _with_gaps(found: dict[ServicePeriod, Period]) -> Iterable[Period]:
    """Yield periods, and a missing one for each week between two that has none."""
    yield from found.values()
    weeks = sorted(period for period in found if isinstance(period, ServiceWeek))
    for before, after in pairwise(weeks):
        week = before.plus(1)
        while week < after:
            yield Period(week)
            week = week.plus(1)
