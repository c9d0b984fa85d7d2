"""A manifest names every file of a package, and what differs from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnstile.publishing.describe.manifest import MANIFEST, differences, manifest_bytes


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/on_time.csv").write_text("count\n1\n")
    (tmp_path / "release_card.md").write_text("card")
    content = manifest_bytes(tmp_path, key="opal/2016-W30/r0", sealed_digest="ab")
    (tmp_path / MANIFEST).write_bytes(content)
    return tmp_path


def test_an_untouched_package_agrees(package: Path) -> None:
    assert differences(package) == ()


def test_what_was_altered_removed_or_added_is_named(package: Path) -> None:
    (package / "release_card.md").write_text("other")
    (package / "tables/on_time.csv").unlink()
    (package / "extra.csv").write_text("x")
    assert differences(package) == (
        "tables/on_time.csv is missing",
        "extra.csv is not listed",
        "release_card.md was altered",
    )


@pytest.mark.parametrize("text", ["", "[]", '{"files": 3}'])
def test_a_manifest_that_cannot_be_read_is_a_difference(package: Path, text: str) -> None:
    (package / MANIFEST).write_text(text)
    assert differences(package) == (f"{MANIFEST} cannot be read",)


def test_a_missing_manifest_is_a_difference(package: Path) -> None:
    (package / MANIFEST).unlink()
    assert differences(package) == (f"{MANIFEST} is missing",)
