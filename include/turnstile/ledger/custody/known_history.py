"""What the database knows that something outside of it can be compared with, in one reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.ledger.attempts import to_attempt
from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.entries import GENESIS, EntryKind, read_entry
from turnstile.ledger.parties import PARTY_KINDS, Parties
from turnstile.ledger.records import Attempt

_KINDS = [kind.value for kind in (*PARTY_KINDS, EntryKind.RECOVERED)]
_OF_PARTIES = (
    select(ENTRY.c.record, ENTRY.c.hash)
    .where(ENTRY.c.release_key.is_(None), ENTRY.c.kind.in_(_KINDS))
    .order_by(ENTRY.c.sequence)
)
_HASHES = select(ENTRY.c.sequence, ENTRY.c.hash).order_by(ENTRY.c.sequence)
_ATTEMPTS = select(ATTEMPT).order_by(ATTEMPT.c.reserved_sequence)
_LAST = select(ENTRY.c.record, ENTRY.c.hash).order_by(ENTRY.c.sequence.desc()).limit(1)


@dataclass(frozen=True, slots=True)
class History:
    """One state of the ledger.

    Args:
        hashes: of every entry, by sequence.
        attempts: by release key, in the order of their reservation.
        parties: keys, witnesses and declared losses of entries.
        last_at: when the last entry was written, or the clock last confirmed; None if empty.
    """

    hashes: dict[int, str]
    attempts: dict[str, list[Attempt]]
    parties: Parties
    last_at: str | None

    @property
    def of_entries(self) -> list[str]:
        """The hash of every entry, the first one first."""
        return [entry_hash for sequence, entry_hash in self.hashes.items() if sequence]

    def hash_at(self, sequence: int) -> str | None:
        """Look up the hash of an entry."""
        return self.hashes.get(sequence)

    def card_hash_at(self, head: tuple[int, str]) -> str | None:
        """Look up the hash of an entry that a card names; one that is declared lost is itself."""
        if self.parties.is_superseded(*head):
            return head[1]
        return self.hashes.get(head[0])


def read_history(connection: Connection) -> History:
    """Read it; a few milliseconds a thousand entries."""
    hashes = {0: GENESIS}
    hashes.update((row.sequence, row.hash) for row in connection.execute(_HASHES))
    attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in map(to_attempt, connection.execute(_ATTEMPTS)):
        attempts[str(attempt.key)].append(attempt)
    return History(hashes, attempts, parties_in(connection), _last_at(connection))


@dataclass(frozen=True, slots=True)
class DeclaredDraws:
    """What recoveries declared, by release key.

    Args:
        beyond: draws beyond one an entry.
        proven: digests of packages at keys that have other bytes: as long as one lies there it
            proves them.
        leftovers: names of the files of draws that died for which somebody charged.
    """

    beyond: Mapping[str, int]
    proven: Mapping[str, AbstractSet[str]]
    leftovers: Mapping[str, AbstractSet[str]]


def declared_draws(connection: Connection) -> DeclaredDraws:
    """Read what recoveries declared."""
    query = select(ENTRY.c.record, ENTRY.c.hash)
    draws: dict[str, int] = defaultdict(int)
    proven: dict[str, set[str]] = defaultdict(set)
    leftovers: dict[str, set[str]] = defaultdict(set)
    kinds = (EntryKind.LOSS_DECLARED.value, EntryKind.RECOVERED.value)
    for row in connection.execute(query.where(ENTRY.c.kind.in_(kinds))):
        body = read_entry(row.record, row.hash).body
        if "key" not in body:  # of a recovery: files of what was charged before
            for key, names in body.get("leftovers", {}).items():
                leftovers[key].update(names)
            continue
        draws[body["key"]] += int(body["draws"]) - 1
        if "proven_by" in body:
            proven[body["key"]].add(body["proven_by"])
        leftovers[body["key"]].update(body.get("leftovers", ()))
    return DeclaredDraws(draws, proven, leftovers)


def parties_in(connection: Connection) -> Parties:
    """Fold the facts that name keys, witnesses and lost entries."""
    return Parties.of(read_entry(row.record, row.hash) for row in connection.execute(_OF_PARTIES))


def _last_at(connection: Connection) -> str | None:
    """Return when the last entry was written."""
    row = connection.execute(_LAST).one_or_none()
    return None if row is None else read_entry(row.record, row.hash).at
