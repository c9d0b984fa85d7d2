"""What version 0.1.0 stored still reads, verifies, re-issues, and goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from kept_homes import OF_0_1_0, lived_in

from turnstile.cli import main
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline.steps import step_named
from turnstile.settings import Settings

PUBLISHED = ("opal/2016-W30/r0", "opal/2016-W31/r0", "opal/2016-W31/r1", "itms/2016-W30/r0")
Cli = Callable[..., int]


@pytest.fixture
def old_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kept deployment, unpacked into a folder of its own."""
    return lived_in(OF_0_1_0, tmp_path, monkeypatch)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("*/*/r*/**/*"))
        if path.is_file()
    }


def test_the_old_ledger_and_every_old_package_verify(old_home: Path) -> None:
    assert main(["ledger", "verify"]) == 0
    for key in PUBLISHED:
        assert main(["package", "verify", str(old_home / "public" / key)]) == 0


def test_an_altered_byte_of_an_old_package_is_found(old_home: Path) -> None:
    table = old_home / "public" / PUBLISHED[0] / "tables/on_time.csv"
    table.write_bytes(table.read_bytes().replace(b"0", b"1", 1))
    assert main(["package", "verify", str(old_home / "public" / PUBLISHED[0])]) == 4


def test_old_weeks_are_issued_again_with_their_bytes_at_no_charge(old_home: Path) -> None:
    before, head = digests(old_home / "public"), open_ledger(Settings.from_environment()).head()
    assert main(["run", "opal", "--week", "2016-W30"]) == 0
    assert main(["run", "itms", "--week", "2016-W30"]) == 0
    assert digests(old_home / "public") == before
    assert open_ledger(Settings.from_environment()).head() == head


def test_what_was_sealed_under_embargo_is_published_as_it_was_sealed(old_home: Path) -> None:
    sealed = open_ledger(Settings.from_environment()).find(ReleaseKey("itms", "2016-W31", 0))
    assert sealed is not None
    for step in ("reconcile", "assess", "approve", "publish", "audit"):
        step_named(step)("itms", "2016-W31", 0)
    published = open_ledger(Settings.from_environment()).find(ReleaseKey("itms", "2016-W31", 0))
    assert published is not None
    assert published.artefact_digest == sealed.artefact_digest
    assert main(["package", "verify", str(old_home / "public/itms/2016-W31/r0")]) == 0


@pytest.mark.long
def test_the_next_week_is_released_over_the_old_ledger(old_home: Path) -> None:
    assert main(["run", "opal", "--week", "2016-W32"]) == 0
    assert main(["ledger", "verify"]) == 0
    assert main(["package", "verify", str(old_home / "public/opal/2016-W32/r0")]) == 0
