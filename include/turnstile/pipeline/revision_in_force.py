"""Which revision of a period the steps work on, and whether people have allowed the next one.

A correction is drawn only under words in the ledger (or by `turnstile run --revision` with a
reason). Words allow one key: as many people as the programme's approval asks for, each in the role,
about the same restated files, and nobody in the role against it. What an orchestrator's operators
mark, skip or clear is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import RevisionDecision
from turnstile.programme.approval_rule import ApprovalStanding, approval_standing
from turnstile.programme.people import holders
from turnstile.programme.spec import Programme
from turnstile.settings import Settings


def revision_in_force(ledger: Ledger, programme: Programme, period: str, settings: Settings) -> int:
    """Return the highest revision of a period that is sealed, or that may be drawn."""
    sealed = ledger.week(programme.name, period).last_sealed or 0
    correction = ReleaseKey(programme.name, period, sealed + 1)
    is_allowed = bool(words_that_allow(ledger, correction, programme, settings))
    return correction.revision if is_allowed else sealed


def words_that_allow(
    ledger: Ledger, key: ReleaseKey, programme: Programme, settings: Settings
) -> tuple[RevisionDecision, ...]:
    """Return the words under which a correction may be drawn; none if they do not suffice."""
    said = ledger.decisions_on_revision(key)
    for files in dict.fromkeys(word.files_digest for word in said):
        standing = correction_standing(said, files, programme, settings)
        if standing.is_approved:
            role = programme.approval.role
            about = (word for word in said if (word.files_digest, word.role) == (files, role))
            last = {word.person: word for word in about}
            return tuple(last[person] for person in standing.approved_by)
    return ()


def correction_standing(
    words: Sequence[RevisionDecision],
    files_digest: str,
    programme: Programme,
    settings: Settings,
    started_by: frozenset[str] = frozenset(),
) -> ApprovalStanding:
    """Judge by the rule of approvals what was said about a correction for some files."""
    return approval_standing(
        (word for word in words if word.files_digest == files_digest),
        programme.approval,
        holders(programme.approval.role, settings.include),
        started_by,
    )
