"""What may go wrong between any two calls of files, buckets and database: at a world's n-th call.

`os` and `io.open` are wrapped while a world lives, below the house's own `durable_files`. A process
that is killed is an exception that nothing catches, and from then on every call raises it again: so
no `finally` of the house cleans up what a dead process could not.

After a loss of power the disk holds what was synced. Of the rest it holds any part: contents may be
cut, renames, links and removals may be undone, each by itself (a journalling file system, on which
a folder stands once anything in it was synced).
"""

# ruff: noqa: PTH101, PTH110, PTH112, PTH114, PTH115, PTH116, PTH119, PTH120, PTH202 - what stands below pathlib is wrapped here
from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from unittest.mock import patch

from remembered import Changes
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError

from turnstile.errors import StoreError

KINDS = {
    "kill": 4,
    "kill_after": 3,
    "eio": 3,
    "enospc": 3,
    "lost_answer": 2,
    "power": 4,
    "lying_disk": 1,
    "twin": 4,
}
"""What may happen at a call, and how often beside the others."""
_EVERYWHERE = {"write", "read", "sync", "name", "database", "bucket"}
_LAYERS = {
    "kill": _EVERYWHERE | {"committed"},
    "kill_after": _EVERYWHERE,
    "power": _EVERYWHERE | {"committed"},
    "enospc": {"write", "sync", "database"},
    "eio": _EVERYWHERE,
    "lost_answer": {"bucket"},
    "lying_disk": {"sync"},
    "twin": {"write", "sync", "name", "bucket"},
}
"""Where a kind can strike."""
_LIES_FOR = 30  # calls between a lie of the disk and the loss of power that shows it
_MOST_BYTES = 2**16


class Killed(BaseException):
    """The process is dead."""


class Waits(BaseException):
    """A process waits for a lock that the one beside it holds, until somebody ends it."""


class Named(NamedTuple):
    """A change of a folder that was not synced yet.

    Args:
        folder: that holds the name.
        undo: makes the folder as it was; False: it no longer can be.
        is_lied: whether the disk said that it was synced.
    """

    folder: str
    undo: Callable[[], None]
    is_lied: bool


@dataclass(frozen=True)
class Struck:
    """One fault that happened: for the trace by which a replay is compared."""

    kind: str
    call: int
    layer: str
    what: str


class FaultyMachine:
    """All machines of a world: their calls are counted, and some go wrong.

    Args:
        root: folder of the world; calls elsewhere are not looked at.
        chance: source of everything that happens by chance.
    """

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = f"{root}/", chance
        self.calls, self.struck = 0, list[Struck]()
        self.changes = Changes(str(root))
        self.twin: Callable[[], None] = lambda: None
        self.seen: Callable[[str, str], None] = lambda *_: None
        """Told of every file that is about to go: path, and what takes its place."""
        self.appeared: Callable[[str], None] = lambda _: None
        """Told of every file that has got its name."""
        self._planned = list[tuple[int, str]]()
        self.is_watched = False
        """A process of the house runs and lives, whose calls are counted."""
        self._dead = self._watched = self._is_twin = False
        self._transactions = 0
        self._lies_until = 0
        self._after = ""
        self._layers = set[str]()
        self._unsynced = dict[int, tuple[str, bool]]()
        self._names = list[Named]()
        self._real = {name: getattr(os, name) for name in _WRAPPED}
        self._open = io.open

    # -- what the world says -----------------------------------------------------------------

    def plan(self, after: int, kind: str) -> None:
        """Let a fault happen after so many calls from now."""
        self._planned = sorted([*self._planned, (self.calls + after, kind)])

    def hear(self) -> set[str]:
        """Begin to hear of which layers calls are; return what was heard so far."""
        outer, self._layers = self._layers, set()
        return outer

    def heard(self, outer: set[str]) -> frozenset[str]:
        """Return the layers of the calls since, and go on with what was heard before."""
        layers, self._layers = frozenset(self._layers), outer
        outer |= layers
        return layers

    def has_made(self, calls: int, layers: frozenset[str]) -> bool:
        """Count calls that need not be made again; False, and none, where a fault is due in them.

        Args:
            calls: how many.
            layers: that they are of.
        """
        until = self.calls + calls
        if self._after or (self._lies_until and until > self._lies_until):
            return False
        for call, kind in self._planned:
            if call > until:
                break
            if not _LAYERS[kind].isdisjoint(layers) and self._can(kind):
                return False
        self.calls = until
        self._layers |= layers
        return True

    @property
    def is_twin(self) -> bool:
        """A process beside another one runs, inside of its call."""
        return self._is_twin

    @contextmanager
    def process(self) -> Iterator[None]:
        """Count calls and let faults happen while the block runs: one process of the house."""
        self._watched, self._dead, self._transactions, self.is_watched = True, False, 0, True
        if not self._lies_until:  # what the one before left has reached the disk by itself
            self._unsynced.clear()
            self._names.clear()
        try:
            yield
        finally:
            self._watched = self._dead = self.is_watched = False
            self._after = ""

    def lose_power(self) -> bool:
        """Let the disk forget; return whether it had lied about anything that it forgot."""
        lied = False
        self.changes.note_all()
        for change in reversed(self._names):
            if self.chance.random() < 0.5:
                with contextlib.suppress(OSError):
                    change.undo()
                lied |= change.is_lied
        for inode, (path, is_lied) in self._unsynced.items():
            with contextlib.suppress(OSError):
                stat = os.stat(path)
                if stat.st_ino == inode and stat.st_size and self.chance.random() < 0.7:
                    os.chmod(path, 0o600)
                    os.truncate(path, self.chance.randrange(stat.st_size))
                    lied |= is_lied
        self._names.clear()
        self._unsynced.clear()
        self._lies_until = 0
        return lied

    # -- calls -------------------------------------------------------------------------------

    @contextmanager
    def bucket(self, name: str, request: str, path: str) -> Iterator[None]:
        """A request to a store, whose answer may be lost."""
        lost = self._before("bucket", f"{request} {path}", name)
        yield
        self._done()
        if lost:
            raise StoreError(name, f"{path}: the answer did not come")

    def _before(self, layer: str, what: object, store: str = "") -> bool:
        """Let a fault happen; return whether the answer of this call is lost."""
        if not self._watched:
            return False
        if self._dead:
            raise Killed
        self.calls += 1
        self._layers.add(layer)
        if self._lies_until and self.calls > self._lies_until:
            self._strike("power", layer, str(what))
        if not self._planned or self._planned[0][0] > self.calls:
            return False
        for at, (call, kind) in enumerate(self._planned):
            if call > self.calls:
                break
            if layer in _LAYERS[kind] and self._can(kind):
                del self._planned[at]
                return self._happen(kind, layer, str(what), store)
        return False

    def _can(self, kind: str) -> bool:
        """Return whether a kind can strike now, where it can at all."""
        return kind != "twin" or not (self._is_twin or self._transactions)

    def _happen(self, kind: str, layer: str, what: str, store: str) -> bool:
        self.struck.append(Struck(kind, self.calls, layer, _named(what)))
        if kind in {"kill", "power"}:
            self._die(kind)
        elif kind == "kill_after":
            self._after = "kill"
        elif kind == "lying_disk":
            self._lies_until = self.calls + _LIES_FOR
        elif kind == "twin":
            self._run_twin()
        elif kind == "lost_answer":
            return True
        elif layer == "bucket":
            raise StoreError(store, f"{what}: 503 SlowDown")
        elif layer == "database":
            words = "disk I/O error" if kind == "eio" else "database or disk is full"
            raise OperationalError(what, {}, sqlite3.OperationalError(words))
        else:
            code = errno.EIO if kind == "eio" else errno.ENOSPC
            raise OSError(code, os.strerror(code), what)
        return False

    def _strike(self, kind: str, layer: str, what: str) -> None:
        self.struck.append(Struck(kind, self.calls, layer, _named(what)))
        self._die(kind)

    def _die(self, kind: str) -> None:
        self._dead, self.is_watched = True, False
        raise Killed(kind)

    def _done(self) -> None:
        """After a call: die of it."""
        if self._after and not self._dead and self._watched:
            self._after = ""
            self._die("kill")

    def _run_twin(self) -> None:
        """Let another process run to its end, or to its death, before this call goes on."""
        held, self._transactions, self._is_twin = self._transactions, 0, True
        try:
            self.twin()
        finally:
            self._transactions, self._is_twin, self._dead = held, False, False
            self.is_watched = self._watched

    def _is_ours(self, path: object) -> bool:
        return (
            self._watched and isinstance(path, (str, PurePath)) and str(path).startswith(self.root)
        )

    @property
    def _is_lying(self) -> bool:
        return bool(self._lies_until)

    # -- wrapped calls -----------------------------------------------------------------------

    def _opened(self, file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if mode in _TO_READ:
            if not self._is_ours(file):
                return self._open(file, mode, *rest, **more)
            self._before("read", file)
            made = self._open(file, mode, *rest, **more)
            return self._done_or_closed(made) if self._after else made
        is_write, is_ours = any(flag in mode for flag in "wax+"), self._is_ours(file)
        is_same = not is_write or (_is_lock(file) and os.path.exists(file))
        if is_ours:
            self._before("write" if is_write else "read", str(file))
        made = self._open(file, mode, *rest, **more)
        if not is_same:
            self.changes.note(file)
        if not is_ours:
            return made
        if (is_write and "w" in mode) or "x" in mode:
            self._unsynced[os.fstat(made.fileno()).st_ino] = (str(file), self._is_lying)
        return self._done_or_closed(made)

    def _done_or_closed(self, made: Any) -> Any:
        """Let a process die once a file is open, which is not left open for it."""
        try:
            self._done()
        except Killed:
            made.close()
            raise
        return made

    def _os_open(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        is_write = bool(flags & (os.O_WRONLY | os.O_RDWR))
        is_ours = is_write and self._is_ours(path)
        if is_ours:
            self._before("write", str(path))
        made = int(self._real["open"](path, flags, *rest, **more))
        if is_write:
            self.changes.note(path)
        if not is_ours:
            return made
        if flags & os.O_CREAT:
            self._unsynced[os.fstat(made).st_ino] = (str(path), self._is_lying)
        self._done()
        return made

    def _fsync(self, descriptor: int) -> None:
        if not self._watched:
            self._real["fsync"](descriptor)
            return
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if not path.startswith(self.root):
            self._real["fsync"](descriptor)
            return
        self._before("sync", path)
        self.changes.note(path)
        inode = os.fstat(descriptor).st_ino
        if self._is_lying:
            if inode in self._unsynced:
                self._unsynced[inode] = (self._unsynced[inode][0], True)
            self._names = [
                change._replace(is_lied=True) if change.folder == path else change
                for change in self._names
            ]
        else:
            self._unsynced.pop(inode, None)
            self._names = [change for change in self._names if change.folder != path]
        self._done()

    def _replace(self, source: Any, target: Any, **more: Any) -> None:
        self._rename(source, target, "replace", more)

    def _renamed(self, source: Any, target: Any, **more: Any) -> None:
        self._rename(source, target, "rename", more)

    def _rename(self, source: Any, target: Any, call: str, more: dict[str, Any]) -> None:
        if not self._is_ours(source):
            self._real[call](source, target, **more)
            self.changes.note_tree(str(source), str(target))
            return
        old, new = str(source), str(target)
        self._before("name", new)
        before = self._content(new)
        if before is not None:
            self.seen(new, old)
        self._real[call](source, target, **more)
        self.changes.note_tree(old, new)
        for inode, (path, is_lied) in list(self._unsynced.items()):
            if path == old or path.startswith(f"{old}/"):
                self._unsynced[inode] = (new + path[len(old) :], is_lied)
        self._names.append(
            Named(os.path.dirname(new), lambda: self._undo_rename(old, new, before), False)
        )
        self.appeared(new)
        self._done()

    def _link(self, source: Any, target: Any, **more: Any) -> None:
        if not self._is_ours(target):
            self._real["link"](source, target, **more)
            self.changes.note(target)
            return
        self._before("name", str(target))
        self._real["link"](source, target, **more)
        self.changes.note(target)
        path = str(target)
        for inode, (known, is_lied) in list(self._unsynced.items()):
            if known == str(source):
                self._unsynced[inode] = (path, is_lied)
        self._names.append(Named(os.path.dirname(path), lambda: self._real["unlink"](path), False))
        self._done()

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None:
            path, dir_fd = f"{os.readlink(f'/proc/self/fd/{dir_fd}')}/{path}", None
        if not self._is_ours(path):
            self._real["unlink"](path, dir_fd=dir_fd)
            self.changes.note(path)
            return
        name = str(path)
        self._before("name", name)
        before = self._content(name)
        if before is not None:
            self.seen(name, "")
        self._real["unlink"](name)
        self.changes.note(name)
        if before is not None and not os.path.basename(name).startswith("."):
            undo = lambda: self._put_back(name, before)  # noqa: E731 - a closure over this removal
            self._names.append(Named(os.path.dirname(name), undo, False))
        self._done()

    def _changing(self, call: str) -> Callable[..., None]:
        """Return a call that no fault is of here; what it changes is counted."""
        real = self._real[call]

        def made(*given: Any, dir_fd: int | None = None, **more: Any) -> None:
            path = given[1] if call == "symlink" else given[0]
            if dir_fd is None:
                real(*given, **more)
            else:
                real(*given, dir_fd=dir_fd, **more)
                path = f"{os.readlink(f'/proc/self/fd/{dir_fd}')}/{path}"
            self.changes.note(path)

        return made

    def _content(self, path: str) -> bytes | None:
        """Return what a small file holds, past all faults."""
        try:
            if os.path.islink(path) or os.path.getsize(path) > _MOST_BYTES:
                return None
            with self._open(path, "rb") as file:
                return bytes(file.read())
        except OSError:
            return None

    def _put_back(self, path: str, content: bytes) -> None:
        if os.path.isdir(os.path.dirname(path)) and not os.path.exists(path):
            with self._open(path, "wb") as file:
                file.write(content)

    def _undo_rename(self, old: str, new: str, before: bytes | None) -> None:
        if not os.path.exists(new) or os.path.exists(old):
            return
        self._real["rename"](new, old)
        if before is not None:
            self._put_back(new, before)

    # -- the database ------------------------------------------------------------------------

    def _begun(self, _: object) -> None:
        self._transactions += 1

    def _ended(self, _: object) -> None:
        self._transactions = max(0, self._transactions - 1)

    def _committing(self, _: object) -> None:
        try:
            self._before("database", "commit")
        finally:
            self._transactions = max(0, self._transactions - 1)

    def _executing(self, *arguments: Any) -> None:
        if not arguments[2].lstrip().upper().startswith(("SELECT", "PRAGMA")):
            self._before("database", arguments[2].split()[0])

    def wrote(self) -> None:
        """A transaction is durable, and its writer does not know it yet."""
        self._before("committed", "commit")

    @contextmanager
    def wrapped(self) -> Iterator[None]:
        """Wrap the calls while the block runs."""
        wrappers = {
            "open": self._os_open,
            "fsync": self._fsync,
            "replace": self._replace,
            "rename": self._renamed,
            "link": self._link,
            "unlink": self._unlink,
            "remove": self._unlink,
        } | {call: self._changing(call) for call in _CHANGING}
        heard = {
            "begin": self._begun,
            "rollback": self._ended,
            "commit": self._committing,
            "before_cursor_execute": self._executing,
        }
        with ExitStack() as stack:
            for name, wrapper in wrappers.items():
                stack.enter_context(patch.object(os, name, wrapper))
            stack.enter_context(patch.object(io, "open", self._opened))
            stack.enter_context(patch("builtins.open", self._opened))
            for name, listener in heard.items():
                event.listen(Engine, name, listener)
                stack.callback(event.remove, Engine, name, listener)
            yield


_TO_READ = frozenset({"r", "rb"})
_CHANGING = ("mkdir", "rmdir", "symlink", "utime", "truncate")
_WRAPPED = ("open", "fsync", "replace", "rename", "link", "unlink", "remove", *_CHANGING)


def _is_lock(file: object) -> bool:
    """Return whether a file is one that processes hold and nobody reads."""
    return str(file).endswith(".lock")


def _named(what: str) -> str:
    """Return what a call was of, without names that are drawn."""
    return what.rpartition("/")[2][:24]
