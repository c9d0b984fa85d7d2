"""The sealed bytes of a release as the later steps read them, with those that they carry along."""

from __future__ import annotations

from turnstile.errors import IntegrityError
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.pipeline.draw.planned_release import PlannedRelease
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact, decode
from turnstile.release.zones import digest_of, sealed_path


def read_sealed_bytes(release: PlannedRelease, attempt: Attempt) -> bytes:
    """Read the sealed bytes, checked against the ledger's digest.

    Raises:
        IntegrityError: the file is gone or was altered.
    """
    path = sealed_path(release.folders.embargoed, str(attempt.artefact_digest))
    if not path.exists():
        raise IntegrityError(f"{path} is gone; restore it")
    content = path.read_bytes()
    if digest_of(content) != attempt.artefact_digest:
        raise IntegrityError(f"{path} was altered; restore it")
    return content


def drawn_of(release: PlannedRelease, attempt: Attempt) -> Drawn:
    """Return a sealed release as everything after the draw sees it."""
    artefact = decode(read_sealed_bytes(release, attempt))
    earlier: dict[str, Artefact] = {}
    _add_carried(release, artefact, earlier)
    return Drawn(release.programme, release.domain, release.plan, attempt, artefact, earlier)


def _add_carried(release: PlannedRelease, artefact: Artefact, known: dict[str, Artefact]) -> None:
    """Read the sealed bytes of all releases that a draw carries along, and what those do.

    Raises:
        IntegrityError: one of them is gone or was altered.
    """
    for text in artefact.carried:
        if text in known:
            continue
        other = release.of(ReleaseKey.parse(text))
        if other.sealed is None:
            raise IntegrityError(f"{release.key} carries {text} along, which is not sealed")
        known[text] = decode(read_sealed_bytes(other, other.sealed))
        _add_carried(release, known[text], known)
