"""Packages that a ledger made where its entries are lost, as far as is known. Decides, no more.

A hold whose end is lost may have drawn; the package of its week tells, if this ledger made it. By
its number the entry that its card names is a lost one, no recovery gave it up, and its day lies
between those of the entries about it: the package of a copy of the ledger that was put back since,
and drew the week anew, is older than what is known. Of a copy that lives on beside it nobody knows
without a witness of both. Whoever puts a package there takes no loss away: it stands for as many
draws as it is charged for, each of the plan that it is charged at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from turnstile.ledger.custody.evidence_of_draws import (
    MALFORMED,
    UNKNOWN,
    Stated,
    plan_on,
    stated_by,
)
from turnstile.ledger.custody.known_history import History
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.traces import Trace
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import Attempt


def key_of(attempt_id: str) -> str:
    """Return the release that an attempt is of."""
    return attempt_id.rpartition("#")[0]


class MadePackage(NamedTuple):
    """A package whose card names a lost entry.

    Args:
        trace: of the package.
        number: of that entry.
        first_day: of those on which it may have been made, ISO 8601.
        last_day: likewise; empty where nobody knows.
    """

    trace: Trace
    number: int
    first_day: str
    last_day: str


@dataclass(frozen=True, slots=True)
class MadeBehind:
    """Packages made behind a hole, and how many of their draws are known.

    Args:
        packages: of every release.
        known: digests of the entries up to the hole.
        taken: how many of the draws that they are charged for are known, by release.
    """

    packages: tuple[MadePackage, ...]
    known: AbstractSet[str]
    taken: Counter[str] = field(default_factory=Counter)

    def has(
        self,
        name: str,
        entry: Entry | None,
        attempt: Attempt | None,
        stated: Mapping[str, str],
        said: Iterable[Mapping[str, Any]],
    ) -> bool:
        """Return whether a draw is one of those that a card states; the next one is another.

        Args:
            name: of the attempt.
            entry: the last that charged it; a card names its start.
            attempt: as it is known before the hole.
            stated: digests of its bytes, as far as they are known.
            said: what is left of it behind the hole.
        """
        plans = [body["plan_digest"] for body in said if "plan_digest" in body]
        numbers = [body["reserved_sequence"] for body in said if "reserved_sequence" in body]
        if attempt is not None:
            plans, numbers = [attempt.plan_digest], [*numbers, attempt.reserved_sequence]
        if not plans or any(body.get("snapshot_digest") == UNKNOWN for body in said):
            return False  # what a recovery declared may have cost more than its plan
        for trace, card in self._of(key_of(name), plans, numbers):
            lost = card.entries - self.known
            is_on = entry is None or entry.kind is EntryKind.DRAW_BEGUN or lost == {entry.hash}
            is_free = 1 + card.died - len(card.entries & self.known) > self.taken[trace.key]
            if is_on and is_free and stated.get("artefact_digest") in {None, trace.sealed}:
                self.taken[trace.key] += 1
                return True
        return False

    def bytes_of(self, attempt: Attempt, charged: int) -> str | None:
        """Return the digest of the bytes that a draw under way has sealed, if a package has them.

        Its card states as many charges as are known, and of one of them the start may be lost.

        Args:
            attempt: the draw.
            charged: how many draws of the release are known to be charged, this one included.
        """
        key, number = str(attempt.key), attempt.reserved_sequence
        for trace, card in self._of(key, [attempt.plan_digest], [number]):
            lost = len(card.entries - self.known)
            if lost <= 1 and len(card.entries) == 1 + card.died == charged:
                self.taken[key] += lost
                return trace.sealed
        return None

    def _of(
        self, key: str, plans: Sequence[object], numbers: Iterable[object]
    ) -> Iterator[tuple[Trace, Stated]]:
        """Yield the packages of a release, with their cards, on which a draw of a plan may be.

        Args:
            key: of the release.
            plans: what is stated of the digest of its plan.
            numbers: of entries that are there since it was reserved, or before.
        """
        for trace, number, first_day, last_day in self.packages:
            if trace.key != key or file_problems(trace.path):
                continue
            card = stated_by(trace.path)
            is_later = all(isinstance(before, int) and before < number for before in numbers)
            is_of_days = first_day <= card.built_at <= (last_day or card.built_at)
            is_paid = len(card.entries) <= 1 + card.died
            if is_later and is_of_days and is_paid and plans.count(plan_on(trace)) == len(plans):
                yield trace, card


def made_behind(
    history: History, entries: Iterable[Entry], packages: Iterable[Trace]
) -> MadeBehind:
    """Find the packages whose cards name entries that are lost, and that no recovery gave up.

    Args:
        history: up to the hole.
        entries: what is left of them behind it.
        packages: of every release.
    """
    behind = tuple(entries)
    at = {e.sequence - 1: e.previous for e in behind} | {e.sequence: e.hash for e in behind}
    given_up, made_there = [*_given_up(behind)], []
    for trace in packages:
        head = trace.head
        if head is None or head[0] <= max(history.hashes) or at.get(*head) != head[1]:
            continue
        if list(head) not in given_up and not history.parties.is_superseded(*head):
            days = _days_about(head[0], history, behind)
            made_there.append(MadePackage(trace, head[0], *days))
    return MadeBehind(tuple(made_there), frozenset(history.hashes.values()))


def _given_up(behind: Iterable[Entry]) -> Iterator[object]:
    """Yield the entries, number and digest, that recoveries behind a hole could not bring back."""
    for entry in behind:
        with suppress(*MALFORMED):
            yield from entry.body.get("superseded", ())


def _days_about(number: int, history: History, behind: Iterable[Entry]) -> tuple[str, str]:
    """Return the days of the last entry known before a number and of the first one after it."""
    before, after = [history.last_at or ""], list[str]()
    for entry in behind:
        (before if entry.sequence <= number else after).append(str(entry.at))
    return max(before).partition("T")[0], min(after, default="").partition("T")[0]
