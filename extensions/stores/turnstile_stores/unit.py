"""What a store says that a unit of a zone holds, and what of it is here.

A unit is what changes together: a release under embargo, a period in the private zone.

    index/opal/2016-W30/r0.json              its files, and where the bytes of each are
    files/opal/2016-W30/r0/5f0c...           bytes

Bytes are put under a name of their own, read back, and only then is the index replaced, on
condition that nobody did meanwhile. So a reader sees all of a step or none of it, whenever its
worker died, and of two workers that write the same file one wins. The names are random: a digest
of rows would confirm a guess.

An index names the steps that wrote it and every index before it. So a copy knows one that is older
than what it has seen, whichever backup it came from, and loses nothing to it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from turnstile.durable_files import OWNER_ONLY, delete_for_good, replace_durably
from turnstile.errors import IntegrityError
from turnstile.ledger.custody.folders import content_of, listed
from turnstile.release.zone_copies import ASIDE

STATE = str(ASIDE.parent)
"""Folder of a zone that says what of the store is here; it goes with the zone."""

OTHERS = "-"
"""In the place of a digest: other workers wrote the file, from an older index on."""


class Stored(NamedTuple):
    """A file of a unit.

    Args:
        object: path of its bytes in the store.
        size: bytes.
        sha256: of the bytes.
        put_at: instant in ISO 8601, UTC, when they came to the store.
    """

    object: str
    size: int
    sha256: str
    put_at: str


class Stamp(NamedTuple):
    """How a file here looked when it was the store's: size and time of change."""

    size: int
    mtime_ns: int


@dataclass(slots=True)
class UnitState:
    """A unit as it was last seen in the store.

    Args:
        tag: of the index; None: the store has none.
        files: by their path in the unit.
        here: files that are here as in the store.
        steps: names of the steps that wrote the index and those before it, oldest first; none of
            an index that an earlier version wrote.
        lacking: digest of files that the store lost and whoever restored it did not have, and after
            a blank that of the older bytes which stand in their place. Where one of these bytes is,
            it is put back; where others wrote the file since (`OTHERS`) it is set aside there.
    """

    tag: str | None = None
    files: dict[str, Stored] = field(default_factory=dict)
    here: dict[str, Stamp] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    lacking: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> UnitState:
        """Read what was written down; nothing where there is nothing.

        Raises:
            IntegrityError: a disk damaged it.
        """
        state = state_in(path)
        if state is None:
            return cls()
        here = {name: Stamp(*stamp) for name, stamp in state["here"].items()}
        files, steps = _stored(state["files"]), tuple(state.get("steps", ()))
        return cls(state["tag"], files, here, steps, dict(state.get("lacking", {})))

    def write(self, path: Path) -> None:
        """Write down what is here."""
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_durably(path, json.dumps(asdict(self)).encode(), OWNER_ONLY)

    def is_here(self, name: str, folder: Path) -> bool:
        """Return whether a file is here as it is in the store."""
        return name in self.here and self.here[name] == stamp_of(f"{folder}/{name}")

    def lacked(self, name: str) -> str:
        """Return the digest that the store lost of a file; empty where it lost none."""
        return self.lacking.get(name, "").partition(" ")[0]

    def has_seen_more_than(self, steps: tuple[str, ...]) -> bool:
        """Return whether an index of these steps lacks the last one that was seen here."""
        return bool(self.steps) and self.steps[-1] not in steps


def state_in(path: Path) -> Any:  # noqa: ANN401 - whatever was written
    """Return what was written down of a store; None where nothing was.

    Raises:
        IntegrityError: a disk damaged it: whether the store is older than it was nobody knows.
    """
    try:
        return json.loads(content_of(path))
    except FileNotFoundError:
        return None
    except ValueError:
        raise IntegrityError(
            f"{path} is damaged, which says what of the store was here; see that the store is the "
            "newest, then move the file away"
        ) from None


def index_bytes(unit: UnitState) -> bytes:
    """Return the index of a unit."""
    content: dict[str, object] = {"files": dict(sorted(unit.files.items())), "steps": unit.steps}
    files = {name: stored.sha256 for name, stored in unit.files.items()}
    if lacking := {
        name: digests
        for name, digests in unit.lacking.items()
        if unit.lacked(name) != files.get(name)
    }:
        content["lacking"] = lacking
    return json.dumps(content, indent=1).encode()


def read_index(content: bytes | None, tag: str | None, unit: str) -> UnitState:
    """Read the files of an index, and the steps that made it; nothing where there is none.

    Raises:
        IntegrityError: it is none, or names a file outside of its unit.
    """
    if content is None:
        return UnitState()
    try:
        read = json.loads(content)
        files, steps = _stored(read["files"]), tuple(map(str, read.get("steps", ())))
        lacking = {name: str(digest) for name, digest in read.get("lacking", {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        files, steps, lacking = {"": Stored("", 0, "", "")}, (), {}
    is_own = all(stored.object.startswith(f"files/{unit}/") for stored in files.values())
    if not is_own or not all(map(is_plain, (*files, *lacking))):
        raise IntegrityError(f"the index of {unit} is not what a step writes; restore it")
    return UnitState(tag, files, {}, steps, lacking)


def is_plain(name: str) -> bool:
    """Return whether a name leads nowhere else, and to no hidden file.

    Examples:
        >>> is_plain("rows/a.parquet"), is_plain("../a"), is_plain("/a"), is_plain("a/.b")
        (True, False, False, False)
    """
    path = PurePosixPath(name)
    return (
        bool(path.parts)
        and str(path) == name
        and "\0" not in name
        and not any(part.startswith(".") or part == "/" for part in path.parts)
    )


def make_folder(zone: Path, *, is_private: bool) -> None:
    """Make the folder of a zone, if there is none; of a private one nobody else sees anything."""
    zone.mkdir(parents=True, exist_ok=True)
    if is_private:
        zone.chmod(0o700)


def stamp_of(path: Path | str) -> Stamp | None:
    """Return how a file looks now; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for thousands of files a step, no paths
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(status.st_size, status.st_mtime_ns)


def files_here(folder: Path) -> Iterator[str]:
    """Yield the files of a folder by their paths below it; hidden ones and links are none.

    Without a `Path` for each: steps list zones of years, a dozen times a week.
    """
    yield from _files_below(folder, "")


def _files_below(folder: Path | str, prefix: str) -> Iterator[str]:
    for entry in listed(folder):
        name = entry.name
        if name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(entry.path, f"{prefix}{name}/")
        elif entry.is_file(follow_symlinks=False):
            yield prefix + name


def remove(folder: Path, name: str, *, delivered: bool = False) -> None:
    """Delete a file here, see `delete_for_good`, and folders that are empty then."""
    path = folder / name
    delete_for_good(path, delivered=delivered)
    for parent in path.parents:
        if parent == folder or any(listed(parent)):
            return
        with suppress(FileNotFoundError):  # it went with another of its files
            parent.rmdir()


def remove_hidden_folders(folder: Path) -> None:
    """Delete what no store has of a folder: what steps that died worked in."""
    for entry in listed(folder):
        if entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            delete_for_good(Path(entry.path))


def _stored(entries: Mapping[str, list[object]]) -> dict[str, Stored]:
    """Read files of an index, each with its four facts."""
    read = {}
    for name, (where, size, sha256, put_at) in entries.items():
        if not (isinstance(size, int) and isinstance(where, str)):
            raise TypeError(name)
        read[name] = Stored(where, size, str(sha256), str(put_at))
    return read
