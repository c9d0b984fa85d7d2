"""The rows that a release is of, as its step `ingest` chose them, and the days without any."""

from __future__ import annotations

from datetime import date

from turnstile.pipeline.draw.planned_release import PlannedRelease
from turnstile.sources.ingest.snapshot import Snapshot, load_snapshot
from turnstile.sources.ingest.stated_gaps import stated_gaps


def current_snapshot(release: PlannedRelease) -> Snapshot:
    """Return the snapshot that `ingest` chose.

    Raises:
        TurnstileError: `ingest` has not run.
    """
    digest = release.recorded("snapshot", step="ingest")
    return load_snapshot(
        release.settings.private, release.programme.name, str(release.week), digest
    )


def gaps_of(release: PlannedRelease) -> tuple[date, ...]:
    """Return the service days that are stated as gaps, from names of files and declared days."""
    names = (name for name, _ in current_snapshot(release).files)
    return stated_gaps(release.programme.source, release.week, names)
