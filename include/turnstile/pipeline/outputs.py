"""The second half of a week, from sealed bytes alone: reconcile, assess, approve, publish, audit.

Nothing here reads the private zone. Publishing trusts no earlier task: it reads the seal, the gates
and the approvals again.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from turnstile.assessment.report.page import write_report
from turnstile.durable_files import sync_folder
from turnstile.errors import IntegrityError, RevisionNeeded, TurnstileError
from turnstile.estimates.labelled import parquet_bytes
from turnstile.estimates.release_tables import measurements, presented
from turnstile.ledger.records import Attempt
from turnstile.pipeline.approvals import require_approval
from turnstile.pipeline.context import Release
from turnstile.pipeline.evidence import evidence_of
from turnstile.publishing.manifest import MANIFEST
from turnstile.publishing.package import build_package
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import decode
from turnstile.release.zones import digest_of, exclusively, read_sealed, write_atomically

_PACKAGE = "package"


def reconcile(release: Release) -> str:
    """Write the labelled measurements and the presented tables; return the sealed digest."""
    attempt = _sealed(release)
    drawn = _drawn(release, attempt)
    for folder, tables in (("measurements", measurements(drawn)), ("tables", presented(drawn))):
        place = release.folders.embargoed / folder
        place.mkdir(exist_ok=True)
        for name, table in tables.items():
            write_atomically(place / f"{name}.parquet", parquet_bytes(table))
    return str(attempt.artefact_digest)


def assess(release: Release) -> str:
    """Put the sealed bytes through the gates, and write down what they and the attacks found.

    Raises:
        TurnstileError: a gate failed; the bytes stay under embargo.
    """
    drawn = _drawn(release, _sealed(release))
    for result in write_report(drawn, evidence_of(release), release.folders.embargoed):
        if not result.passed:
            raise TurnstileError(
                f"{release.key}: gate {result.gate} failed: {result.statement}; the bytes stay "
                "under embargo, their charge stands; find the cause before any further draw"
            )
    return "passed"


def approve(release: Release) -> str:
    """Check the approvals in the ledger.

    Raises:
        NotApproved: the programme asks for more people than have said yes.
    """
    _sealed(release)
    require_approval(release.ledger, release.key, release.programme, release.settings)
    return "approved" if release.programme.approval.required else "not required"


def publish(release: Release) -> str:
    """Publish the package and return the digest of its manifest.

    The package is built whole under embargo, the ledger says that it is public, and only then does
    it appear, in one rename. A repeat after a crash goes on where it stopped.

    Raises:
        NotApproved: people have not said yes.
        TurnstileError: a gate failed.
    """
    attempt = _sealed(release)
    require_approval(release.ledger, release.key, release.programme, release.settings)
    # Airflow and `turnstile run` may publish the same week at the same moment.
    with exclusively(release.folders.embargoed / ".publish.lock"):
        return _publish(release, attempt)


def _publish(release: Release, attempt: Attempt) -> str:
    """Go on from whatever stands already, alone."""
    staged = release.folders.embargoed / _PACKAGE
    if not staged.exists():  # what is staged has passed the gates
        assess(release)
        reconcile(release)
        _stage(release, attempt, staged)
    manifest_digest = digest_of((staged / MANIFEST).read_bytes())
    was_public = release.folders.public.exists()
    release.ledger.publish(release.key, manifest_digest)
    if not was_public:
        _appear(staged, release.folders.public)
    _point_latest(release)
    release.say("re-issued, 0 charged" if was_public else "published")
    return manifest_digest


def audit(release: Release) -> str:
    """Recompute the ledger and the published bytes.

    Raises:
        IntegrityError: anything disagrees.
    """
    findings = release.ledger.verify()
    outcome = "failed" if findings else "passed"
    report = "\n".join(str(finding) for finding in findings)
    release.ledger.record_audit(
        release.key, outcome=outcome, report_digest=digest_of(report.encode())
    )
    if findings:
        raise IntegrityError(f"{release.key}: {findings[0]}; run turnstile ledger verify")
    return outcome


def _sealed(release: Release) -> Attempt:
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


def _drawn(release: Release, attempt: Attempt) -> Drawn:
    """Read the sealed bytes, checked against the ledger's digest."""
    digest = str(attempt.artefact_digest)
    content = read_sealed(release.folders.embargoed / f"sealed-{digest[:16]}.parquet", digest)
    return Drawn(release.programme, release.domain, release.plan, attempt, decode(content))


def _stage(release: Release, attempt: Attempt, staged: Path) -> None:
    """Build the package in a folder of its own, then give it its name."""
    building = staged.with_name(f".{_PACKAGE}-{secrets.token_hex(4)}")
    build_package(
        building,
        _drawn(release, attempt),
        ledger=release.ledger,
        embargoed=release.folders.embargoed,
        built_at=release.clock(),
    )
    building.rename(staged)
    sync_folder(staged.parent)


def _appear(staged: Path, public: Path) -> None:
    """Copy a package beside its place and rename it there: a reader sees all of it or nothing."""
    public.parent.mkdir(parents=True, exist_ok=True)
    arriving = public.with_name(f".{public.name}-{secrets.token_hex(4)}")
    shutil.copytree(staged, arriving)
    arriving.rename(public)
    sync_folder(public.parent)


def _point_latest(release: Release) -> None:
    """Point `latest` at the newest published package of the programme."""
    parent = release.folders.latest.parent
    packages = [path for path in parent.glob("????-*/r*") if path.is_dir()]
    newest = max(packages, key=lambda path: (path.parent.name, int(path.name[1:])))
    arriving = parent / f".latest-{secrets.token_hex(4)}"
    arriving.symlink_to(newest.relative_to(parent))
    arriving.replace(release.folders.latest)
