"""Files that come again after the seal are noticed by their bytes, and by nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import InputError
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import RevisionDecision
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.landing.redelivered_files import changed_files
from turnstile.pipeline.steps import step_named
from turnstile.sources.ingest import week as ingest


@pytest.fixture
def release(published: Deployment) -> Release:
    """A published week of itms, in a deployment of the test's own."""
    assert published.home
    return open_release("itms", WEEK)


@pytest.fixture
def file(release: Release) -> Path:
    """One of its landing files."""
    return min((release.settings.landing / "itms" / WEEK).iterdir())


def test_the_same_bytes_are_no_change_however_they_are_read_today(
    release: Release, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(file, (0, 0))
    monkeypatch.setattr(ingest, "PARSER_VERSION", ingest.PARSER_VERSION + 1)
    assert changed_files(release) is None


def test_other_bytes_are_a_change_each_with_its_own_name(release: Release, file: Path) -> None:
    original = file.read_bytes()
    names = set()
    for more in (b"\n", b"\n\n"):
        file.write_bytes(original + more)
        names.add(changed_files(release))
    assert None not in names
    assert len(names) == 2
    file.write_bytes(original)
    assert changed_files(release) is None


def test_a_late_file_is_a_change(release: Release, file: Path) -> None:
    file.with_name(f"late-{file.name}").write_bytes(file.read_bytes())
    assert changed_files(release) is not None


def test_files_that_retention_dropped_are_no_change(release: Release, file: Path) -> None:
    shutil.rmtree(file.parent)
    assert changed_files(release) is None


def test_of_a_week_that_is_not_sealed_nothing_changes(release: Release, file: Path) -> None:
    file.write_bytes(b"")
    assert changed_files(release) is not None
    assert changed_files(open_release("itms", WEEK, 1)) is None


def test_without_the_record_of_the_snapshot_the_ledgers_commitment_decides(
    release: Release, file: Path
) -> None:
    shutil.rmtree(release.settings.private / "itms" / WEEK / "snapshots")
    assert changed_files(release) is None
    file.write_bytes(file.read_bytes() + b"\n")
    assert changed_files(release) is not None


def test_a_correction_for_files_that_were_taken_back_stops_before_its_charge(
    release: Release, file: Path
) -> None:
    """Somebody said yes to files that came again, and the old ones were put back since."""
    original = file.read_bytes()
    file.write_bytes(original + original.splitlines(keepends=True)[-1])
    about = str(changed_files(release))
    key = ReleaseKey("itms", WEEK, 1)
    for person in ("ada", "grace"):
        release.ledger.decide_on_revision(
            RevisionDecision(key, True, person, "release_officer", "late rows", about)
        )
    file.write_bytes(original)
    with pytest.raises(InputError, match=f"charged in full.*no-release {key} --reason"):
        step_named("ingest")("itms", WEEK, 1)
    file.write_bytes(original + original.splitlines(keepends=True)[-1])
    step_named("ingest")("itms", WEEK, 1)
