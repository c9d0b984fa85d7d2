"""What entries mean, folded from the first to the last, with every disagreement found. Pure.

The fold trusts nothing but the entries: it follows the chain, makes each transition that a fact
states (and names the one that the state machine forbids), keeps all accounts, and checks every
reservation against the caps in force at that moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from turnstile.errors import InputError
from turnstile.ledger.balances.changes import postings_in, weeks_in
from turnstile.ledger.balances.folded_accounts import FoldedAccounts
from turnstile.ledger.chain import Chain
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import Attempt, Bindings, Finding, ReleaseKey
from turnstile.ledger.states import (
    CHARGED_STATES,
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
_BOUND = ("programme", "domain", "snapshot")


@dataclass(frozen=True, slots=True)
class Hold:
    """What an attempt takes of accounts: its losses, and the weeks that they are of."""

    postings: tuple[Posting, ...]
    weeks: str


@dataclass(slots=True)
class Fold:
    """Everything that follows from the entries seen so far."""

    chain: Chain = field(default_factory=Chain)
    accounts: defaultdict[str, FoldedAccounts] = field(
        default_factory=lambda: defaultdict(FoldedAccounts)
    )
    attempts: dict[str, Attempt] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    names_of: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    family_of: dict[str, str] = field(default_factory=dict)
    parties: Parties = field(default_factory=Parties)

    def follow(self, entry: Entry) -> Iterator[Finding]:
        """Take one entry in, and yield what is wrong with it."""
        yield from self.chain.follow(entry)
        for problem in self._apply(entry):
            yield Finding("meaning", entry.sequence, problem)

    def burned(self) -> Iterator[tuple[Attempt, tuple[Posting, ...]]]:
        """Yield each attempt that was charged and never sealed, with what it was charged."""
        for attempt in self.attempts.values():
            if attempt.state is ReleaseState.BURNED:
                yield attempt, self.holds[attempt.attempt_id].postings

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

    def _open(self, entry: Entry, state: ReleaseState = ReleaseState.RESERVED) -> Attempt:
        """Take in the attempt that an entry opens."""
        body = entry.body
        opened = Attempt(
            attempt_id=body["attempt"],
            key=ReleaseKey.parse(body["key"]),
            family=body["family"],
            week=body["week"],
            state=state,
            bindings=Bindings(*(body[f"{name}_digest"] for name in _BOUND)),
            plan_digest=body["plan_digest"],
            artefact_digest=body.get("artefact_digest"),
            manifest_digest=body.get("manifest_digest"),
            reserved_sequence=entry.sequence,
        )
        self.attempts[opened.attempt_id] = opened
        self.holds[opened.attempt_id] = Hold(postings_in(body), weeks_in(body))
        self.names_of[body["key"]].append(opened.attempt_id)
        return opened

    def _reserve(self, entry: Entry) -> Iterator[str]:
        """Open an attempt and hold its postings."""
        key = entry.body["key"]
        if any(attempt.is_open or attempt.is_sealed for attempt in self.of_key(key)):
            yield f"reserves {key}, which is open or sealed"
        opened = self._open(entry)
        hold, accounts = self.holds[opened.attempt_id], self.accounts[opened.family]
        excess = accounts.excess(hold.postings, hold.weeks)
        if excess is not None:
            yield f"passes the cap on {excess.cap.unit} ({excess.scope}) in {excess.coordinate}"
        accounts.apply(EntryKind.RESERVED, hold.postings, hold.weeks)

    def _declare(self, entry: Entry) -> Iterator[str]:
        """Take in a loss that entries did not hold: charged, whatever the caps."""
        state, key = ReleaseState(entry.body["state"]), entry.body["key"]
        if state not in CHARGED_STATES or entry.body["draws"] < 1:
            yield "declares a loss without a draw"
        if state in SEALED_STATES and self._is_sealed(key):
            yield f"declares {key} sealed, which is sealed already"
        declared = self._open(entry, state)
        hold = self.holds[declared.attempt_id]
        self.accounts[declared.family].declare(hold.postings, hold.weeks, entry.body["draws"])

    def _move(self, entry: Entry, transition: Transition) -> Iterator[str]:
        """Move an attempt, and its amounts with it."""
        attempt = self.attempts.get(entry.body["attempt"])
        if attempt is None or str(attempt.key) != entry.body["key"]:
            yield "concerns an attempt that was never reserved"
            return
        if not is_allowed(transition, attempt.state):
            yield f"states {transition.value} of an attempt that is {attempt.state.value}"
            return
        self.attempts[attempt.attempt_id] = replace(
            attempt,
            state=target_of(transition),
            artefact_digest=entry.body.get("artefact_digest", attempt.artefact_digest),
            manifest_digest=entry.body.get("manifest_digest", attempt.manifest_digest),
        )
        hold = self.holds[attempt.attempt_id]
        self.accounts[attempt.family].apply(entry.kind, hold.postings, hold.weeks)

    def _start(self, entry: Entry) -> Iterator[str]:
        """Check that only one draw starts under a charge."""
        attempt = self.attempts.get(entry.body["attempt"])
        if attempt is None or not attempt.is_drawing or attempt.attempt_id in self.started:
            yield "starts a draw that was not charged, or started before"
            return
        self.started.add(attempt.attempt_id)

    def _withdraw(self, entry: Entry) -> Iterator[str]:
        """Flag an attempt."""
        attempt = self.attempts.get(entry.body["attempt"])
        if attempt is None or not attempt.is_public:
            yield "withdraws what was not published"
            return
        self.attempts[attempt.attempt_id] = replace(attempt, is_withdrawn=True)

    def _allow_revision(self, entry: Entry) -> Iterator[str]:
        """Check that what may be corrected has bytes, and that the correction has none yet."""
        key = ReleaseKey.parse(entry.body["key"])
        corrected = ReleaseKey(key.programme, key.period, key.revision - 1)
        if not self._is_sealed(str(corrected)) or self._is_sealed(str(key)):
            yield f"allows {key}, which is not the next correction of a sealed release"

    def _is_sealed(self, key: str) -> bool:
        """Return whether a key has its bytes."""
        return any(attempt.is_sealed for attempt in self.of_key(key))

    def of_key(self, key: str) -> tuple[Attempt, ...]:
        """Return all attempts at a key, in the order in which they were made."""
        return tuple(self.attempts[name] for name in self.names_of.get(key, ()))

    @property
    def by_key(self) -> Mapping[str, tuple[Attempt, ...]]:
        """All attempts at each key."""
        return {key: self.of_key(key) for key in self.names_of}

    @property
    def hash_at(self) -> Callable[[int], str | None]:
        """Look up the hash of an entry."""
        return self.chain.hashes.get

    def card_hash_at(self, head: tuple[int, str]) -> str | None:
        """Look up the hash of an entry that a card names; one that is declared lost is itself."""
        return head[1] if self.parties.is_superseded(*head) else self.chain.hashes.get(head[0])
