"""The sealed bytes of a release as the later steps read them, with those that they carry along."""

from __future__ import annotations

from collections.abc import Iterable

from turnstile.errors import IntegrityError, RefusedError
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.pipeline.draw.planned_release import PlannedRelease
from turnstile.pipeline.draw.year_state import carried_keys
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
    _add_carried(release, artefact.carried, earlier)
    return Drawn(release.programme, release.domain, release.plan, attempt, artefact, earlier)


def require_carried(release: PlannedRelease) -> None:
    """Refuse a draw, before its charge, whose numbers nobody could part from those of its year.

    Raises:
        RefusedError: the sealed bytes of a week that it carries along are gone or were altered.
    """
    try:
        _add_carried(release, map(str, carried_keys(release)), {})
    except IntegrityError as gone:
        raise RefusedError(
            f"{release.key} would carry weeks along of which sealed bytes cannot be read ({gone}); "
            f"restore them, or begin a new year: state year_to_date_from {release.week}"
        ) from None


def _add_carried(
    release: PlannedRelease, carried: Iterable[str], known: dict[str, Artefact]
) -> None:
    """Read the sealed bytes of all releases that a draw carries along, and what those do.

    Raises:
        IntegrityError: one of them is gone or was altered.
    """
    for text in carried:
        if text in known:
            continue
        other = release.of(ReleaseKey.parse(text))
        if other.sealed is None:
            raise IntegrityError(f"{release.key} carries {text} along, which is not sealed")
        known[text] = decode(read_sealed_bytes(other, other.sealed))
        _add_carried(release, known[text].carried, known)
