"""The ledger as a page reads it: folded once, then only what was appended since.

Ten years of entries take seconds to fold and a page may take none, so a long-lived process keeps
its fold. Nothing here decides anything; balances shown come from the ledger's own rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from turnstile.ledger.balances.amounts import amount_text
from turnstile.ledger.balances.changes import postings_in
from turnstile.ledger.balances.folded_accounts import FoldedAccounts
from turnstile.ledger.balances.forecast import CapForecast, costliest, forecasts
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.fold import Fold
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import AccountBalance, Attempt
from turnstile.ledger.weeks import PUBLIC_KINDS, Week, weeks_of
from turnstile.privacy.accounts import Posting


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One fact as a list shows it, without its events and postings."""

    sequence: int
    at: str
    kind: EntryKind
    key: str
    programme: str
    particulars: tuple[tuple[str, str], ...]
    hash: str


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """One state of the ledger.

    Args:
        lines: every fact, oldest first.
        attempts: every attempt, in the order of its reservation.
        family_of: programme to its budget group.
        forecasts: every coordinate of every cap.
        balances: every account.
        problems: number of entries that contradict what stands before them.
        accounts: of each budget group, folded from the entries; to copy, not to change.
        public: the entries that tell what became of periods, oldest first.
        burned: attempts that were charged and never sealed, each with what it was charged.
    """

    lines: Sequence[EntryLine]
    attempts: Sequence[Attempt]
    family_of: dict[str, str]
    forecasts: tuple[CapForecast, ...]
    balances: tuple[AccountBalance, ...]
    problems: int
    accounts: Mapping[str, FoldedAccounts] = field(default_factory=dict)
    public: Sequence[Entry] = ()
    burned: Sequence[tuple[Attempt, tuple[Posting, ...]]] = ()

    @property
    def began(self) -> str:
        """When the first fact was stated, ISO 8601; empty before."""
        return self.lines[0].at if self.lines else ""

    def weeks_of(self, programme: str) -> Mapping[str, Week]:
        """Return what became of every period of a programme, by its name."""
        return weeks_of(programme, self.attempts, self.public)


@dataclass(slots=True)
class LedgerFollower:
    """A fold that is kept and brought up to date; safe to share between threads.

    Args:
        ledger: opened for reading.
    """

    ledger: Ledger
    _fold: Fold = field(default_factory=Fold, init=False)
    _lines: list[EntryLine] = field(default_factory=list, init=False)
    _public: list[Entry] = field(default_factory=list, init=False)
    _problems: int = field(default=0, init=False)
    _snapshot: LedgerSnapshot | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def now(self) -> LedgerSnapshot:
        """Return the present state of the ledger."""
        with self._lock:
            entries = self._new_entries()
            if entries or self._snapshot is None:
                self._follow(entries)
                self._snapshot = self._drawn()
            return self._snapshot

    def _new_entries(self) -> tuple[Entry, ...]:
        """Read what was appended; all of another ledger that lies in this one's place by now."""
        last = self._lines[-1:]
        entries = tuple(self.ledger.entries(after=len(self._lines) - len(last)))
        if not last or (entries and entries[0].hash == last[0].hash):
            return entries[len(last) :]
        self._fold, self._lines, self._public, self._problems = Fold(), [], [], 0
        self._snapshot = None
        return tuple(self.ledger.entries())

    def _follow(self, entries: Sequence[Entry]) -> None:
        """Take new entries in."""
        for entry in entries:
            self._problems += len(tuple(self._fold.follow(entry)))
            self._lines.append(_line(entry))
            if entry.kind in PUBLIC_KINDS:
                self._public.append(entry)

    def _drawn(self) -> LedgerSnapshot:
        """Derive everything that a page shows."""
        return LedgerSnapshot(
            lines=tuple(self._lines),
            attempts=tuple(self._fold.attempts.values()),
            family_of=dict(self._fold.family_of),
            forecasts=forecasts(self._fold),
            balances=self.ledger.balance(),
            problems=self._problems,
            accounts=self._fold.accounts,
            public=tuple(self._public),
            burned=tuple(self._fold.burned()),
        )


def _cost(postings: Sequence[Posting]) -> str:
    """Say what a reservation takes of the costliest account of each unit."""
    costs = []
    for unit in dict.fromkeys(posting.unit for posting in postings):
        name, amount = "rho", costliest(postings, unit, "rho_nano")
        if amount is None:
            name, amount = "epsilon", costliest(postings, unit, "epsilon_micro")
        costs.append(f"{unit} {name} {amount_text(name, amount)}")
    return ", ".join(costs)


def _line(entry: Entry) -> EntryLine:
    """Keep what a list shows of an entry."""
    particulars = entry.particulars
    if entry.kind is EntryKind.RESERVED:
        particulars = (*particulars, ("holds", _cost(postings_in(entry.body))))
    key = entry.key or ""
    return EntryLine(
        sequence=entry.sequence,
        at=entry.at,
        kind=entry.kind,
        key=key,
        programme=key.partition("/")[0] or str(entry.body.get("programme", "")),
        particulars=particulars,
        hash=entry.hash,
    )
