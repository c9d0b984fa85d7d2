"""A file appears whole or not at all, and one of many writers makes it."""

import ast
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turnstile import durable_files
from turnstile.durable_files import (
    OWNER_ONLY,
    create_durably,
    delete_for_good,
    replace_durably,
)
from turnstile.errors import IntegrityError


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


_DELETES = {"unlink", "rmdir", "remove", "removedirs", "delete", "delete_object", "move"}
_DELETES |= {"delete_objects", "rename", "replace", "copy_object", "upload_file"}
_OF_ITSELF = {
    "durable_files.py": (5, "its draft, twice; the one way, twice; what is moved, which stays"),
    "drawing_apart.py": (4, "what a drawing process was asked and said"),
    "space.py": (1, "a probe of free space"),
    "fetching.py": (2, "its draft of a landing file"),
    "week.py": (2, "members of an archive, unpacked; a snapshot that was made"),
    "before_charge.py": (1, "a note that files changed, which they did not"),
    "after_seal.py": (2, "a package that was built or arrives, where none is"),
    "writing.py": (2, "the link `latest`"),
    "damaged_database.py": (1, "a database that is set aside"),
    "words.py": (1, "a key that is set aside"),
    "beginning.py": (1, "a log's key that is set aside"),
    "earlier_bounding_keys.py": (1, "a bounding key that is set aside"),
    "retention.py": (2, "an empty folder; objects of files that the one way deleted here"),
    "retention_day.py": (1, "asks retention"),
    "zone_stores.py": (1, "a mark"),
    "plain_zone.py": (4, "what arrives, twice, and what a killed process left; an object, guarded"),
    "private_copies.py": (1, "asks the landing zone"),
    "unit.py": (1, "a folder that is empty"),
    "unit_zone.py": (4, "what arrives, twice; a probe; objects that no index names, but sealed"),
    "bucket.py": (1, "the one way by which objects go: it asks the guard"),
    "site.py": (2, "a portal's links and strays: a folder or a bucket, both guarded"),
    "of_deployment.py": (1, "a copy of the ledger of its own, when the process ends"),
    "native_stack.py": (1, "a log of Airflow"),
}
"""How often a module calls what deletes, moves or writes over something, and why it may."""


def _deletions(tree: ast.Module) -> Iterator[str]:
    """Yield the calls of a module by which something may go."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_of_text = node.func.attr in {"replace", "rename"} and len(node.args) != 1
            is_of_set = node.func.attr == "remove" and ast.unparse(node.func.value) != "os"
            if node.func.attr in _DELETES and not (is_of_text or is_of_set):
                yield node.func.attr
        elif isinstance(node, ast.Attribute) and node.attr == "rmtree":
            yield node.attr  # it may be handed on to be called


def test_data_go_by_one_way_and_everything_else_is_a_draft_of_its_own() -> None:
    root = Path(__file__).parents[1]
    deletions: Counter[str] = Counter()
    for folder in ("include/turnstile", "extensions", "plugins", "dags"):
        for path in (root / folder).rglob("*.py"):
            if hits := len([*_deletions(ast.parse(path.read_text()))]):
                deletions[path.name] += hits
    assert dict(deletions) == {name: number for name, (number, _) in _OF_ITSELF.items()}


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("path.unlink()", 1),
        ("draft.replace(path)", 1),
        ("os.remove(path)", 1),
        ("self.bucket.delete(name)", 1),
        ("client.delete_objects(Bucket=b)", 1),
        ("text.replace('a', 'b')", 0),
        ("names.remove(name)", 0),
    ],
)
def test_a_call_that_deletes_is_told_from_one_of_a_text(line: str, number: int) -> None:
    assert len([*_deletions(ast.parse(line))]) == number


@pytest.mark.parametrize("deep", [False, True])
def test_sealed_bytes_are_deleted_by_nobody(tmp_path: Path, *, deep: bool) -> None:
    sealed = tmp_path / "opal/2016-W30/r0/sealed-0123456789abcdef.parquet"
    sealed.parent.mkdir(parents=True)
    sealed.touch()
    with pytest.raises(IntegrityError, match="never deleted"):
        delete_for_good(tmp_path / "opal" if deep else sealed)
    assert sealed.exists()
    sealed.rename(sealed.with_name("rows.parquet"))
    delete_for_good(tmp_path / "opal")
    assert not (tmp_path / "opal").exists()


def test_of_a_link_only_the_link_goes(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    delete_for_good(tmp_path / "link")
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]
