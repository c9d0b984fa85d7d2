"""The second half of a week, from sealed bytes alone: reconcile and publish.

Nothing here reads the private zone. Publishing trusts no earlier task: it reads the seal, the
assessment and the approvals again. A week whose package is public and intact is answered by its
digests: nothing is made anew, and what makes it is not even imported.
"""

from __future__ import annotations

import secrets
import shutil
from functools import partial
from pathlib import Path

from turnstile.durable_files import delete_for_good, exclusively, sync_folder, sync_tree
from turnstile.errors import TurnstileError
from turnstile.extensions import PORTALS, brought
from turnstile.ledger.custody.at_work import PUBLISHING
from turnstile.ledger.custody.traces import STAGED
from turnstile.ledger.records import Attempt
from turnstile.pipeline.approvals import require_approval
from turnstile.pipeline.assessing import assess, is_assessed
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.drawn_release import drawn_of
from turnstile.pipeline.draw.sealed_release import sealed_attempt
from turnstile.pipeline.public_package import is_public, of_withdrawn, require_intact, require_own
from turnstile.programme.loading import load_programme
from turnstile.release.zone_copies import zones
from turnstile.release.zones import write_atomically


def reconcile(release: Release) -> str:
    """Write what was drawn, unbiased numbers and estimates; return the sealed digest."""
    attempt = sealed_attempt(release)
    if is_public(release, attempt):
        return str(attempt.artefact_digest)
    from turnstile.estimates.labelled import parquet_bytes
    from turnstile.estimates.release_tables import measurements, presented
    from turnstile.pipeline.estimating import write_estimates

    drawn = drawn_of(release, attempt)
    release.say("measurements and tables are written (1 of 2); estimates come next")
    for folder, tables in (("measurements", measurements(drawn)), ("tables", presented(drawn))):
        target = release.folders.embargoed / folder
        target.mkdir(exist_ok=True)
        for name, table in tables.items():
            write_atomically(target / f"{name}.parquet", parquet_bytes(table))
    release.say("estimates are made (2 of 2)")
    write_estimates(release, drawn)
    return str(attempt.artefact_digest)


def publish(release: Release) -> str:
    """Publish the package and return the digest of its manifest.

    The package is built complete under embargo, the ledger says that it is public, and only then
    does it appear, in one rename. A repeat after a crash goes on where it stopped.

    Raises:
        NotApproved: people have not said yes.
        TurnstileError: a gate failed.
        IntegrityError: the published package is not the one that the ledger names.
        InputError: a key that signs it is gone; it is not public.
    """
    attempt = sealed_attempt(release)
    require_approval(release.ledger, release.key, release.programme, release.settings)
    # Airflow and `turnstile run` may publish the same week at the same moment.
    with exclusively(release.folders.embargoed / PUBLISHING):
        return _publish(release, attempt)


def _publish(release: Release, attempt: Attempt) -> str:
    """Go on from whatever stands already, alone."""
    if is_public(release, attempt):
        _write_series(release)
        release.say(f"{of_withdrawn(release)}re-issued, 0 charged")
        return str(attempt.manifest_digest)
    staged = release.folders.embargoed / STAGED
    written = attempt.manifest_digest
    if not staged.exists():
        if not is_assessed(release, attempt):
            reconcile(release)
            assess(release)
        release.say("the package is built (1 of 3); its files are checked next")
        written = _stage(release, attempt, staged)
    release.say("the package is checked (2 of 3); it becomes public next")
    checked = require_intact(staged, written)
    require_own(release, staged, is_of_this_run=written is not None)
    # A package that is gone could not be built again: it says when it was built.
    release.copies.keep(is_charged=False)
    release.say("the package becomes public (3 of 3)")
    manifest_digest = require_intact(staged, checked)
    release.ledger.publish(release.key, manifest_digest)
    if not release.folders.public.exists():
        _appear(staged, release.folders.public)
    _write_series(release)
    release.say("published")
    return manifest_digest


def _stage(release: Release, attempt: Attempt, staged: Path) -> str:
    """Build the package in a folder of its own, give it its name, return its manifest's digest."""
    from turnstile.publishing.package import build_package

    building = _unfinished(staged)
    written = build_package(
        building,
        drawn_of(release, attempt),
        ledger=release.ledger,
        embargoed=release.folders.embargoed,
        include=release.settings.include,
        built_at=release.clock(),
        public=release.settings.public,
    )
    sync_tree(building)
    building.rename(staged)
    sync_folder(staged.parent)
    return written


def _unfinished(folder: Path) -> Path:
    """Return a new place beside a folder, and take away what a publication left that was killed.

    Whoever publishes is alone.
    """
    for left in folder.parent.glob(f".{folder.name}-*"):
        delete_for_good(left)
    return folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")


def _appear(staged: Path, public: Path) -> None:
    """Copy a package beside its place and rename it there: a reader sees all of it or nothing."""
    public.parent.mkdir(parents=True, exist_ok=True)
    arriving = _unfinished(public)
    shutil.copytree(staged, arriving)
    sync_tree(arriving)
    arriving.rename(public)
    sync_folder(public.parent)


def _write_series(release: Release) -> None:
    """Bring index, dataset, pages and `latest` to what is published now, here and at portals.

    Raises:
        TurnstileError: a portal did not take it; a repeat sends what is missing.
    """
    from turnstile.publishing.series.writing import write_series

    settings = release.settings
    # Of all weeks, so by the file as it is now, whatever text this week is bound to.
    programme = load_programme(release.programme.name, settings.include)
    series = write_series(programme, release.ledger, settings.public, settings.include)
    sign = partial(release.ledger.sign_public_zone, series)
    zones(settings).send_public(sign, programme.name, release.key, series)
    if not programme.publish.to:
        return
    delivery = brought(PORTALS, "delivery", asked_by="publish.to")
    problems = []
    for address in programme.publish.to:
        try:
            delivery(
                programme.name,
                address,
                release.ledger,
                settings.public,
                settings.ckan_token,
                release.say,
            ).send()
        except TurnstileError as error:
            problems.append(error)
    if problems:
        raise problems[0]
