"""Packages that a ledger made where its entries are lost, as far as is known. Decides, no more.

A hold whose end is lost may have drawn; the package of its week tells, if this ledger made it. By
its number the entry that its card names is a lost one, no recovery gave it up, and its day lies
between those of the entries about it: the package of a copy of the ledger that was put back since,
and drew the week anew, is older than what is known. Of a copy that lives on beside it nobody knows
without a witness of both. Whoever puts a package there takes no loss away: it is charged, at the
plan of the draw that it stands for, and each charge on its card stands for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from turnstile.ledger.custody.evidence_of_draws import plan_on, stated_by
from turnstile.ledger.custody.known_history import History
from turnstile.ledger.custody.traces import Trace
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import Attempt


@dataclass(frozen=True, slots=True)
class MadeBehind:
    """Packages made behind a hole, and the draws that are known to be theirs.

    Args:
        charges: packages with the charges on their cards that are lost.
        taken: how many of these are of draws that are known, by release.
    """

    charges: tuple[tuple[Trace, AbstractSet[str]], ...]
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
        plans = [attempt.plan_digest] if attempt else [body.get("plan_digest") for body in said]
        rows = [body["reserved_sequence"] for body in said if "reserved_sequence" in body]
        numbers = [attempt.reserved_sequence] if attempt else rows
        key = name.rpartition("#")[0]
        for trace, charges in self.charges:
            is_free = trace.key == key and len(charges) > self.taken[key]
            is_its = is_free and stated.get("artefact_digest") in {None, trace.sealed}
            is_its &= _may_be_on(charges, entry) and _are_before(numbers, trace)
            if is_its and plans and all(plan == plan_on(trace) for plan in plans):
                self.taken[key] += 1
                return True
        return False

    def lost_on(self, package: Trace) -> AbstractSet[str]:
        """Return the charges on the card of a package that are lost; none of one made elsewhere."""
        return next((charges for trace, charges in self.charges if trace == package), frozenset())


def made_behind(
    history: History, entries: Iterable[Entry], packages: Iterable[Trace]
) -> MadeBehind:
    """Find the packages.

    Args:
        history: up to the hole.
        entries: what is left of them behind it.
        packages: of every release.
    """
    behind, known = tuple(entries), frozenset(history.hashes.values())
    at = {e.sequence: e.hash for e in behind} | {e.sequence - 1: e.previous for e in behind}
    found = []
    for trace in packages:
        if trace.head is None or trace.head[0] <= max(history.hashes):
            continue
        is_ours = at.get(*trace.head) == trace.head[1]
        if is_ours and not history.parties.is_superseded(*trace.head):
            card, (first, last) = stated_by(trace.path), _days_about(trace.head[0], history, behind)
            if first <= card.built_at <= (last or card.built_at):
                found.append((trace, card.entries - known))
    return MadeBehind(tuple(found))


def _days_about(number: int, history: History, behind: Iterable[Entry]) -> tuple[str, str]:
    """Return the days of the last entry known before a number and of the first one after it."""
    before, after = [history.last_at or ""], list[str]()
    for entry in behind:
        (before if entry.sequence <= number else after).append(str(entry.at))
    return max(before).partition("T")[0], min(after, default="").partition("T")[0]


def _may_be_on(charges: AbstractSet[str], entry: Entry | None) -> bool:
    """Return whether charges that cards name may be those of a draw of which an entry is left."""
    return entry is None or entry.kind is EntryKind.DRAW_BEGUN or charges == {entry.hash}


def _are_before(numbers: Iterable[object], trace: Trace) -> bool:
    last = 0 if trace.head is None else trace.head[0]
    return all(isinstance(number, int) and number < last for number in numbers)
