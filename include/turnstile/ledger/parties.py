"""Who signs and who keeps copies: the ledger's keys and witnesses, as its facts say. Pure.

A key signs every note from its fact on; the first one also signed what came before, because ledgers
of version 0.1.0 did not name theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from turnstile.ledger.entries import Entry, EntryKind

PARTY_KINDS = (
    EntryKind.SIGNING_KEY,
    EntryKind.LOG_BEGUN,
    EntryKind.LOG_DISPUTED,
    EntryKind.WITNESS_ADDED,
    EntryKind.WITNESS_REMOVED,
)
FIRST_USE = ("deployment", "first use")
"""Person and reason of a key or witness that the ledger took up by itself."""


@dataclass(frozen=True, slots=True)
class LogBegun:
    """A transparency log over the ledger's entries.

    Args:
        sequence: of the entry that names it; its checkpoints hold that one too.
        origin: name of the log, for ever.
        public_line: C2SP verifier key that signs its checkpoints.
        earlier: folders of logs that a lost ledger began.
    """

    sequence: int
    origin: str
    public_line: str
    earlier: tuple[str, ...] = ()


@dataclass(slots=True)
class Parties:
    """Keys in the order in which they came, witnesses that are not removed, lost entries.

    Attributes:
        keys: pairs (first entry under the key, public line).
        witnesses: folder by witness.
        since: number of the entry that added a witness.
        superseded: hashes of entries that a recovery could not bring back, by sequence.
        logs: transparency logs in the order in which they were begun.
        disputes: pairs (origin of a log, cosigner that has seen another tree than its).
        lost: files that were lost and declared so: `opal/2016-W30/r0 sealed` or `... package`.
        recoveries: how often the ledger was brought back, lost histories included.
        recovered_over: the last entry that recoveries saw of a ledger recovered less often, by
            that number; from the first on of which an entry says what was seen.
    """

    keys: list[tuple[int, str]] = field(default_factory=list)
    witnesses: dict[str, str] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    superseded: dict[int, set[str]] = field(default_factory=dict)
    logs: list[LogBegun] = field(default_factory=list)
    disputes: set[tuple[str, str]] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    recoveries: int = 0
    recovered_over: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Parties:
        """Fold the facts that name parties; others change nothing."""
        parties = cls()
        for entry in entries:
            parties.follow(entry)
        return parties

    def follow(self, entry: Entry) -> None:
        """Take one fact in."""
        body = entry.body
        if entry.kind is EntryKind.SIGNING_KEY:
            self.keys.append((entry.sequence, body["public_line"]))
        elif entry.kind is EntryKind.LOG_BEGUN:
            named = (body["origin"], body["public_line"], tuple(body["earlier"]))
            self.logs.append(LogBegun(entry.sequence, *named))
        elif entry.kind is EntryKind.LOG_DISPUTED:
            self.disputes.add((body["origin"], body["cosigner"]))
        elif entry.kind is EntryKind.WITNESS_ADDED:
            self.witnesses[body["witness"]] = body["folder"]
            self.since[body["witness"]] = entry.sequence
        elif entry.kind is EntryKind.WITNESS_REMOVED:
            self.witnesses.pop(body["witness"], None)
        elif entry.kind is EntryKind.RECOVERED:
            self._see(entry.sequence - 1, body)
            self.lost.update(body["lost"])
            for sequence, lost in body["superseded"]:
                self.superseded.setdefault(sequence, set()).add(lost)

    def _see(self, head: int, body: Mapping[str, Any]) -> None:
        """Count a recovery, and keep what it saw: this ledger's own end, and what series showed."""
        before, known = self.recoveries, self.recovered_over
        self.recoveries = max(before + 1, body.get("recoveries", 0))
        for count, last in ((before, head), *body["over"]) if "over" in body else ():
            if count >= min(known, default=before):
                known[count] = max(last, known.get(count, 0))

    @property
    def key(self) -> str | None:
        """Public line of the key in force; None if the ledger never named one."""
        return self.keys[-1][1] if self.keys else None

    @property
    def disputed_by(self) -> tuple[str, ...]:
        """Names of cosigners that have seen another tree than that of the log in force."""
        origin = self.logs[-1].origin if self.logs else None
        return tuple(sorted(name for log, name in self.disputes if log == origin))

    @property
    def key_lines(self) -> tuple[str, ...]:
        """Public lines of all keys, the first one first."""
        return tuple(dict.fromkeys(line for _, line in self.keys))

    def key_at(self, sequence: int) -> str | None:
        """Return the public line that had to sign a note of this many entries."""
        public_line = self.keys[0][1] if self.keys else None
        for first, line in self.keys:
            if first <= sequence:
                public_line = line
        return public_line

    def is_superseded(self, sequence: int, entry_hash: str) -> bool:
        """Return whether a note speaks of an entry that is declared lost."""
        return entry_hash in self.superseded.get(sequence, ())


def is_overlooked(shown: tuple[int, int], recoveries: int, over: Mapping[int, int]) -> bool:
    """Return whether another publisher wrote a series, and no recovery of ours saw that much.

    Args:
        shown: recoveries and last entry of its ledger.
        recoveries: of ours.
        over: as `Parties.recovered_over`.
    """
    is_known = bool(over) and min(over) <= shown[0] < recoveries
    return is_known and shown[1] > over.get(shown[0], 0)
