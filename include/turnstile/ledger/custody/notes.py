"""Notes as they lie in folders: where they go, how they are read, and what is wrong with one.

    <witness>/ledger.pub                                <public>/ledger.pub
    <witness>/checkpoints/000000000042.note             <public>/ledger-checkpoint.note
                                                        <public>/opal/2016-W30/checkpoint-r0.note

Notes in a witness folder and beside a package are written once; only the public zone's newest one
is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from turnstile.ledger.custody.folders import content_of, listed, period_folders
from turnstile.ledger.custody.signed_note import Checkpoint, is_signed_by, parse_note
from turnstile.ledger.records import Finding, ReleaseKey

PUBLIC_KEY = "ledger.pub"
LATEST_NOTE = "ledger-checkpoint.note"
_DIGITS = 12
HashAt = Callable[[int], str | None]
TrustedAt = Callable[[int], tuple[str, ...]]
"""Verifier keys of which one has to have signed a note of so many entries."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note as it was found."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> Note:
        """Read a note; what cannot be read is empty, and no checkpoint."""
        try:
            return cls(path, content_of(path).decode())
        except (OSError, ValueError):
            return cls(path, "")

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What it says; None if it is no checkpoint."""
        try:
            return parse_note(self.text)
        except ValueError:
            return None

    def is_in_place(self, seen: Checkpoint) -> bool:
        """Return whether what it says belongs where it lies: by its release, or by its entries."""
        *_, programme, period, name = self.path.absolute().parts
        if name[0].isdigit():
            return name.startswith(f"{seen.sequence:0{_DIGITS}d}")
        of_place = f"{programme}/{period}/{name.removesuffix('.note').removeprefix('checkpoint-')}"
        return seen.release is None or seen.release[0] == of_place  # version 0.1.0 names none


@dataclass(frozen=True, slots=True)
class NoteFolder:
    """A folder that keeps notes."""

    folder: Path
    is_public: bool

    def notes(self) -> list[Path]:
        """Return every note, oldest first.

        Raises:
            InputError: a folder cannot be read.
        """
        if not self.is_public:
            return [
                Path(file.path) for file in listed(self.folder / "checkpoints") if _is_note(file)
            ]
        beside = [
            Path(file.path)
            for _, period in period_folders(self.folder)
            for file in listed(period.path)
            if _is_note(file) and file.name.startswith("checkpoint-r")
        ]
        latest = self.folder / LATEST_NOTE
        return [*beside, *([latest] if latest.exists() else [])]

    def key_files(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield the files of verifier keys that the folder was given, and what each holds."""
        for path in (self.folder / PUBLIC_KEY, *sorted(self.folder.glob("ledger-*.pub"))):
            if path.is_file():
                lines = path.read_text("utf-8", errors="replace").splitlines()
                yield path, [f"{line}\n" for line in lines]

    def key_lines(self) -> tuple[str, ...]:
        """Return the verifier keys that the folder was given, one a line."""
        return tuple(line for _, lines in self.key_files() for line in lines)

    def path_for(self, sequence: int) -> Path:
        """Return where a note of so many entries goes."""
        if self.is_public:
            return self.folder / LATEST_NOTE
        return self.folder / "checkpoints" / f"{sequence:0{_DIGITS}d}.note"

    def path_beside(self, key: ReleaseKey) -> Path:
        """Return where the note of a release goes, in the public zone."""
        return self.folder / key.programme / key.period / f"checkpoint-r{key.revision}.note"


_AGAIN = "beside a package turnstile ledger republish writes it again"
UNREADABLE = f"is no readable checkpoint; take it away: {_AGAIN}"


def _is_note(file: os.DirEntry[str]) -> bool:
    """Tell whether a file is named as notes are."""
    return file.name.endswith(".note")


def note_findings(
    note: Note, hash_at: HashAt, trusted_at: TrustedAt, superseded: Callable[[int, str], bool]
) -> Iterator[Finding]:
    """Check one note: its signature, and that the ledger holds what it says.

    Args:
        note: as read.
        hash_at: looks up the hash of an entry; None if there is none.
        trusted_at: whose signature it needs.
        superseded: whether a recovery declared that entry lost.
    """
    checkpoint = note.checkpoint
    if checkpoint is None:
        yield Finding("checkpoint", None, f"{note.path} {UNREADABLE}")
        return
    if superseded(checkpoint.sequence, checkpoint.hash):
        return
    if not any(is_signed_by(line, checkpoint) for line in trusted_at(checkpoint.sequence)):
        problem = f"{note.path} carries no signature of the ledger's key"
        yield Finding("checkpoint", checkpoint.sequence, problem)
        return
    if not note.is_in_place(checkpoint):
        problem = f"{note.path} is the note of another place; take it away: {_AGAIN}"
        yield Finding("checkpoint", checkpoint.sequence, problem)
    head = (checkpoint.sequence, checkpoint.hash)
    yield from head_findings(head, note.path, hash_at(checkpoint.sequence))


def head_findings(
    head: tuple[int, str], seen_by: Path, ledger_hash: str | None
) -> Iterator[Finding]:
    """Check that the ledger holds an entry that something outside of it names.

    Args:
        head: sequence and hash that were seen.
        seen_by: file that names them.
        ledger_hash: the ledger's own hash under that number; None if it has not come that far.
    """
    sequence, seen = head
    if ledger_hash is None:
        problem = f"the ledger ends before it, but {seen_by} saw it: an old copy was restored"
        yield Finding("checkpoint", sequence, problem)
    elif ledger_hash != seen:
        problem = f"is not the entry that {seen_by} saw: the ledger's history was replaced"
        yield Finding("checkpoint", sequence, problem)
