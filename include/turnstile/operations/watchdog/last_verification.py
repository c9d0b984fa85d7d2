"""What the one verification last found, for a page that may not take as long as it does.

The audit of every day and `turnstile ledger verify` say in the journal what they found, and at
which entry; the audit of a release is a fact of the ledger. The newest word counts, and it counts
as trouble too when the ledger no longer holds the entry that it was said of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from turnstile.ledger.entries import EntryKind, instant
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.ledger_snapshot import EntryLine, LedgerSnapshot

_PROGRAMME, _WEEK = "ledger", "all"
OF_LEDGER = f"{_PROGRAMME}/{_WEEK}/"
"""Before the name of what an audit found that is of no week."""

FAILED = "could not be"
"""Begins the name of a look that failed, which says nothing of what differed before."""


@dataclass(frozen=True, slots=True)
class LastVerification:
    """One run of the one verification.

    Args:
        at: when, ISO 8601 in UTC.
        head: number and hash of the ledger's last entry then.
        differing: names of the checks that found something, sorted; empty if nothing differs.
    """

    at: str
    head: tuple[int, str]
    differing: tuple[str, ...]


def tell_verification(
    journal: Journal, now: datetime, head: tuple[int, str], problems: Iterable[str]
) -> None:
    """Write what a verification found.

    Args:
        journal: of the deployment.
        now: when it ended.
        head: number and hash of the ledger's last entry, read before it began.
        problems: names of the checks that found something.
    """
    details = {"sequence": head[0], "hash": head[1], "found": sorted(set(problems))}
    journal.write(Line(instant(now), Happening.VERIFIED, _PROGRAMME, _WEEK, details=details))


def last_verification(journal: Journal, lines: Sequence[EntryLine]) -> LastVerification | None:
    """Return the newest word of a verification; of two at once the one that found something.

    Args:
        journal: of the deployment.
        lines: of the ledger, oldest first.
    """
    said = [*_in_journal(journal), *_in_ledger(lines)]
    return max(
        said,
        key=lambda verification: (
            datetime.fromisoformat(verification.at),
            bool(verification.differing),
        ),
        default=None,
    )


def last_sound(journal: Journal) -> str:
    """Return when a verification that is told in the journal last found nothing; empty if never."""
    return max((said.at for said in _in_journal(journal) if not said.differing), default="")


def _in_journal(journal: Journal) -> Iterator[LastVerification]:
    """Yield what was said in the journal."""
    for line in journal.of_week(_PROGRAMME, _WEEK):
        if line.happening is Happening.VERIFIED:
            head = (line.details["sequence"], line.details["hash"])
            names = (name.removeprefix(OF_LEDGER) for name in line.details["found"])
            yield LastVerification(line.at, head, tuple(names))


def _in_ledger(lines: Sequence[EntryLine]) -> Iterator[LastVerification]:
    """Yield what the last audit of a release said."""
    audit = next((line for line in reversed(lines) if line.kind is EntryKind.AUDITED), None)
    if audit is not None:
        problems = (
            () if dict(audit.particulars).get("outcome") == "passed" else (f"audit of {audit.key}",)
        )
        yield LastVerification(audit.at, (audit.sequence, audit.hash), problems)


def ledger_trouble(last: LastVerification | None, snapshot: LedgerSnapshot) -> str:
    """Say what is wrong with the ledger as far as anybody has looked; empty if nothing is known."""
    if snapshot.problems:
        return "entries contradict those before them"
    if last is None:
        return ""
    if last.differing:
        return f"the verification of {last.at} found a difference ({', '.join(last.differing)})"
    sequence, hash_then = last.head
    if sequence and (
        sequence > len(snapshot.lines) or snapshot.lines[sequence - 1].hash != hash_then
    ):
        return f"entry {sequence}, verified on {last.at}, is gone or another: a copy was restored"
    return ""
