"""A zone whose store holds every file under its own name: landing, public. Copies come.

What the store no longer holds goes here too, if it came from there, so that no worker keeps raw
data beyond their days, or publishes what somebody took away. But a release never changes: a package
that lost a file there, or has another in its place, is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from turnstile.durable_files import (
    EVERYBODY_READS,
    OWNER_ONLY,
    exclusively,
    replace_durably,
    sha256_of,
)
from turnstile.errors import InputError, IntegrityError, StoreError
from turnstile.ledger.records import REVISION
from turnstile_stores.bucket import AT_ONCE, Bucket, Listed
from turnstile_stores.unit import STATE, Stamp, files_here, make_folder, remove, stamp_of, state_in

Wanted = Callable[[str], bool]
MAY_WRITE = "may write there (under Compose: in worker)"
_ARRIVING = "arriving-"
_MANIFEST = "/manifest.json"
"""What a package ends its publication with; no step ever deletes one."""
_CLOSES = re.compile(rf"([^/]+/[^/]+/{REVISION}){_MANIFEST}")


class Copy(NamedTuple):
    """A file that came from a store.

    Args:
        tag: of the version.
        put_at: when it came to the store, in seconds since 1970, by the store's clock.
        stamp: how the file here looked then.
    """

    tag: str
    put_at: float
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class PlainZone:
    """A zone and its store.

    Args:
        bucket: the store.
        folder: of the zone.
        is_private: whether files are for the owner's eyes alone.
        is_whole: whether whatever is not in the store goes here, wherever it came from.
    """

    bucket: Bucket
    folder: Path
    is_private: bool
    is_whole: bool

    @property
    def _book(self) -> Path:
        return self.folder / STATE / "copies.json"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes on this machine from the copies while the block runs."""
        make_folder(self.folder, is_private=self.is_private)
        (self.folder / STATE).mkdir(exist_ok=True)
        with exclusively(self.folder / STATE / "zone.lock"):
            for left in (self.folder / STATE).glob(f"{_ARRIVING}*"):  # of a process that was killed
                left.unlink()
            yield

    def fetch(
        self,
        wanted: Callable[[frozenset[str]], Wanted],
        *,
        delivers: bool = False,
        withdrawn: Callable[[], AbstractSet[str]] = frozenset,
    ) -> None:
        """Bring what is wanted here as it is in the store; call it `alone`.

        Args:
            wanted: given all names in the store, says of each whether it is needed.
            delivers: whether what is wanted was delivered: then a name of no file is refused.
            withdrawn: returns the releases whose packages people may have taken down.

        Raises:
            StoreError: the store does not answer, or was written to meanwhile.
            InputError: what was delivered has a name that no file can have.
            IntegrityError: a package was there and is there no more, or as it was; the copies stay.
        """
        objects = self.bucket.listed("")
        listed = {name: entry for name, entry in objects.items() if _is_file(name)}
        copies = self._copies()
        before = dict(copies)
        if gone := self._gone(copies.keys(), listed.keys()):
            taken_down = withdrawn()
            if lost := [name for key, name in gone.items() if key not in taken_down]:
                raise IntegrityError(
                    f"{self.bucket.name}: {lost[0]} is gone, which was there; find out who deleted "
                    "it, or if a backup was put back: turnstile stores restore on a machine that "
                    f"saw it and {MAY_WRITE}"
                )
        is_wanted = wanted(frozenset(listed))
        for name in objects.keys() - listed.keys() if delivers else ():
            meant = "/".join(filter(None, name.split("/")))
            if not name.endswith("/") and _is_file(meant) and is_wanted(meant):
                rule = "holds an empty name of a folder ('//'); put it there under a name without"
                raise InputError(where=self.bucket.name, field=name, rule=rule)
        chosen = set(filter(is_wanted, listed))
        missing = [
            name
            for name, entry in listed.items()
            if name in chosen and not self._is_here(name, entry, copies)
        ]
        changed = self._of_packages(copies.keys() & missing, copies.keys())
        kept = {name: digest for files in changed.values() for name, digest in files.items()}
        try:
            last = [name for name in missing if name.endswith(_MANIFEST)]
            for names in ([name for name in missing if name not in last], last):
                with ThreadPoolExecutor(AT_ONCE) as threads:
                    came = threads.map(lambda n: self._bring(n, listed[n], kept.get(n)), names)
                    copies |= dict(zip(names, came, strict=True))
            stale = set(files_here(self.folder)) if self.is_whole else set()
            for name in (stale | copies.keys()) - chosen:
                if name in listed and not self.is_whole:
                    continue  # it is there, and was wanted by another step
                remove(self.folder, name, delivered=not self.is_whole)
                copies.pop(name, None)
        finally:
            if copies != before or not self._book.exists():
                self._write(copies)

    def packages_gone(self) -> list[str]:
        """Return the keys of packages that are here and were in the store, and are there no more.

        Raises:
            StoreError: the store does not answer.
        """
        gone = self._gone(self._copies().keys(), self.bucket.listed("").keys())
        return [key for key in gone if (self.folder / key).is_dir()]

    def remove_strangers(self, key: str) -> None:
        """Delete what lies in the folder of a package here and is none of its files; see `fetch`.

        Who put it into the store may still have it there: then it comes again.
        """
        digests = _digests_in(self.folder, key)
        for name in [f"{key}/{name}" for name in files_here(self.folder / key)] if digests else ():
            if name not in digests:
                remove(self.folder, name)

    def _gone(self, copies: AbstractSet[str], listed: AbstractSet[str]) -> dict[str, str]:
        """Return packages that came from the store, each with a file that is there no more."""
        lost = self._of_packages(copies - listed, copies)
        return {
            key: min(files, key=lambda n: (_MANIFEST not in n, n)) for key, files in lost.items()
        }

    def _of_packages(
        self, names: AbstractSet[str], copies: AbstractSet[str]
    ) -> dict[str, dict[str, str]]:
        """Return by package those of some names that are files of one, with their digests.

        A manifest closes its package: from then on no step changes a file of it. What else lies in
        its folder somebody put there.
        """
        by_package = {}
        for match in map(_CLOSES.fullmatch, sorted(copies) if self.is_whole else ()):
            if match is None:
                continue
            manifest, key = match[0], match[1]
            if of_key := {name for name in names if name.startswith(f"{key}/")}:
                digests = {manifest: "", **_digests_in(self.folder, key)}
                if files := {name: digests[name] for name in of_key & digests.keys()}:
                    by_package[key] = files
        return by_package

    def put_at(self, path: Path) -> float | None:
        """Return when a file came to the store, in seconds since 1970; None: it did not."""
        copy = self._copies().get(path.relative_to(self.folder).as_posix())
        return copy and copy.put_at

    def delete(self, gone: Path) -> None:
        """Delete a file in the store that was deleted here, unless another came in its place.

        Raises:
            StoreError: the store does not answer.
        """
        name = gone.relative_to(self.folder).as_posix()
        copies = self._copies()
        copy = copies.pop(name, None)
        listed = self.bucket.listed(name).get(name)
        if copy is not None and listed is not None and listed.tag == copy.tag:
            self.bucket.delete(name, delivered=not self.is_whole)
        self._write(copies)

    def _is_here(self, name: str, entry: Listed, copies: dict[str, Copy]) -> bool:
        copy = copies.get(name)
        return copy is not None and copy[::2] == (entry.tag, stamp_of(f"{self.folder}/{name}"))

    def _bring(self, name: str, entry: Listed, kept: str | None) -> Copy:
        """Write a file here, whole or not at all; what is kept by its digest is not replaced."""
        target = self.folder / name
        # Not beside its place: what is left of it there would be a file that no manifest lists.
        arriving = self.folder / STATE / f"{_ARRIVING}{secrets.token_hex(4)}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if self.bucket.fetch(name, arriving) is None or arriving.stat().st_size != entry.size:
                raise StoreError(self.bucket.name, f"{name} changed while it was fetched")
            is_whole_here = kept and target.is_file() and sha256_of(target) == kept
            if is_whole_here and sha256_of(arriving) != kept:
                raise IntegrityError(
                    f"{self.bucket.name}: {name} holds other bytes than it did, and a release "
                    "never changes; find out who put them there, delete it there, then turnstile "
                    f"stores restore on a machine that has what it held and {MAY_WRITE}"
                )
            arriving.chmod(OWNER_ONLY if self.is_private else EVERYBODY_READS)
            arriving.replace(target)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            rule = "is a file and a folder of files at once; delete one of them there"
            raise InputError(where=self.bucket.name, field=name, rule=rule) from None
        finally:
            arriving.unlink(missing_ok=True)
        stamp = stamp_of(target)
        return Copy(entry.tag, entry.put_at.timestamp(), stamp or Stamp(-1, -1))

    def _copies(self) -> dict[str, Copy]:
        """Read what came from the store.

        Where the book is lost, whatever is here may have come from it, and be its last copy.
        """
        state = state_in(self._book)
        if state is None:
            here = files_here(self.folder) if self.is_whole else ()
            return {name: Copy("", 0.0, Stamp(-1, -1)) for name in here}
        return {name: Copy(tag, at, Stamp(*stamp)) for name, (tag, at, stamp) in state.items()}

    def _write(self, copies: dict[str, Copy]) -> None:
        """Write down what came from the store."""
        replace_durably(self._book, json.dumps(copies).encode(), OWNER_ONLY)


def _digests_in(zone: Path, key: str) -> dict[str, str]:
    """Return the files of a package here, its manifest too, with their digests; none, if torn."""
    manifest = f"{key}{_MANIFEST}"
    with suppress(OSError, ValueError, LookupError, TypeError):
        content = (zone / manifest).read_bytes()
        files = {f"{key}/{file['path']}": file["sha256"] for file in json.loads(content)["files"]}
        return {**files, manifest: hashlib.sha256(content).hexdigest()}
    return {}


def _is_file(name: str) -> bool:
    """Return whether a name is one of a file below the zone, a marker's with its dot too."""
    parts = name.split("/")
    return all(part not in {"", ".", ".."} for part in parts) and parts[0] != STATE
