"""One family's accounts and caps as a fold over entries. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from turnstile.ledger.admission import Excess, binding_caps, first_excess
from turnstile.ledger.amounts import Cap
from turnstile.ledger.changes import NOTHING, AccountRow, Amount, amounts_by_row, changes_of
from turnstile.ledger.encoding import decode_cap
from turnstile.ledger.entries import Entry, EntryKind

if TYPE_CHECKING:
    from turnstile.privacy.accounts import Posting


@dataclass(slots=True)
class FoldedAccounts:
    """One family's rows and caps."""

    spent: defaultdict[AccountRow, Amount] = field(default_factory=lambda: defaultdict(Amount))
    held: defaultdict[AccountRow, Amount] = field(default_factory=lambda: defaultdict(Amount))
    caps: dict[str, tuple[Cap, ...]] = field(default_factory=dict)

    def taken(self, row: AccountRow) -> Amount:
        """Return what a row has spent and holds."""
        return self.spent.get(row, NOTHING).plus(self.held.get(row, NOTHING))

    def set_caps(self, entry: Entry) -> None:
        """Take the caps of a `cap_set` entry."""
        self.caps[entry.body["programme"]] = tuple(map(decode_cap, entry.body["caps"]))

    def apply(self, kind: EntryKind, postings: Iterable[Posting], week: str) -> None:
        """Move amounts as an entry says."""
        for change in changes_of(kind, postings, week):
            self.spent[change.row] = self.spent[change.row].plus(change.spent)
            self.held[change.row] = self.held[change.row].plus(change.held)

    def excess(self, postings: Iterable[Posting], week: str) -> Excess | None:
        """Say which cap a reservation would pass."""
        caps = binding_caps(cap for caps in self.caps.values() for cap in caps)
        return first_excess(caps, amounts_by_row(postings, week), week, self.taken)
