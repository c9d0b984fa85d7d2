"""What is asked of the ledger and what it answers: frozen records, pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstile.errors import InputError
from turnstile.ledger.balances.amounts import COORDINATES, AccountLoss, Cap
from turnstile.ledger.balances.changes import week_names, weeks_between
from turnstile.ledger.states import CHARGED_STATES, OPEN_STATES, SEALED_STATES, ReleaseState
from turnstile.privacy.units import ProtectionUnit
from turnstile.service_calendar import ServiceWeek

if TYPE_CHECKING:
    from turnstile.privacy.accounts import Posting

MOST = 4 * 10**18
"""Largest amount of the ledger: below 2^62, so that a sum of two fits 64 bits."""

PUBLIC_NOTE_CHARACTERS = 500
REVISION = r"r(?:0|[1-9][0-9]*)"
"""What the folder of a revision is called, as a pattern; `r01` is none."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KEY = re.compile(rf"([^/]+)/([^/]+)/({REVISION})")


def revision_of(name: str) -> int | None:
    """Return the revision that a folder of a period is named after.

    Examples:
        >>> revision_of("r12")
        12
        >>> [revision_of(name) for name in ("r0.aside", "latest", "r01")]  # None: not a release
        [None, None, None]
    """
    return int(name[1:]) if re.fullmatch(REVISION, name) else None


@dataclass(frozen=True, slots=True, order=True)
class ReleaseKey:
    """Name of one release for ever: programme, period and revision, without any input digest.

    Args:
        programme: name of the programme.
        period: ISO week, `2016-W30`.
        revision: 0 for the first release of a period; a correction counts up.

    Examples:
        >>> str(ReleaseKey("opal", "2016-W30"))
        'opal/2016-W30/r0'
        >>> ReleaseKey.parse("opal/2016-W30/r1").revision
        1
    """

    programme: str
    period: str
    revision: int = 0

    def __post_init__(self) -> None:
        """Refuse names that would not survive as a folder.

        Raises:
            ValueError: a name holds other characters than letters, digits, `_`, `.` and `-`.
        """
        if not (_NAME.fullmatch(self.programme) and _NAME.fullmatch(self.period)):
            msg = f"{self.programme!r}, {self.period!r}: letters, digits, '_', '.' and '-' only"
            raise ValueError(msg)
        if self.revision < 0:
            msg = f"revision {self.revision} must not be negative"
            raise ValueError(msg)

    @classmethod
    def parse(cls, text: str) -> ReleaseKey:
        """Read `opal/2016-W30/r0`.

        Raises:
            InputError: the text is not a release key.
        """
        match = _KEY.fullmatch(text)
        if match is None:
            raise InputError(where="ledger", field="key", rule=f"{text!r}: write opal/2016-W30/r0")
        return cls(match[1], match[2], int(match[3][1:]))

    def __str__(self) -> str:
        """Name of the release, `opal/2016-W30/r0`."""
        return f"{self.programme}/{self.period}/r{self.revision}"


def for_the_public(note: str) -> dict[str, str]:
    """Return the field that marks a text as written for the public, in one line; none without one.

    Raises:
        InputError: it is longer than a line of a changelog.

    Examples:
        >>> for_the_public("a depot  was closed"), for_the_public(" ")
        ({'public_note': 'a depot was closed'}, {})
    """
    line = " ".join(note.split())
    if len(line) > PUBLIC_NOTE_CHARACTERS:
        rule = f"it is published as one line: at most {PUBLIC_NOTE_CHARACTERS} characters"
        raise InputError(where="ledger", field="public note", rule=rule)
    return {"public_note": line} if line else {}


class Difference(NamedTuple):
    """One thing that a key is bound to, and what it is now.

    Args:
        name: key of the programme file, or `programme`, `domain`, `snapshot`, `plan`.
        old: as the key was bound; empty if it had none.
        new: now; empty if there is none.
    """

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bindings:
    """Digests that a key is bound to when it is reserved, and checked against when it draws."""

    programme_digest: str
    domain_digest: str
    snapshot_digest: str

    def differences(self, other: Bindings) -> tuple[Difference, ...]:
        """Return what differs of `programme`, `domain` and `snapshot`, old and new."""
        pairs = [
            Difference(name, getattr(self, f"{name}_digest"), getattr(other, f"{name}_digest"))
            for name in ("programme", "domain", "snapshot")
        ]
        return tuple(difference for difference in pairs if difference.old != difference.new)


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a reservation has to know; public, made without looking at data.

    Args:
        key: which release.
        family: whose ledger accounts.
        bindings: digests of programme, domain and input snapshot.
        plan_digest: digest of the release plan.
        events: draw events, encoded by `encoding.encode_event`.
        postings: loss per account, add/remove, from `privacy.accounts.postings`.
        week: service week of the period, `2016-W30`, for rolling windows.
        caps: caps of the programme file.
        first_week: first week of a period that touches several; `week` is then the last one.
        landing: pattern of the landing files that are read; None is not looked at.
        files: keyed commitments to the bytes of the files that were read.
        exact: keyed commitment to the exact tables.
        bounding_key: name of the key of all commitments.
        terms: what decides losses and cells, by the key of the programme file.
        reason: why a revision is made; needed when `key.revision` > 0.
        approver: who approved the revision; needed when `key.revision` > 0.
        public_note: what the public is told of the revision; the reason stays internal.
    """

    key: ReleaseKey
    family: str
    bindings: Bindings
    plan_digest: str
    events: tuple[Mapping[str, Any], ...]
    postings: tuple[Posting, ...]
    week: str
    caps: tuple[Cap, ...]
    first_week: str | None = None
    landing: str | None = None
    files: tuple[str, ...] = ()
    exact: str = ""
    bounding_key: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    approver: str | None = None
    public_note: str = ""

    def __post_init__(self) -> None:
        """Check weeks and amounts, and that a revision says why and who.

        Raises:
            InputError: a week is no ISO week of a possible year, an amount is beyond the store, or
                a revision lacks its reason or approver.
        """
        for name in week_names(self.weeks):
            week = ServiceWeek.parse(name, where=str(self.key))
            if str(week) != name:  # rows are found by name, so a week has one spelling
                raise InputError(where=str(self.key), field="week", rule=f"write {week}")
        stated: tuple[Posting | Cap, ...] = (*self.postings, *self.caps)
        figures = [
            getattr(loss_or_cap, coordinate) for loss_or_cap in stated for coordinate in COORDINATES
        ]
        if any(figure is not None and not 0 <= figure <= MOST for figure in figures):
            rule = f"a loss or a cap lies beyond what the ledger can add up ({MOST} of its units)"
            raise InputError(where=str(self.key), field="amount", rule=rule)
        if self.key.revision and not (self.reason and self.approver):
            rule = "a revision is charged in full; give a reason and an approver"
            raise InputError(where=str(self.key), field="revision", rule=rule)

    @property
    def weeks(self) -> str:
        """Week, or FIRST..LAST of a period that touches several."""
        return weeks_between(self.first_week, self.week)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a release key, as the ledger holds it now."""

    attempt_id: str
    key: ReleaseKey
    family: str
    week: str
    bindings: Bindings
    plan_digest: str
    state: ReleaseState = ReleaseState.RESERVED
    artefact_digest: str | None = None
    manifest_digest: str | None = None
    reserved_sequence: int = 0
    is_withdrawn: bool = False

    @property
    def is_open(self) -> bool:
        """A hold exists, or a draw is under way."""
        return self.state in OPEN_STATES

    @property
    def is_sealed(self) -> bool:
        """The key has its bytes, for ever."""
        return self.state in SEALED_STATES

    @property
    def is_public(self) -> bool:
        """Its manifest is public, also if it was withdrawn since."""
        return self.state is ReleaseState.PUBLISHED

    @property
    def is_charged(self) -> bool:
        """What it costs is spent."""
        return self.state in CHARGED_STATES

    @property
    def is_held(self) -> bool:
        """A hold exists; nothing is charged."""
        return self.state is ReleaseState.RESERVED

    @property
    def is_drawing(self) -> bool:
        """It is charged, and noise may exist; nothing is sealed."""
        return self.state is ReleaseState.DRAWING

    @property
    def state_name(self) -> str:
        """Its state in a word."""
        return "withdrawn" if self.is_withdrawn else self.state.value


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said about a release, and about which bytes."""

    key: ReleaseKey
    is_approval: bool
    person: str
    role: str
    reason: str
    artefact_digest: str | None
    at: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Assessed:
    """What the gates said of sealed bytes, and which report says so.

    Args:
        key: which release.
        artefact_digest: SHA-256 of the sealed bytes.
        outcome: `passed` or `failed`.
        report_digest: over the report and the tables that were made from the sealed bytes.
    """

    key: ReleaseKey
    artefact_digest: str
    outcome: str
    report_digest: str


@dataclass(frozen=True, slots=True)
class AccountBalance:
    """What one account has lost and holds.

    Args:
        family: budget group.
        unit: whose loss.
        scope: piece of time (and mode and batch); `ever`; or the most spent window `W1..W2`.
        spent: charged, drawn or burned; never goes down.
        held: reserved by attempts that have not begun to draw.
        cap: smallest cap of the family on this account, add/remove; None without one.
        cap_set_by: programmes that state a figure of it.
    """

    family: str
    unit: ProtectionUnit
    scope: str
    spent: AccountLoss
    held: AccountLoss
    cap: Cap | None
    cap_set_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement that verification found.

    Args:
        check: `chain`, `meaning`, `balance`, `checkpoint` or `manifest`.
        sequence: entry concerned, or None.
        problem: what disagrees, without any private value.
    """

    check: str
    sequence: int | None
    problem: str

    def __str__(self) -> str:
        """Write the finding as one line."""
        where = "" if self.sequence is None else f" entry {self.sequence}:"
        return f"{self.check}:{where} {self.problem}"
