"""The hash chain: whether a sequence of entries is complete, in order and unaltered. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.ledger.encoding import digest_of
from turnstile.ledger.entries import GENESIS, Entry
from turnstile.ledger.records import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator


class Chain:
    """Follows entries one by one and says what does not fit.

    Attributes:
        head: sequence and hash of the last entry followed.
        hashes: hash of each entry seen, by sequence.
    """

    def __init__(self) -> None:
        self.head: tuple[int, str] = (0, GENESIS)
        self.hashes: dict[int, str] = {0: GENESIS}

    def follow(self, entry: Entry) -> Iterator[Finding]:
        """Check that an entry continues the chain, then take it as the new head."""
        sequence, hash_before = self.head
        if entry.sequence != sequence + 1:
            problem = f"follows entry {sequence}; entries are missing or out of order"
            yield Finding("chain", entry.sequence, problem)
        elif entry.previous != hash_before:
            yield Finding("chain", entry.sequence, "does not name the hash of the entry before it")
        if digest_of(entry.record) != entry.hash:
            yield Finding("chain", entry.sequence, "its hash is not the hash of its text")
        self.head = (entry.sequence, entry.hash)
        self.hashes[entry.sequence] = entry.hash
