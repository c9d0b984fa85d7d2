"""What the ledger knows, read without changing it: attempts, balances, facts, head, forecasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from sqlalchemy import func, select

from turnstile.ledger import attempts, facts, leases, revisions, words
from turnstile.ledger.balances.charged_releases import ChargedRelease, charged_releases
from turnstile.ledger.balances.forecast import CapForecast, forecasts
from turnstile.ledger.balances.stored_accounts import account_balances
from turnstile.ledger.bounding_keys import BoundingKeys, bounding_keys_in
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.export import write_export
from turnstile.ledger.custody.known_history import parties_in, read_history
from turnstile.ledger.custody.traces import CARD, TraceKind, package_trace, trace_findings
from turnstile.ledger.custody.witness import Witnesses
from turnstile.ledger.custody.zone_index import signed_list
from turnstile.ledger.database.damaged_database import damage_in
from turnstile.ledger.database.database_tables import ENTRY
from turnstile.ledger.database.store import Store
from turnstile.ledger.entries import Entry, EntryKind, read_entry
from turnstile.ledger.fold import Fold
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import (
    AccountBalance,
    Assessed,
    Attempt,
    Decision,
    Finding,
    Publication,
    ReleaseKey,
)
from turnstile.ledger.verification import Scope, verify_store
from turnstile.ledger.weeks import PUBLIC_KINDS, Week

Clock = Callable[[], datetime]
_ROWS_AT_ONCE = 200


class LedgerView(ChargingLedger):
    """A ledger to look at; each call sees one state of it."""

    def __init__(
        self, store: Store, *, clock: Clock, witnesses: Witnesses, embargoed: Path | None = None
    ) -> None:
        self._witnesses = witnesses
        self._custody: Custody
        super().__init__(store, clock, Custody(store, witnesses, embargoed, clock))

    @classmethod
    def open(  # noqa: PLR0913 - each a folder of the deployment
        cls,
        url: str,
        *,
        clock: Clock,
        witnesses: Sequence[Path] = (),
        public: Path | None = None,
        embargoed: Path | None = None,
        key: Path | None = None,
        read_only: bool = False,
    ) -> Self:
        """Open a ledger, and make or migrate its tables first if need be.

        Args:
            url: `sqlite:///path` or `postgresql+psycopg://user@host/database`.
            clock: returns the present instant, aware of its zone.
            witnesses: folders of second places for signed checkpoints.
            public: public zone; checkpoints go beside its publications.
            embargoed: zone of sealed bytes; every trace in it is compared before a charge.
            key: private signing key; by default `ledger-key.pem` beside the public zone, else
                beside an SQLite file. Made on first use, and known from then on.
            read_only: make nothing and change nothing, not even the version of the tables.

        Raises:
            InputError: the store cannot be reached or written.
        """
        store = Store(url, read_only=read_only)
        near = public.parent if public is not None else store.folder
        key = key or (None if near is None else near / "ledger-key.pem")
        folders = Witnesses(tuple(witnesses), public, key)
        return cls(store, clock=clock, witnesses=folders, embargoed=embargoed)

    def attempts(self, key: ReleaseKey) -> tuple[Attempt, ...]:
        """Return every attempt at a key, oldest first; the burned ones were charged too."""
        return self._store.read(lambda c: attempts.attempts(c, key))

    def living_draws(self) -> frozenset[str]:
        """Return the attempts that a process draws under at this moment."""
        return self._store.read(leases.living)

    def package_findings(self, key: ReleaseKey, package: Path) -> tuple[Finding, ...]:
        """Compare what a staged package states with the entries: key, sealed bytes, card's head.

        Args:
            key: release that it is to be published under.
            package: its folder.
        """
        trace = package_trace(TraceKind.STAGED, str(key), package)
        if trace.head is None:
            return (Finding("card", None, f"{package / CARD} names no entry of the ledger"),)
        history = self._store.read(read_history)
        return tuple(trace_findings((trace,), history.attempts, history.card_hash_at))

    def week(self, programme: str, period: str) -> Week:
        """Return what became of one period; an empty one if the ledger knows nothing of it."""
        return self.weeks(programme).get(period, Week(period))

    def bounding_keys(self) -> BoundingKeys:
        """Return which bounding key was in force when."""
        return self._store.read(bounding_keys_in)

    def publication(self, key: ReleaseKey) -> Publication | None:
        """Return where the ledger stood when a key was published, or None."""
        return self._store.read(lambda c: attempts.publication(c, key))

    def balance(self, family: str | None = None) -> tuple[AccountBalance, ...]:
        """Return every account of a family (or of all), sorted, and the most spent windows."""
        return self._store.read(lambda c: account_balances(c, family))

    def charged(self, family: str) -> tuple[ChargedRelease, ...]:
        """Return every charged attempt of a family with its draws, the burned ones too."""
        return self._store.read(lambda c: charged_releases(c, family))

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Yield every fact after a sequence number, in order, of one state of the ledger."""
        with self._store.reading() as connection:
            later = ENTRY.c.sequence > after
            query = select(ENTRY.c.record, ENTRY.c.hash).where(later).order_by(ENTRY.c.sequence)
            rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
            for row in rows:
                yield read_entry(row.record, row.hash)

    def entries_of(self, key: ReleaseKey) -> tuple[Entry, ...]:
        """Return every fact about a key, oldest first."""
        return self._store.read(lambda c: facts.facts(c, key, *EntryKind))

    def head(self) -> tuple[int, str]:
        """Return sequence and hash of the last entry; `(0, 64 zeros)` of an empty ledger."""
        return self._store.read(facts.head)

    def verify(self, scope: Scope | None = None) -> tuple[Finding, ...]:
        """Recompute everything that follows from entries and files; return what disagrees.

        Args:
            scope: how far to go; by default every package file by file.
        """
        if self._store.file and (damage := damage_in(self._store.file)):
            problem = f"the file is damaged ({damage}); stop runs, then turnstile ledger recover"
            return (Finding("database", None, problem),)
        how, version = scope or Scope(), self._store.version()
        return self._store.read(lambda c: tuple(verify_store(c, self._custody, how, version)))

    def checkpoint(self) -> str:
        """Sign the head, write it to every witness and to the public zone, and return the note.

        Raises:
            InputError: the ledger has no place for a key, or a folder cannot be written.
        """
        self._custody.adopt()
        self._custody.ship()
        return self._witnesses.write(self.head(), superseded=self.parties().is_superseded)

    def forecast(self, family: str | None = None) -> tuple[CapForecast, ...]:
        """Return in which week each cap is reached with the present programmes."""
        fold = Fold()
        for entry in self.entries():
            tuple(fold.follow(entry))
        return forecasts(fold, family)

    def export(self, folder: Path) -> int:
        """Write a complete, signed copy that verifies without this database; return its length.

        Raises:
            InputError: the folder is not empty or cannot be written, or there is no key.
        """
        return write_export(self.entries(), folder, self._witnesses, self.parties().key_lines)

    def parties(self) -> Parties:
        """Return the keys and witnesses that the ledger knows."""
        return self._store.read(parties_in)

    def public_list(self) -> Mapping[str, str]:
        """Return digests of the public zone by path, as its signed list has them."""
        public = self._witnesses.public
        return {} if public is None else signed_list(public, self.trusted_to_list())

    def trusted_to_list(self) -> tuple[str, ...]:
        """Return the public lines of which one has to have signed the list of the public zone.

        An earlier key counts until something is published under the next one, and no longer: it may
        have been stolen.
        """
        parties = self.parties()
        trusted_lines = self._witnesses.trusted_at(parties)(self.head()[0])
        kinds = [kind.value for kind in PUBLIC_KINDS]
        query = select(func.max(ENTRY.c.sequence)).where(ENTRY.c.kind.in_(kinds))
        last = self._store.read(lambda c: c.execute(query).scalar_one())
        is_new = bool(parties.keys) and parties.keys[-1][0] > (last or 0)
        return tuple(dict.fromkeys((*trusted_lines, *(parties.key_lines if is_new else ()))))

    def assessment(self, key: ReleaseKey) -> Assessed | None:
        """Return what the gates last said of a key, or None."""
        return self._store.read(lambda c: words.assessment(c, key))

    def approvals(self, key: ReleaseKey) -> tuple[Decision, ...]:
        """Return every decision about a key, approvals and refusals, oldest first."""
        return self._store.read(lambda c: words.decisions(c, key))

    def deliveries(self, key: ReleaseKey) -> frozenset[str]:
        """Return the portals at which every byte of a release was read back."""
        return self._store.read(lambda c: words.deliveries(c, key))

    def decisions_on_revision(self, key: ReleaseKey) -> tuple[revisions.RevisionDecision, ...]:
        """Return what people said about making a correction, oldest first."""
        return self._store.read(lambda c: revisions.words(c, key))
