"""One family's accounts and caps as a fold over entries. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from turnstile.ledger.admission import (
    CapFigures,
    Excess,
    binding_caps,
    cap_figures,
    first_excess,
    most_taken,
)
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.balances.changes import (
    NOTHING,
    AccountRow,
    Amount,
    Change,
    amounts_by_row,
    changes_of,
    declared_changes,
)
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
    cap_figures: dict[AccountRow, CapFigures] = field(default_factory=dict)

    def taken(self, row: AccountRow) -> Amount:
        """Return what a row has spent and holds."""
        return self.spent.get(row, NOTHING).plus(self.held.get(row, NOTHING))

    def set_caps(self, entry: Entry) -> None:
        """Take the caps of a `cap_set` entry."""
        self.caps[entry.body["programme"]] = tuple(map(decode_cap, entry.body["caps"]))

    def apply(self, kind: EntryKind, postings: Iterable[Posting], weeks: str) -> None:
        """Move amounts as an entry says; a reservation also states the caps on its rows."""
        changes = changes_of(kind, postings, weeks)
        self._add(changes)
        if kind is EntryKind.RESERVED:
            caps = self._binding()
            self.cap_figures.update((c.row, cap_figures(c.row, caps)) for c in changes)

    def declare(self, postings: Iterable[Posting], weeks: str, draws: int) -> None:
        """Spend a declared loss, whatever the caps; its rows have none until next held."""
        changes = declared_changes(postings, weeks, draws)
        self._add(changes)
        self.cap_figures.update((change.row, (None, None, None)) for change in changes)

    def _add(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.spent[change.row] = self.spent[change.row].plus(change.spent)
            self.held[change.row] = self.held[change.row].plus(change.held)

    def _binding(self) -> tuple[Cap, ...]:
        """Return the caps in force."""
        return binding_caps(cap for caps in self.caps.values() for cap in caps)

    def excess(self, postings: Iterable[Posting], weeks: str) -> Excess | None:
        """Say which cap a reservation would pass."""
        return first_excess(self._binding(), amounts_by_row(postings, weeks), weeks, self.taken)

    def most_taken(self, postings: Iterable[Posting], weeks: str) -> dict[Cap, Amount]:
        """Return what each cap has taken, of the account of a posted loss that has least left."""
        return most_taken(self._binding(), amounts_by_row(postings, weeks), weeks, self.taken)
