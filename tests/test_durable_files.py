"""A file appears whole or not at all, and one of many writers makes it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turnstile import durable_files
from turnstile.durable_files import OWNER_ONLY, create_durably, replace_durably


def test_a_file_is_replaced_completely_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    replace_durably(path, b"first")
    replace_durably(path, b"second", OWNER_ONLY)
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == OWNER_ONLY
    assert list(tmp_path.iterdir()) == [path]


def test_what_exists_is_not_created_again(tmp_path: Path) -> None:
    path = tmp_path / "note"
    assert create_durably(path, b"first")
    assert not create_durably(path, b"second")
    assert path.read_bytes() == b"first"


def test_of_many_writers_one_creates(tmp_path: Path) -> None:
    path = tmp_path / "key"
    contents = [b"%d" % n for n in range(32)]
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda content: create_durably(path, content), contents))
    assert made.count(True) == 1
    assert path.read_bytes() == contents[made.index(True)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    replace_durably(path, b"first")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_durably(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_tree_is_synced_completely_before_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package/tables").mkdir(parents=True)
    (tmp_path / "package/tables/on_time.csv").write_text("slot\n")
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    durable_files.sync_tree(tmp_path / "package")
    below = (tmp_path / "package").rglob("*")
    assert set(synced) == {str(path) for path in (*below, tmp_path / "package")}
