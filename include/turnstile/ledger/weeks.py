"""The history of releases: what became of every period of a programme. Pure.

Which revision is in force, whether one is open, what a reader finds: these are decided here, from
the attempts and the public facts of the ledger, for steps, estimates, series, page and watchdog.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.ledger.states import CHARGED_STATES, OPEN_STATES, SEALED_STATES, ReleaseState
from turnstile.service_calendar import is_period

PUBLIC_KINDS = (
    EntryKind.PUBLISHED, EntryKind.LOSS_DECLARED, EntryKind.WITHDRAWN, EntryKind.NO_RELEASE,
)  # fmt: skip
"""Entries that a history is made from, beside the attempts."""


class WeekState(StrEnum):
    """Where a period stands that was reserved at least once."""

    HELD = "held"  # nothing was charged yet
    CHARGED = "charged"  # a draw is under way, or died
    WITHHELD = "withheld"  # sealed, and nothing of it is public
    PUBLISHED = "published"
    REVISED = "revised"  # a correction is public too
    WITHDRAWN = "withdrawn"  # every published revision was


@dataclass(frozen=True, slots=True)
class Fact:
    """An entry of the ledger that the public sees.

    Args:
        sequence: its number.
        sha256: its hash.
        at: when it was written, ISO 8601 in UTC.
        public_note: what a person wrote for the public; empty without one.
    """

    sequence: int
    sha256: str
    at: str
    public_note: str = ""


@dataclass(frozen=True, slots=True)
class PublishedRevision:
    """One published revision of a period."""

    key: ReleaseKey
    manifest_sha256: str
    published: Fact
    withdrawn: Fact | None = None


class Standing(StrEnum):
    """What the ledger has of one revision, the furthest last."""

    NOTHING = "nothing"
    HELD = "held"
    CHARGED = "charged"
    SEALED = "sealed"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Revision:
    """What became of one revision of a period.

    Args:
        attempts: at its key, in the order of their reservation.
    """

    attempts: tuple[Attempt, ...] = ()

    @property
    def sealed(self) -> Attempt | None:
        """The attempt that has its bytes; None if none has."""
        return next((attempt for attempt in self.attempts if attempt.is_sealed), None)

    @property
    def was_withdrawn(self) -> bool:
        """Whether people took back what was public of it."""
        return any(attempt.is_withdrawn for attempt in self.attempts)

    @property
    def drawn(self) -> tuple[Attempt, ...]:
        """Attempts that were charged."""
        return tuple(attempt for attempt in self.attempts if attempt.is_charged)

    @property
    def has_hold(self) -> bool:
        """Whether the next draw goes on from a hold, whatever was burned before it."""
        return any(attempt.is_held for attempt in self.attempts)

    def is_reserved_since(self, sequence: int) -> bool:
        """Return whether it was reserved after an entry: what that one stated of it is over."""
        return any(attempt.reserved_sequence > sequence for attempt in self.attempts)

    @property
    def standing(self) -> Standing:
        """How far it came."""
        if self.sealed is not None:
            return Standing.PUBLIC if self.sealed.is_public else Standing.SEALED
        if self.drawn:
            return Standing.CHARGED
        return Standing.HELD if self.has_hold else Standing.NOTHING


@dataclass(frozen=True, slots=True)
class Week:
    """One period of a programme.

    Args:
        period: its name, `2016-W30`.
        attempts: at all its revisions, in the order of their reservation.
        published: its published revisions, oldest first.
        no_release: where somebody stated that it has none.
    """

    period: str
    attempts: tuple[Attempt, ...] = ()
    published: tuple[PublishedRevision, ...] = ()
    no_release: Fact | None = None

    @property
    def in_force(self) -> PublishedRevision | None:
        """The newest revision that was not withdrawn; None if no release is public."""
        return next(
            (revision for revision in reversed(self.published) if revision.withdrawn is None), None
        )

    def revision(self, number: int) -> Revision:
        """Return one revision; one without attempts if the ledger knows nothing of it."""
        return Revision(tuple(a for a in self.attempts if a.key.revision == number))

    @property
    def held(self) -> tuple[Attempt, ...]:
        """Attempts that hold something, and were not charged."""
        return self._in(frozenset({ReleaseState.RESERVED}))

    @property
    def drawing(self) -> tuple[Attempt, ...]:
        """Attempts that were charged, and have neither a seal nor an end."""
        return self._in(frozenset({ReleaseState.DRAWING}))

    @property
    def sealed(self) -> tuple[Attempt, ...]:
        """Attempts that have their bytes, for ever."""
        return self._in(SEALED_STATES)

    @property
    def withheld(self) -> tuple[Attempt, ...]:
        """Attempts that have their bytes, of which nothing is public."""
        return self._in(frozenset({ReleaseState.SEALED}))

    @property
    def taken(self) -> tuple[Attempt, ...]:
        """Attempts whose key is held, drawn or sealed, so that another run goes on with it."""
        return self._in(OPEN_STATES | SEALED_STATES)

    @property
    def live(self) -> tuple[Attempt, ...]:
        """Attempts that hold or have taken something of the budget."""
        return self._in(OPEN_STATES | CHARGED_STATES)

    @property
    def is_open(self) -> bool:
        """Whether a revision is held or drawn at this moment."""
        return bool(self.held or self.drawing)

    @property
    def last_sealed(self) -> int | None:
        """The highest revision that has its bytes; None if none has."""
        return max((attempt.key.revision for attempt in self.sealed), default=None)

    @property
    def state(self) -> WeekState | None:
        """Where it stands; None if nothing was reserved, or all of it was let go."""
        if self.published:
            if self.in_force is None:
                return WeekState.WITHDRAWN
            return WeekState.REVISED if len(self.published) > 1 else WeekState.PUBLISHED
        if self.sealed:
            return WeekState.WITHHELD
        if self._in(CHARGED_STATES):
            return WeekState.CHARGED
        return WeekState.HELD if self.live else None

    def _in(self, states: frozenset[ReleaseState]) -> tuple[Attempt, ...]:
        return tuple(attempt for attempt in self.attempts if attempt.state in states)


def weeks_of(
    programme: str, attempts: Iterable[Attempt], entries: Iterable[Entry]
) -> Mapping[str, Week]:
    """Return every period of a programme that the ledger knows, by name.

    Args:
        programme: name.
        attempts: in the order of their reservation; those of other programmes are passed over.
        entries: of `PUBLIC_KINDS`, oldest first; others are passed over.
    """
    made: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.key.programme == programme:
            made[attempt.key.period].append(attempt)
    published, without = _public_facts(programme, entries)
    revisions: defaultdict[str, list[PublishedRevision]] = defaultdict(list)
    for key in sorted(published):
        revisions[key.period].append(published[key])
    return {
        name: Week(name, tuple(made[name]), tuple(revisions[name]), without.get(name))
        for name in sorted({*made, *revisions, *without})
    }


def _public_facts(
    programme: str, entries: Iterable[Entry]
) -> tuple[dict[ReleaseKey, PublishedRevision], dict[str, Fact]]:
    """Return what is public of each release key, and the periods that were stated to have none."""
    published: dict[ReleaseKey, PublishedRevision] = {}
    without: dict[str, Fact] = {}
    for entry in entries:
        if entry.kind not in PUBLIC_KINDS or not (entry.key or "").startswith(f"{programme}/"):
            continue
        key, body = ReleaseKey.parse(str(entry.key)), entry.body
        at = Fact(entry.sequence, entry.hash, entry.at)
        said = Fact(entry.sequence, entry.hash, entry.at, body.get("public_note", ""))
        if entry.kind is EntryKind.NO_RELEASE:
            if is_period(key.period) and key.revision == 0:  # else its correction has none
                without[key.period] = said
        elif entry.kind is EntryKind.WITHDRAWN:
            if known := published.get(key):
                published[key] = PublishedRevision(
                    key, known.manifest_sha256, known.published, said
                )
        elif entry.kind is EntryKind.PUBLISHED or body["state"] == ReleaseState.PUBLISHED:
            published[key] = PublishedRevision(key, str(body["manifest_digest"]), at)
    return published, without


def attempts_by_state(attempts: Iterable[Attempt]) -> dict[str, int]:
    """Return how many attempts stand in each state, by its name; a state without any is 0."""
    counted = Counter(attempt.state for attempt in attempts)
    return {state.value: counted[state] for state in ReleaseState}
