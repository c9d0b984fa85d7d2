"""Signed checkpoints: where the ledger stood, kept outside the ledger (PRIVACY 6, last rule).

The key is made on first use and lives outside the ledger; each place keeps a copy of the public key
from the first note on. Notes in a witness folder are never overwritten, so the folder may be a
bucket with object lock or a git checkout.

    <witness>/ledger.pub                                <public>/ledger.pub
    <witness>/checkpoints/000000000042.note             <public>/ledger-checkpoint.note
                                                        <public>/opal/2016-W30/checkpoint-r0.note
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EACCES
from pathlib import Path

from turnstile.durable_files import create_durably, replace_durably
from turnstile.errors import InputError
from turnstile.ledger.records import Finding, ReleaseKey
from turnstile.ledger.signed_note import Signer, is_signed_by, parse_note

_DIGITS = 12
HashAt = Callable[[int], str | None]


@dataclass(frozen=True, slots=True)
class Note:
    """A note as it was found, and the verifier keys of which one has to have signed it."""

    path: Path
    text: str
    trusted: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, trusted: tuple[str, ...]) -> Note:
        """Read a note; what cannot be read is empty, and no checkpoint."""
        try:
            return cls(path, path.read_text("utf-8"), trusted)
        except (OSError, ValueError):
            return cls(path, "", trusted)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that keeps notes."""

    folder: Path
    is_public: bool

    def notes(self) -> list[Path]:
        """Return every note, oldest first."""
        if self.is_public:
            beside = sorted(self.folder.glob("*/*/checkpoint-r*.note"))
            latest = self.folder / "ledger-checkpoint.note"
            return [*beside, *([latest] if latest.exists() else [])]
        return sorted((self.folder / "checkpoints").glob("*.note"))

    def newest(self) -> Path | None:
        """Return the note that stands furthest in the ledger."""
        if self.is_public:
            latest = self.folder / "ledger-checkpoint.note"
            return latest if latest.exists() else None
        return max(self.notes(), default=None)

    def keep_key(self, public_line: str) -> None:
        """Keep a copy of the public key, unless there is one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        create_durably(self.folder / "ledger.pub", public_line.encode())

    def paths_for(self, sequence: int, key: ReleaseKey | None) -> tuple[Path, ...]:
        """Return where a new note goes."""
        if not self.is_public:
            return (self.folder / "checkpoints" / f"{sequence:0{_DIGITS}d}.note",)
        latest = self.folder / "ledger-checkpoint.note"
        if key is None:
            return (latest,)
        beside = self.folder / key.programme / key.period / f"checkpoint-r{key.revision}.note"
        return (beside, latest)


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Every place that keeps notes, and the key that signs them.

    Args:
        folders: second places, chosen by the user.
        public: public zone, or None.
        key: path of the private key, or None if nothing can be signed here.
    """

    folders: tuple[Path, ...]
    public: Path | None
    key: Path | None

    @property
    def places(self) -> tuple[Place, ...]:
        """Second places first, then the public zone."""
        second = tuple(Place(folder, is_public=False) for folder in self.folders)
        return second if self.public is None else (*second, Place(self.public, is_public=True))

    @property
    def is_wanted(self) -> bool:
        """Anybody keeps notes."""
        return bool(self.places)

    def write(self, head: tuple[int, str], key: ReleaseKey | None = None) -> str:
        """Sign a head and write the note to every place; return it.

        Args:
            head: sequence and hash of the last entry.
            key: release that the note goes beside, in the public zone.

        Raises:
            InputError: there is no key path, or a place cannot be written.
        """
        signer = self._signer()
        note = signer.sign(head)
        for place in self.places:
            write = replace_durably if place.is_public else create_durably
            with _naming(place):
                place.keep_key(signer.public_line)
                for path in place.paths_for(head[0], key):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write(path, note.encode())
        return note

    def prepare(self) -> None:
        """Make sure that a note can be written to every place, before anything is charged.

        Raises:
            InputError: there is no key, or a place cannot be written.
        """
        if not self.places:
            return
        public_line = self._signer().public_line
        for place in self.places:
            with _naming(place):
                place.keep_key(public_line)
                if not os.access(place.folder, os.W_OK):
                    raise PermissionError(EACCES, os.strerror(EACCES))

    def newest(self) -> tuple[Note, ...]:
        """Read the note of every place that stands furthest in the ledger.

        Read notes before the ledger: a note is written after the entry that it names, so only then
        is a note beyond the ledger a sign that an old copy was restored.
        """
        return tuple(
            Note.read(path, self._trusted(place))
            for place in self.places
            if (path := place.newest()) is not None
        )

    def every(self) -> tuple[Note, ...]:
        """Read every note of every place; before the ledger, as above."""
        return tuple(
            Note.read(path, trusted)
            for place in self.places
            for trusted in (self._trusted(place),)
            for path in place.notes()
        )

    def signed(self, head: tuple[int, str]) -> tuple[str, str]:
        """Return the public key and the signed note of a head; nothing is written but a new key.

        Raises:
            InputError: there is no place for a key.
        """
        signer = self._signer()
        return signer.public_line, signer.sign(head)

    def _signer(self) -> Signer:
        """Return the key, making it on first use."""
        if self.key is None:
            rule = "a checkpoint needs a signing key; name a public zone or a key file"
            raise InputError(where="ledger", field="key", rule=rule)
        return Signer.load(self.key)

    def _trusted(self, place: Place) -> tuple[str, ...]:
        """Return public keys to trust: the ledger's own, or else what the place was given."""
        if self.key is not None and self.key.exists():
            return (Signer.load(self.key).public_line,)
        kept = place.folder / "ledger.pub"
        return tuple(kept.read_text("utf-8").splitlines()) if kept.exists() else ()


@contextmanager
def _naming(place: Place) -> Iterator[None]:
    """Say which place cannot be written, and what to do.

    Raises:
        InputError: the file system refused.
    """
    try:
        yield
    except OSError as error:
        rule = f"{error.strerror}; make the folder writable, then run the step again"
        raise InputError(where=str(place.folder), field="witness", rule=rule) from error


def note_findings(note: Note, hash_at: HashAt) -> Iterator[Finding]:
    """Check one note: its signature, and that the ledger holds what it says.

    Args:
        note: as read.
        hash_at: looks up the hash of an entry; None if there is none.
    """
    try:
        checkpoint = parse_note(note.text)
    except ValueError:
        yield Finding("checkpoint", None, f"{note.path} is no readable checkpoint")
        return
    if not any(is_signed_by(line, checkpoint) for line in note.trusted):
        problem = f"{note.path} carries no signature of the ledger's key"
        yield Finding("checkpoint", checkpoint.sequence, problem)
        return
    found = hash_at(checkpoint.sequence)
    if found is None:
        problem = f"the ledger ends before it, but {note.path} saw it: an old copy was restored"
        yield Finding("checkpoint", checkpoint.sequence, problem)
    elif found != checkpoint.hash:
        problem = f"is not the entry that {note.path} saw: the ledger's history was replaced"
        yield Finding("checkpoint", checkpoint.sequence, problem)
