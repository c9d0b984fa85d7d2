"""The sealed bytes of a release as the later steps open them: checked against the ledger."""

from __future__ import annotations

from turnstile.errors import RevisionNeeded, TurnstileError
from turnstile.ledger.records import Attempt
from turnstile.pipeline.context import Release
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import decode
from turnstile.release.zones import read_sealed


def sealed_attempt(release: Release) -> Attempt:
    """Return the sealed attempt, made under the present promise.

    Raises:
        TurnstileError: nothing is sealed yet.
        RevisionNeeded: programme or domain changed since.
    """
    attempt = release.sealed
    if attempt is None:
        raise TurnstileError(f"{release.key}: nothing is sealed; run the step draw first")
    bound = attempt.bindings
    promised = (release.programme.digest, release.domain.digest)
    if (bound.programme_digest, bound.domain_digest) != promised:
        raise RevisionNeeded(
            f"{release.key} was sealed under another programme or domain; restore that file, or "
            "release a revision: turnstile run --revision 1 --reason TEXT"
        )
    return attempt


def read_sealed_bytes(release: Release, attempt: Attempt) -> bytes:
    """Read the sealed bytes, checked against the ledger's digest.

    Raises:
        IntegrityError: the file is gone or was altered.
    """
    digest = str(attempt.artefact_digest)
    return read_sealed(release.folders.embargoed / f"sealed-{digest[:16]}.parquet", digest)


def drawn_of(release: Release, attempt: Attempt) -> Drawn:
    """Return a sealed release as everything after the draw sees it."""
    artefact = decode(read_sealed_bytes(release, attempt))
    return Drawn(release.programme, release.domain, release.plan, attempt, artefact)
