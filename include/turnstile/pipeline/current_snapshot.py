"""The rows that a release is of: the snapshot that its step `ingest` chose."""

from __future__ import annotations

from turnstile.pipeline.planned_release import PlannedRelease, recorded
from turnstile.sources.ingest.snapshot import Snapshot, load_snapshot


def current_snapshot(release: PlannedRelease) -> Snapshot:
    """Return the snapshot that `ingest` chose.

    Raises:
        TurnstileError: `ingest` has not run.
    """
    digest = recorded(release, "snapshot", step="ingest")
    return load_snapshot(
        release.settings.private, release.programme.name, str(release.week), digest
    )
