"""Files that a reader sees whole or not at all, and that survive a crash once a call returns.

Content and name are both synced: a file whose name was not may be gone after a loss of power.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from turnstile.errors import InputError, IntegrityError, TurnstileError

EVERYBODY_READS = 0o644
OWNER_ONLY = 0o600
DRAFT = r"\.[^/]+\.[0-9a-f]{16}"
"""Pattern of a draft's name: of whoever writes at this moment, or was killed."""
SET_ASIDE = "set-aside"
SEALED = "sealed-"
"""What a name begins with whose bytes are written once, and deleted by nobody."""
_SEALED_NAME = re.compile(rf"{SEALED}[0-9a-f]{{16}}\.parquet")


def replace_durably(path: Path, content: bytes, mode: int = EVERYBODY_READS) -> None:
    """Write a file, in the place of one that may exist.

    Args:
        path: in a folder that exists.
        content: all of it.
        mode: permissions of the file, less the process's umask.

    Raises:
        OSError: the disk is full or the folder cannot be written; what was there is unchanged.
    """
    with _draft(path, content, mode) as draft:
        draft.replace(path)
    sync_folder(path.parent)


def create_durably(path: Path, content: bytes, mode: int = EVERYBODY_READS) -> bool:
    """Write a file unless there is one; of several writers at once, one succeeds.

    Returns:
        Whether this call made the file.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    if path.exists():
        return False
    with _draft(path, content, mode) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


def complete_durably(path: Path, content: bytes) -> None:
    """Write a file that is not there, or ends early, as a loss of power leaves it.

    What else stands in its place somebody put there: it stays, for people to look at.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    if create_durably(path, content) or not path.is_file() or path.is_symlink():
        return
    with suppress(PermissionError):  # nobody reads it: it is not ours
        if (there := path.read_bytes()) != content and content.startswith(there):
            replace_durably(path, content)


@contextmanager
def exclusively(path: Path, *, waits: bool = True) -> Iterator[BinaryIO]:
    """Hold a lock file while the block runs; the system lets it go when the process dies.

    Yields:
        The file, to append to; a process that inherits it holds the lock too.

    Raises:
        BlockingIOError: somebody holds it, and this call does not wait.
    """
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield file


def name_of_lock(file: BinaryIO) -> str:
    """Name a lock that is held, so that nobody takes another one for it: machine, disk, file.

    A file that came back from a copy is another lock than the one that was held.
    """
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # no Linux
        machine = platform.node()
    status = os.fstat(file.fileno())
    return f"{machine}/{status.st_dev}/{status.st_ino}"


def refuse_if_full(error: Exception) -> None:
    """Say that there is no space, whichever library found it out: all hand on the system's words.

    Raises:
        InputError: a disk or a quota is full.
    """
    if any(os.strerror(code) in str(error) for code in (errno.ENOSPC, errno.EDQUOT)):
        rule = "a disk is full: free space, then run the step again"
        raise InputError(where="zones", field="space", rule=rule) from None


@contextmanager
def full_disk_named() -> Iterator[None]:
    """Do what `refuse_if_full` does with whatever the block raises, but our own sentences.

    Raises:
        InputError: a disk or a quota is full.
    """
    try:
        yield
    except TurnstileError:
        raise
    except Exception as error:
        refuse_if_full(error)
        raise


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex, read block by block."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def delete_for_good(path: Path, *, delivered: bool = False) -> None:
    """Delete a file, a link or a folder with all that is in it: the one way by which data go.

    Args:
        path: what goes.
        delivered: whether it lies in the landing zone, where an authority calls files as it likes.

    Raises:
        IntegrityError: sealed bytes are among it; whoever asks is wrong, and nothing was deleted.
        OSError: something of it cannot be deleted; the rest is gone.
    """
    is_folder, stayed = path.is_dir() and not path.is_symlink(), list[BaseException]()
    if not delivered:
        require_not_sealed(path, *(path.rglob("*") if is_folder else ()))
    if is_folder:
        shutil.rmtree(path, onerror=lambda _, __, raised: stayed.append(raised[1]))
    else:
        path.unlink(missing_ok=True)
    for error in stayed:
        raise error


def require_not_sealed(*paths: Path) -> None:
    """Refuse to delete what has the name of sealed bytes: files here, objects of buckets.

    Raises:
        IntegrityError: one of them has.
    """
    if (sealed := next(filter(is_named_sealed, paths), None)) is not None:
        raise IntegrityError(
            f"{sealed} has the name of sealed bytes, which are never deleted: find out what it "
            "holds; take it away if it does not belong there, then run the same again"
        )


def move_durably(path: Path, target: Path) -> None:
    """Move a file or folder to another place of a zone, so that no loss of power puts it back.

    Raises:
        FileNotFoundError: it is gone.
    """
    source = path.parent
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    made = (folder for folder in target.parents if not source.is_relative_to(folder))
    above = next(folder for folder in target.parents if source.is_relative_to(folder))
    for folder in {*made, above, source}:
        sync_folder(folder)


def set_aside(leftover: Path) -> bool:
    """Move a file or folder of a draw that died out of the way.

    Returns:
        False if another did already.
    """
    try:
        move_durably(
            leftover, leftover.parent / SET_ASIDE / f"{leftover.name}.{secrets.token_hex(4)}"
        )
    except FileNotFoundError:
        return False
    return True


def sealed_name(digest: str) -> str:
    """Return the name of the file of sealed bytes, by their SHA-256 in hex."""
    return f"{SEALED}{digest[:16]}.parquet"


def is_named_sealed(path: Path) -> bool:
    """Return whether a file has the name of sealed bytes, so that nothing deletes it."""
    return _SEALED_NAME.fullmatch(path.name) is not None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make everything below a folder durable, contents and names, before a rename shows it.

    Raises:
        OSError: a file or folder cannot be synced.
    """
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def draft_of(path: Path) -> Path:
    """Return a name for what becomes a file when it is whole: hidden, and no other writer's."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


@contextmanager
def _draft(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    """Write content under a name beside the final one; whatever is left of it goes at the end."""
    draft = draft_of(path)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
