"""What entries mean, folded from the first to the last, with every disagreement found. Pure.

The fold trusts nothing but the entries: it follows the chain, makes each transition that a fact
states (and names the one that the state machine forbids), keeps all accounts, and checks every
reservation against the caps in force at that moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from turnstile.errors import InputError
from turnstile.ledger.chain import Chain
from turnstile.ledger.changes import postings_in, weeks_in
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.folded_accounts import FoldedAccounts
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import Attempt, Bindings, Finding, ReleaseKey
from turnstile.ledger.states import (
    CHARGED_STATES,
    OPEN_STATES,
    SEALED_STATES,
    ReleaseState,
    Transition,
    is_allowed,
    target_of,
)
from turnstile.privacy.accounts import Posting

_TRANSITION_OF_KIND = {
    EntryKind.DRAW_BEGUN: Transition.BEGIN_DRAW,
    EntryKind.SEALED: Transition.SEAL,
    EntryKind.BURNED: Transition.BURN,
    EntryKind.VOIDED: Transition.VOID,
    EntryKind.PUBLISHED: Transition.PUBLISH,
}


_BOUND = ("programme", "domain", "snapshot", "plan")


@dataclass(slots=True)
class FoldedAttempt:
    """One attempt, folded from the entries."""

    attempt_id: str
    key: str
    family: str
    week: str
    weeks: str
    bound: tuple[str, ...]
    postings: tuple[Posting, ...]
    reserved_sequence: int
    state: ReleaseState = ReleaseState.RESERVED
    artefact_digest: str | None = None
    manifest_digest: str | None = None
    is_withdrawn: bool = False
    has_started: bool = False

    @property
    def record(self) -> Attempt:
        """Return it as the ledger answers it."""
        *bound, plan = self.bound
        return Attempt(
            self.attempt_id,
            ReleaseKey.parse(self.key),
            self.family,
            self.week,
            self.state,
            Bindings(*bound),
            plan,
            self.artefact_digest,
            self.manifest_digest,
            self.reserved_sequence,
            self.is_withdrawn,
        )


@dataclass(slots=True)
class Fold:
    """Everything that follows from the entries seen so far."""

    chain: Chain = field(default_factory=Chain)
    accounts: defaultdict[str, FoldedAccounts] = field(
        default_factory=lambda: defaultdict(FoldedAccounts)
    )
    attempts: dict[str, FoldedAttempt] = field(default_factory=dict)
    by_key: defaultdict[str, list[FoldedAttempt]] = field(default_factory=lambda: defaultdict(list))
    family_of: dict[str, str] = field(default_factory=dict)
    parties: Parties = field(default_factory=Parties)

    def follow(self, entry: Entry) -> Iterator[Finding]:
        """Take one entry in, and yield what is wrong with it."""
        yield from self.chain.follow(entry)
        for problem in self._apply(entry):
            yield Finding("meaning", entry.sequence, problem)

    def _apply(self, entry: Entry) -> Iterator[str]:
        """Do what the kind of an entry means."""
        try:
            if entry.kind is EntryKind.CAP_SET:
                yield from self._set_caps(entry)
            elif entry.kind is EntryKind.RESERVED:
                yield from self._reserve(entry)
            elif entry.kind in _TRANSITION_OF_KIND:
                yield from self._move(entry, _TRANSITION_OF_KIND[entry.kind])
            elif entry.kind is EntryKind.WITHDRAWN:
                yield from self._withdraw(entry)
            elif entry.kind is EntryKind.REVISION_ALLOWED:
                yield from self._allow_revision(entry)
            elif entry.kind is EntryKind.LOSS_DECLARED:
                yield from self._declare(entry)
            elif entry.kind is EntryKind.DRAW_STARTED:
                yield from self._start(entry)
            else:
                self.parties.follow(entry)
        except (KeyError, TypeError, ValueError, InputError) as error:
            yield f"its body cannot be read ({type(error).__name__})"

    def _set_caps(self, entry: Entry) -> Iterator[str]:
        """Replace a programme's caps."""
        family = self.family_of.setdefault(entry.body["programme"], entry.body["family"])
        if family != entry.body["family"]:
            yield f"moves a programme from family {family} to another"
        self.accounts[entry.body["family"]].set_caps(entry)

    def _opened(self, entry: Entry) -> FoldedAttempt:
        """Read the attempt that an entry opens."""
        body = entry.body
        return FoldedAttempt(
            attempt_id=body["attempt"],
            key=body["key"],
            family=body["family"],
            week=body["week"],
            weeks=weeks_in(body),
            bound=tuple(body[f"{name}_digest"] for name in _BOUND),
            postings=postings_in(body),
            reserved_sequence=entry.sequence,
        )

    def _reserve(self, entry: Entry) -> Iterator[str]:
        """Open an attempt and hold its postings."""
        new = self._opened(entry)
        others = self.by_key[new.key]
        if any(other.state in OPEN_STATES | SEALED_STATES for other in others):
            yield f"reserves {new.key}, which is open or sealed"
        accounts = self.accounts[new.family]
        excess = accounts.excess(new.postings, new.weeks)
        if excess is not None:
            yield f"passes the cap on {excess.cap.unit} ({excess.scope}) in {excess.coordinate}"
        accounts.apply(EntryKind.RESERVED, new.postings, new.weeks)
        self.attempts[new.attempt_id] = new
        others.append(new)

    def _declare(self, entry: Entry) -> Iterator[str]:
        """Take in a loss that entries did not hold: charged, whatever the caps."""
        new, body = self._opened(entry), entry.body
        new.state = ReleaseState(body["state"])
        new.artefact_digest, new.manifest_digest = body["artefact_digest"], body["manifest_digest"]
        if new.state not in CHARGED_STATES or body["draws"] < 1:
            yield "declares a loss without a draw"
        if new.state in SEALED_STATES and self._is_sealed(new.key):
            yield f"declares {new.key} sealed, which is sealed already"
        self.accounts[new.family].declare(new.postings, new.weeks, body["draws"])
        self.attempts[new.attempt_id] = new
        self.by_key[new.key].append(new)

    def _move(self, entry: Entry, transition: Transition) -> Iterator[str]:
        """Move an attempt, and its amounts with it."""
        found = self.attempts.get(entry.body["attempt"])
        if found is None or found.key != entry.body["key"]:
            yield "concerns an attempt that was never reserved"
            return
        if not is_allowed(transition, found.state):
            yield f"states {transition.value} of an attempt that is {found.state.value}"
            return
        found.state = target_of(transition)
        found.artefact_digest = entry.body.get("artefact_digest", found.artefact_digest)
        found.manifest_digest = entry.body.get("manifest_digest", found.manifest_digest)
        self.accounts[found.family].apply(entry.kind, found.postings, found.weeks)

    def _start(self, entry: Entry) -> Iterator[str]:
        """Check that only one draw starts under a charge."""
        found = self.attempts.get(entry.body["attempt"])
        if found is None or found.state is not ReleaseState.DRAWING or found.has_started:
            yield "starts a draw that was not charged, or started before"
            return
        found.has_started = True

    def _withdraw(self, entry: Entry) -> Iterator[str]:
        """Flag an attempt."""
        found = self.attempts.get(entry.body["attempt"])
        if found is None or found.state is not ReleaseState.PUBLISHED:
            yield "withdraws what was not published"
            return
        found.is_withdrawn = True

    def _allow_revision(self, entry: Entry) -> Iterator[str]:
        """Check that what may be corrected has bytes, and that the correction has none yet."""
        key = ReleaseKey.parse(entry.body["key"])
        corrected = ReleaseKey(key.programme, key.period, key.revision - 1)
        if not self._is_sealed(str(corrected)) or self._is_sealed(str(key)):
            yield f"allows {key}, which is not the next correction of a sealed release"

    def _is_sealed(self, key: str) -> bool:
        """Return whether a key has its bytes."""
        return any(one.state in SEALED_STATES for one in self.by_key.get(key, ()))

    @property
    def hash_at(self) -> Callable[[int], str | None]:
        """Look up the hash of an entry."""
        return self.chain.hashes.get

    def card_hash_at(self, head: tuple[int, str]) -> str | None:
        """Look up the hash of an entry that a card names; one that is declared lost is itself."""
        return head[1] if self.parties.is_superseded(*head) else self.chain.hashes.get(head[0])
