"""Files that an authority delivers again after their week was sealed: noticed, never read.

Compared by name and digest of the bytes, so that a newer parser is no change. Nothing here draws or
charges: whether the week is corrected is for people to say (`revision_in_force`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.records import Attempt
from turnstile.ledger.revisions import before
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.private_zone.bounding_key import secret_as_sealed
from turnstile.programme.gtfs.timetable import timetable_digest
from turnstile.release.zones import bounding_secret, commitment
from turnstile.sources.ingest.landing import fingerprints
from turnstile.sources.ingest.snapshot import load_snapshot
from turnstile.sources.ingest.week import PARSER_VERSION, snapshot_digest

Fingerprints = tuple[tuple[str, str], ...]


def changed_files(release: Release) -> str | None:
    """Return a commitment to the landing files if they are not those that were sealed, else None.

    Files that are gone, dropped by retention perhaps, are no change: the sealed bytes stand. So is
    everything on a key that is not sealed.
    """
    sealed = release.sealed
    if sealed is None:
        return None
    pattern = release.programme.source.landing
    try:
        landed_files = fingerprints(release.settings.landing, pattern, release.week)
    except TurnstileError:
        return None
    if _is_same(release, sealed, landed_files):
        return None
    digest = hashlib.sha256(json.dumps(sorted(landed_files)).encode()).hexdigest()
    return commitment(bounding_secret(release.settings), digest)


def require_change(release: Release) -> None:
    """Refuse a correction that would be drawn from what it corrects, as if anew.

    Raises:
        InputError: files, programme and public cells are the same.
    """
    if release.sealed is not None:
        return
    key = before(release.key)
    corrected = open_release(
        key.programme, key.period, key.revision, opened=lambda _: release.ledger
    )
    if corrected.sealed is None or changed_files(corrected) is not None:
        return
    bound = corrected.sealed.bindings
    now = release.programme.digest, release.domain.digest
    if (bound.programme_digest, bound.domain_digest) == now:
        rule = (
            "files, programme and public cells are those that it corrects: the same counts get new "
            "noise, charged in full; if bytes are lost, or the code counted wrongly, say "
            f"--although-nothing-changed (turnstile run {key.programme} --week {key.period} "
            f"--revision {release.key.revision} --reason TEXT); else what people allowed is taken "
            f"back by turnstile ledger no-release {release.key} --reason TEXT"
        )
        raise InputError(where=str(release.key), field="revision", rule=rule)


def _is_same(release: Release, sealed: Attempt, landed_files: Fingerprints) -> bool:
    """Return whether files are those that a key was sealed with.

    They are where the bounding key that it was sealed under is gone: nobody can tell.
    """
    secret = secret_as_sealed(release.settings, release.ledger.bounding_keys(), sealed)

    def is_bound(digest: str) -> bool:
        return secret is None or commitment(secret, digest) == sealed.bindings.snapshot_digest

    own_files = _files_of(release, is_bound)
    if own_files is not None:
        return sorted(own_files) == sorted(landed_files)
    held = timetable_digest(release.programme, release.settings.include)
    made = (
        snapshot_digest(
            release.programme, release.week, landed_files, parser=version, timetable=held
        )
        for version in range(1, PARSER_VERSION + 1)
    )
    return any(map(is_bound, made))


def _files_of(release: Release, is_bound: Callable[[str], bool]) -> Fingerprints | None:
    """Return the files that a key was sealed with; None where their record is gone."""
    note = release.folders.private / "snapshot"
    digest = note.read_text() if note.exists() else ""
    if not is_bound(digest):
        return None
    try:
        name, period = release.programme.name, str(release.week)
        return load_snapshot(release.settings.private, name, period, digest).files
    except TurnstileError:
        return None
