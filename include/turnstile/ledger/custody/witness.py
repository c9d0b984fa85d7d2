"""Second places: signed notes and shipped entries, kept outside the ledger (PRIVACY 6, last rule).

The private key lives outside the ledger; the ledger's facts name its public line, and every witness
by a random name that the folder itself holds. So a lost key, another key, an unmounted witness and
an empty folder in its stead are all seen before anything is charged. A folder may be a bucket with
object lock or a git checkout: nothing in it is ever overwritten but what a loss of power cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path

from turnstile.durable_files import complete_durably, create_durably, replace_durably
from turnstile.errors import InputError, IntegrityError
from turnstile.ledger.custody.notes import (
    PUBLIC_KEY,
    UNREADABLE,
    HashAt,
    Note,
    NoteFolder,
    TrustedAt,
    note_findings,
)
from turnstile.ledger.custody.shipped import first_gap, ship, witness_id
from turnstile.ledger.custody.signed_note import ROTATE, Signer, is_signed_by, parse_note
from turnstile.ledger.entries import Entry
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import Finding, ReleaseKey

ANOTHERS = f"is not the ledger's; restore that one, or make the change known by {ROTATE}"
_NOTE_BYTES = 2**16
_STORE_BYTES = 2**22


Superseded = Callable[[int, str], bool]


def _never(_sequence: int, _hash: str) -> bool:
    """Say that no entry was lost."""
    return False


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Every folder that keeps notes, and the key that signs them.

    Args:
        folders: second places, chosen by the user.
        public: public zone, or None.
        key: path of the private key, or None if nothing can be signed here.
    """

    folders: tuple[Path, ...]
    public: Path | None
    key: Path | None

    @property
    def note_folders(self) -> tuple[NoteFolder, ...]:
        """Second places first, then the public zone."""
        second = tuple(NoteFolder(folder, is_public=False) for folder in self.folders)
        if self.public is None:
            return second
        return (*second, NoteFolder(self.public, is_public=True))

    @property
    def mounted(self) -> tuple[Path, ...]:
        """Second places that hold the name of a witness; an unmounted one is never made anew."""
        return tuple(folder for folder in self.folders if witness_id(folder) is not None)

    @property
    def _written(self) -> tuple[NoteFolder, ...]:
        """Folders to write notes and keys to."""
        return tuple(
            note_folder
            for note_folder in self.note_folders
            if note_folder.is_public or witness_id(note_folder.folder) is not None
        )

    @property
    def is_wanted(self) -> bool:
        """Anybody keeps notes."""
        return bool(self.note_folders)

    def notes(self) -> tuple[Note, ...]:
        """Read every note of every folder.

        Read notes before the ledger: a note is written after the entry that it names, so only then
        is a note beyond the ledger a sign that an old copy was restored.
        """
        return tuple(Note.read(path) for folder in self.note_folders for path in folder.notes())

    def findings(self, parties: Parties) -> Iterator[Finding]:
        """Yield every key and witness that is not the one that the ledger knows, and disputes."""
        yield from self.key_findings(parties)
        for cosigner in parties.disputed_by:
            problem = (
                f"cosigner {cosigner} has seen another tree than this ledger's log: an old copy "
                "was restored, or somebody signs beside it; look at it by turnstile doctor, keep "
                "every copy, then begin another log: turnstile ledger begin-log --reason TEXT"
            )
            yield Finding("cosigner", None, problem)
        if not parties.since:
            return
        mounted = {folder: witness_id(folder) for folder in self.folders}
        for name, folder in parties.witnesses.items():
            if name not in mounted.values():
                problem = (
                    f"witness {name[:8]} ({folder}) is not there; mount it and name it in "
                    "TURNSTILE_WITNESS, or take it out by turnstile ledger witness remove "
                    f"{name[:8]} --reason TEXT"
                )
                yield Finding("witness", None, problem)
        for stranger, witness_name in mounted.items():
            if witness_name not in parties.witnesses:
                problem = (
                    f"{stranger} is no witness of this ledger; mount the right one, add it by "
                    f"turnstile ledger witness add {stranger} --reason TEXT, or take it out of "
                    "TURNSTILE_WITNESS"
                )
                yield Finding("witness", None, problem)

    def lacking(
        self, notes: Iterable[Note], parties: Parties, hash_at: HashAt, trusted_at: TrustedAt
    ) -> Iterator[tuple[Note, Path]]:
        """Yield each good note of the public zone that a witness lacks, and its place there.

        A note is written to witnesses first, and to the public zone last. Of other notes nothing
        tells that a witness had them.
        """
        since_of = {folder: parties.since.get(str(witness_id(folder))) for folder in self.mounted}
        public = [note for note in notes if str(note.path).startswith(f"{self.public}/")]
        for (folder, since), note in product(since_of.items(), public):
            if since and (seen := note.checkpoint) and since <= seen.sequence:
                place = NoteFolder(folder, is_public=False).path_for(seen.sequence)
                is_lost = parties.is_superseded(seen.sequence, seen.hash)
                wrong = note_findings(note, hash_at, trusted_at, parties.is_superseded)
                if not is_lost and not place.exists() and not any(wrong):
                    yield note, place

    def kept_lines(self) -> tuple[str, ...]:
        """Return the public lines that the folders were given."""
        lines = (line for folder in self.note_folders for line in folder.key_lines())
        return tuple(dict.fromkeys(lines))

    def signing_lines(self) -> tuple[str, ...]:
        """Return those of them under which a note that lies there is signed.

        Of another nothing tells whether its key was ever the ledger's: it may be planted.
        """
        seen = [note.checkpoint for note in self.notes()]
        return tuple(
            line
            for line in self.kept_lines()
            if any(is_signed_by(line, checkpoint) for checkpoint in seen if checkpoint)
        )

    def key_findings(self, parties: Parties) -> Iterator[Finding]:
        """Yield what is wrong with the private key and the copies of its public line."""
        kept = self.kept_lines()
        if self.key is not None and (parties.key is not None or kept):
            if not self.key.exists():
                problem = f"is gone; restore it, or make another by {ROTATE}"
                yield Finding("key", None, f"the signing key {self.key} {problem}")
            elif parties.key is not None and self._own_line() != parties.key:
                yield Finding("key", None, f"the signing key {self.key} {ANOTHERS}")
        known = set(parties.key_lines) or ({self._own_line()} if self.has_key else set())
        # one that has lost its name is no witness: see `findings`
        for file, lines in chain.from_iterable(folder.key_files() for folder in self._written):
            if known and not known.issuperset(lines):
                problem = "is not the ledger's key; take it away, once it is known who put it there"
                mend = "turnstile ledger republish writes it again"
                yield Finding("key", None, f"{file} {problem}: {mend}")

    @property
    def has_key(self) -> bool:
        """There is a private key to read."""
        return self.key is not None and self.key.exists()

    @property
    def may_sign(self) -> bool:
        """There is a private key that this login may read."""
        return self.key is not None and os.access(self.key, os.R_OK)

    def signs_for(self, parties: Parties) -> bool:
        """Return whether the private key is the one that the ledger names, if it names any.

        A note under another one would accuse for ever, though its key be named a moment later.
        """
        return self.has_key and parties.key in {None, self._own_line()}

    def _own_line(self) -> str:
        """Return the public line of the private key; empty if it cannot be read."""
        try:
            return self.signer().public_line
        except InputError:
            return ""

    def trusted_at(self, parties: Parties) -> Callable[[int], tuple[str, ...]]:
        """Return which keys a note has to be signed by, by its number of entries.

        Where the ledger never named a key (version 0.1.0) that is the private key's own line, or
        else what the folders were given.
        """
        unnamed = self.kept_lines()
        if self.has_key:
            unnamed = (self._own_line(),)

        def trusted(sequence: int) -> tuple[str, ...]:
            line = parties.key_at(sequence)
            return unnamed if line is None else (line,)

        return trusted

    def signer(self) -> Signer:
        """Return the private key.

        Raises:
            InputError: there is no place for one, or it cannot be read.
        """
        return Signer.load(self._key_path())

    def make_key(self) -> Signer:
        """Return the private key, made on first use.

        Raises:
            InputError: there is no place for one, or it cannot be made.
        """
        return Signer.make(self._key_path())

    @property
    def log_key(self) -> Path:
        """Where the key of the transparency log is: beside the ledger's, which signs other notes.

        Raises:
            InputError: there is no place for one.
        """
        return self._key_path().with_name("log-key.pem")

    @property
    def log_policy(self) -> Path:
        """Where the cosigners of the transparency log are named, if there are any.

        Raises:
            InputError: there is no place for it.
        """
        return self._key_path().with_name("log-policy.txt")

    def _key_path(self) -> Path:
        if self.key is None:
            rule = "a checkpoint needs a signing key; name a public zone or a key file"
            raise InputError(where="ledger", field="key", rule=rule)
        return self.key

    def keep_keys(self, lines: Iterable[str]) -> None:
        """Let every folder hold the public lines of all keys, the first one first.

        Raises:
            InputError: a folder cannot be written.
        """
        first, *later = lines
        for folder in self._written:
            with naming(folder.folder):
                folder.folder.mkdir(parents=True, exist_ok=True)
                path = folder.folder / PUBLIC_KEY
                if folder.is_public:  # readers of packages look nowhere else
                    every_line = "".join((first, *later)).encode()
                    complete_durably(path, every_line)
                    if later and set(folder.key_lines()) < {first, *later}:
                        replace_durably(path, every_line)
                    continue
                complete_durably(path, first.encode())
                for number, line in enumerate(later, start=2):
                    complete_durably(folder.folder / f"ledger-{number:03d}.pub", line.encode())

    def space(self) -> dict[Path, int]:
        """Return the bytes that the notes and entries of one draw need at most, by folder."""
        needed = dict.fromkeys(self.folders, _STORE_BYTES)
        if self.public is not None:
            needed[self.public] = _NOTE_BYTES
        return needed

    def ship(self, later: Callable[[int], Iterable[Entry]]) -> None:
        """Write every entry that a witness does not hold yet to it, gaps among them too.

        Args:
            later: returns the ledger's entries after a number, in order.

        Raises:
            InputError: a witness cannot be written.
            IntegrityError: another copy of this ledger writes to the same witness.
        """
        for folder in self.mounted:
            with naming(folder):
                ship(folder, later(max(0, first_gap(folder) - 2)))

    def write(
        self,
        head: tuple[int, str],
        release: tuple[ReleaseKey, str] | None = None,
        superseded: Superseded = _never,
    ) -> str:
        """Sign a head and write the note to every folder; return it.

        Args:
            head: sequence and hash of the last entry.
            release: whose note goes beside its package too, and the digest of its manifest.
            superseded: whether a recovery declared an entry lost, so that its note may stay.

        Raises:
            InputError: there is no key, or a folder cannot be written.
            IntegrityError: a note stands there already that names another entry, or none.
        """
        signer = self.signer()
        note = signer.sign(head)
        for folder in self._written:
            with naming(folder.folder):
                path = folder.path_for(head[0])
                path.parent.mkdir(parents=True, exist_ok=True)
                if folder.is_public:
                    replace_durably(path, note.encode())
                else:
                    _create_once(path, note, superseded)
        if release is not None and self.public is not None:
            key, manifest_digest = release
            path = NoteFolder(self.public, is_public=True).path_beside(key)
            with naming(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                if Note.read(path).checkpoint is None:  # a disk may have torn it
                    replace_durably(path, signer.sign(head, (str(key), manifest_digest)).encode())
        return note


def _create_once(path: Path, note: str, superseded: Superseded) -> None:
    """Write a note; one that stands there has to name the same entry, or a lost one."""
    if create_durably(path, note.encode()):
        return
    existing = Note.read(path).checkpoint
    checkpoint = parse_note(note)
    if existing is not None and superseded(existing.sequence, existing.hash):
        create_durably(path.with_name(f"{path.stem}-{checkpoint.hash[:8]}.note"), note.encode())
        return
    if existing is None:  # a loss of power tore it
        raise IntegrityError(f"{path} {UNREADABLE}")
    if (existing.sequence, existing.hash) != (checkpoint.sequence, checkpoint.hash):
        raise IntegrityError(
            f"{path} names another entry: another copy of this ledger lives on with the same "
            "witness; stop one of them, keep both, and run turnstile ledger verify"
        )


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Say which folder cannot be written, and what to do.

    Raises:
        InputError: the file system refused.
    """
    try:
        yield
    except OSError as error:
        rule = f"{error.strerror}; make the folder writable, then run the step again"
        raise InputError(where=str(folder), field="witness", rule=rule) from error
