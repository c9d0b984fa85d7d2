"""Whether a release is public already, and intact: then its digests answer, and nothing is made."""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import IntegrityError
from turnstile.ledger.records import Attempt
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.drawn_release import read_sealed_bytes
from turnstile.publishing.describe.manifest import MANIFEST, differences
from turnstile.release.zones import digest_of


def is_public(release: Release, attempt: Attempt) -> bool:
    """Return whether the package of a published key stands where it belongs, byte by byte.

    That of a withdrawn one belongs nowhere once somebody took it down.

    Raises:
        IntegrityError: a package stands there, and is not the one that the ledger names.
    """
    public = release.folders.public
    if attempt.manifest_digest is None:
        return False
    if not public.exists():
        return _is_withdrawn(release)
    read_sealed_bytes(release, attempt)  # the seal and the package stand or fall together
    if require_intact(public) != attempt.manifest_digest:
        raise IntegrityError(
            f"{release.key}: the package in the public zone is not the one that the ledger names; "
            "move it out of the public zone, then run the step publish again"
        )
    return True


def of_withdrawn(release: Release) -> str:
    """Return what begins a sentence about a release that was withdrawn; empty if it was not."""
    where = "stays public" if release.folders.public.exists() else "is taken down, and stays so"
    return f"withdrawn: its package {where}; " if _is_withdrawn(release) else ""


def _is_withdrawn(release: Release) -> bool:
    return release.ledger.revision(release.key).was_withdrawn


def require_intact(package: Path, written: str | None = None) -> str:
    """Refuse a package that is not as its manifest says; return the manifest's digest.

    Args:
        package: its folder.
        written: digest of the manifest that was written there; any if None.

    Raises:
        IntegrityError: a file is missing, added or altered.
    """
    problems = differences(package)
    digest = "" if problems else digest_of((package / MANIFEST).read_bytes())
    if not problems and written not in (None, digest):
        problems = (f"{MANIFEST} is not what was written there",)
    if problems:
        raise IntegrityError(
            f"{package}: {problems[0]}; move the folder aside, then run the step publish again"
        )
    return digest


def require_own(release: Release, staged: Path, *, is_of_this_run: bool) -> None:
    """Refuse to publish a package of other sealed bytes, or made beside another ledger.

    Args:
        release: that it is of.
        staged: its folder.
        is_of_this_run: whether its signature need not be asked.

    Raises:
        IntegrityError: the manifest's sealed digest or the card's head is not in the entries, or
            its files are not those that the ledger's key signed.
    """
    problems = [str(finding) for finding in release.ledger.package_findings(release.key, staged)]
    if not problems and not is_of_this_run:
        from turnstile.publishing.carried.verify_package import findings

        key = release.ledger.parties().key  # that in force: an earlier one may have been stolen
        problems = [f"{staged}: {problem}" for problem in findings(staged, key)]
    if problems:
        raise IntegrityError(
            f"{problems[0]}; nothing was published: move the folder aside, then run the step "
            "publish again"
        )
