"""Whether a period still needs its private data: read from the ledger, and from what lies there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from turnstile.durable_files import sha256_of
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.traces import MANIFEST
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.ledger.revisions import next_after
from turnstile.ledger.weeks import Revision, Standing, Week
from turnstile.release.zones import sealed_path
from turnstile.settings import Settings


def is_unfinished(ledger: Ledger, settings: Settings, programme: str, week: Week) -> bool:
    """Return whether the latest revision of a period that somebody wants is not public.

    What is sealed and rejected may need a correction. A period that people declared to be without a
    release is finished. One whose bytes are nowhere any more is not: only its data bring it back.
    """
    *_, key = _wanted(ledger, settings, programme, week)
    revision = week.revision(key.revision)
    if revision.sealed is None or revision.standing is not Standing.PUBLIC:
        return not _is_declined(ledger, key, revision)
    return not _has_bytes(settings, revision.sealed)


def _wanted(ledger: Ledger, settings: Settings, programme: str, week: Week) -> Iterator[ReleaseKey]:
    """Yield the first release and each correction that was begun, allowed or explained."""
    key = ReleaseKey(programme, week.period, 0)
    yield key
    while True:
        key = next_after(key)
        allowed = _is_allowed(ledger, key)
        explained = (settings.private / str(key) / "revision.json").exists()
        if not (allowed or explained or week.revision(key.revision).attempts):
            return
        yield key


def _is_declined(ledger: Ledger, key: ReleaseKey, revision: Revision) -> bool:
    """Return whether people said that there is no release, and nobody asked for one since."""
    stated = [e.sequence for e in ledger.entries_of(key) if e.kind is EntryKind.NO_RELEASE]
    return any(stated) and not (_is_allowed(ledger, key) or revision.is_reserved_since(max(stated)))


def _is_allowed(ledger: Ledger, key: ReleaseKey) -> bool:
    return any(word.is_allowed for word in ledger.decisions_on_revision(key))


def _has_bytes(settings: Settings, sealed: Attempt) -> bool:
    """Return whether the sealed bytes of a release, or its package, are there, by their digests.

    What cannot be read brings nothing back.
    """
    file = sealed_path(settings.embargoed / str(sealed.key), str(sealed.artefact_digest))
    with suppress(OSError):
        if sha256_of(file) == sealed.artefact_digest:
            return True
    package = settings.public / str(sealed.key)
    with suppress(OSError):
        is_own = sha256_of(package / MANIFEST) == sealed.manifest_digest
        return is_own and not file_problems(package)
    return False
