"""Which bounding key was in force when: as reservations name it, and rotations by people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.engine import Connection

from turnstile.ledger.entries import EntryKind, read_entry
from turnstile.ledger.facts import of_kinds

_NAMING = of_kinds((EntryKind.RESERVED, EntryKind.BOUNDING_KEY))


class TakenUp(NamedTuple):
    """What a person's rotation found and made.

    Args:
        previous: name of the key before, None if it was gone.
        name: of the new one.
        lost: names of those that had to be there and were not.
    """

    previous: str | None
    name: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundingKeys:
    """Every name of a key that the ledger states.

    Args:
        named: entry and name, oldest first.
        first: of what was reserved before keys were named: the first one, "" where that was lost
            before it had a name, None where none was ever named.
        lost: names of those that were not there any more when a person took up another.
    """

    named: tuple[tuple[int, str], ...] = ()
    first: str | None = None
    lost: frozenset[str] = frozenset()

    def at(self, sequence: int | None = None) -> str | None:
        """Return the name of the key in force at an entry, or now; None if none was ever named."""
        until = [name for since, name in self.named if sequence is None or since <= sequence]
        return until[-1] if until else self.first

    @property
    def kept(self) -> frozenset[str]:
        """Names of all that have to be there, the present one among them."""
        return self._until(None) - self.lost - {""}

    def are_lost(self, sequence: int) -> bool:
        """Return whether none is left of those under which an entry knows its files."""
        names = self._until(sequence)
        return bool(names) and names <= self.lost

    def _until(self, sequence: int | None) -> frozenset[str]:
        named = {name for since, name in self.named if sequence is None or since <= sequence}
        return frozenset(named if self.first is None else named | {self.first})


def bounding_keys_in(connection: Connection) -> BoundingKeys:
    """Read the names of a ledger."""
    named: list[tuple[int, str]] = []
    first: str | None = None
    lost = set[str]()
    for row in connection.execute(_NAMING):
        entry = read_entry(row.record, row.hash)
        is_rotation = entry.kind is EntryKind.BOUNDING_KEY
        name = entry.body["name"] if is_rotation else entry.body.get("bounding_key")
        if name is None:
            continue
        if not named:
            first = (entry.body["previous"] or "") if is_rotation else name
        if is_rotation:
            before = named[-1][1] if named else str(first)
            is_told = named and "lost" in entry.body  # else what was there tells, "" of no name
            lost.update(entry.body["lost"] if is_told else {before} - {entry.body["previous"]})
        named.append((entry.sequence, name))
    return BoundingKeys(tuple(named), first, frozenset(lost))
