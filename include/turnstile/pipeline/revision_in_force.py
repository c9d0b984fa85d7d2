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
from turnstile.programme.people import holders
from turnstile.programme.spec import Programme
from turnstile.settings import Settings


def revision_in_force(ledger: Ledger, programme: Programme, period: str, settings: Settings) -> int:
    """Return the highest revision of a period that is sealed, or that may be drawn."""
    revision = 0
    while True:
        following = ReleaseKey(programme.name, period, revision + 1)
        found = ledger.find(following)
        is_sealed = found is not None and found.is_sealed
        if not is_sealed and not words_that_allow(ledger, following, programme, settings):
            return revision
        revision += 1


def words_that_allow(
    ledger: Ledger, key: ReleaseKey, programme: Programme, settings: Settings
) -> tuple[RevisionDecision, ...]:
    """Return the words under which a correction may be drawn; none if they do not suffice."""
    counted = _counted(ledger.decisions_on_revision(key), programme, settings)
    for files in dict.fromkeys(word.files_digest for word in counted):
        about = [word for word in counted if word.files_digest == files]
        if all(word.is_allowed for word in about) and len(about) >= programme.approval.persons:
            return tuple(about)
    return ()


def words_about(
    ledger: Ledger, key: ReleaseKey, programme: Programme, settings: Settings, files_digest: str
) -> tuple[RevisionDecision, ...]:
    """Return the last word of each person in the role about a correction for these files."""
    counted = _counted(ledger.decisions_on_revision(key), programme, settings)
    return tuple(word for word in counted if word.files_digest == files_digest)


def _counted(
    words: Sequence[RevisionDecision], programme: Programme, settings: Settings
) -> tuple[RevisionDecision, ...]:
    """Return the last word of each person and files, of those who hold the role today."""
    role = programme.approval.role
    trusted = holders(role, settings.include)
    last = {(word.person, word.files_digest): word for word in words if word.role == role}
    return tuple(word for word in last.values() if word.person in trusted)
