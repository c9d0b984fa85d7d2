"""Signed checkpoints: where the ledger stood, kept outside the ledger (PRIVACY 6, last rule).

A note follows C2SP signed-note and tlog-checkpoint: origin, number of entries, hash of the last one
in base64, and an Ed25519 signature. The key is made on first use and lives outside the ledger; each
place keeps a copy of the public key from the first note on. Notes in a witness folder are never
overwritten, so the folder may be a bucket with object lock or a git checkout.

    <witness>/ledger.pub                                <public>/ledger.pub
    <witness>/checkpoints/000000000042.note             <public>/ledger-checkpoint.note
                                                        <public>/opal/2016-W30/checkpoint-r0.note
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EACCES
from pathlib import Path

from turnstile.errors import InputError
from turnstile.ledger.records import Finding, ReleaseKey

_NAME = "turnstile.ledger"
_ED25519 = b"\x01"
_KEY_ID_BYTES = 4
_DIGITS = 12
HashAt = Callable[[int], str | None]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A note as read: number of entries, hash of the last, and who signed."""

    sequence: int
    hash: str
    text: str
    key_id: bytes
    signature: bytes


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
            with _told_of(place):
                _write_once(place.folder / "ledger.pub", signer.public_line)
                for path in place.paths_for(head[0], key):
                    (_replace if place.is_public else _write_once)(path, note)
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
            with _told_of(place):
                _write_once(place.folder / "ledger.pub", public_line)
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

    def _signer(self) -> _Signer:
        """Return the key, making it on first use."""
        if self.key is None:
            rule = "a checkpoint needs a signing key; name a public zone or a key file"
            raise InputError(where="ledger", field="key", rule=rule)
        return _Signer.load(self.key)

    def _trusted(self, place: Place) -> tuple[str, ...]:
        """Return public keys to trust: the ledger's own, or else what the place was given."""
        if self.key is not None and self.key.exists():
            return (_Signer.load(self.key).public_line,)
        kept = place.folder / "ledger.pub"
        return tuple(kept.read_text("utf-8").splitlines()) if kept.exists() else ()


@contextmanager
def _told_of(place: Place) -> Iterator[None]:
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
    if not any(_is_signed_by(line, checkpoint) for line in note.trusted):
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


class _Signer:
    """The ledger's private key."""

    def __init__(self, path: Path) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        private = load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(private, Ed25519PrivateKey):
            rule = "is no Ed25519 key; move it away and a new one is made"
            raise InputError(where=str(path), field="key", rule=rule)
        self._private = private

    def __reduce__(self) -> str:
        """Refuse to travel.

        Raises:
            TypeError: always.
        """
        msg = "a signing key does not travel"
        raise TypeError(msg)

    @classmethod
    def load(cls, path: Path) -> _Signer:
        """Read the key, making it first if there is none.

        Raises:
            InputError: the file cannot be read or made, or holds another kind of key.
        """
        try:
            if not path.exists():
                _write_once(path, _new_key(), mode=0o600)
            return cls(path)
        except (OSError, ValueError) as error:
            rule = "the signing key cannot be read or made; make its folder writable"
            raise InputError(where=str(path), field="key", rule=rule) from error

    @property
    def public_line(self) -> str:
        """The public key as a C2SP verifier key."""
        raw = self._private.public_key().public_bytes_raw()
        return f"{_NAME}+{_key_id(raw).hex()}+{_b64(_ED25519 + raw)}\n"

    def sign(self, head: tuple[int, str]) -> str:
        """Return the signed note of a head."""
        text = f"{_NAME}\n{head[0]}\n{_b64(bytes.fromhex(head[1]))}\n"
        key_id = _key_id(self._private.public_key().public_bytes_raw())
        return f"{text}\n— {_NAME} {_b64(key_id + self._private.sign(text.encode()))}\n"


def parse_note(note: str) -> Checkpoint:
    """Read a signed note.

    Raises:
        ValueError: it is not one.
    """
    text, _, signatures = note.partition("\n\n")
    origin, size, head = text.split("\n")
    dash, name, signature = signatures.strip().split(" ")
    if (origin, dash, name) != (_NAME, "—", _NAME):
        msg = "not a checkpoint of this ledger"
        raise ValueError(msg)
    signed = base64.b64decode(signature, validate=True)
    return Checkpoint(
        sequence=int(size),
        hash=base64.b64decode(head, validate=True).hex(),
        text=f"{text}\n",
        key_id=signed[:_KEY_ID_BYTES],
        signature=signed[_KEY_ID_BYTES:],
    )


def _is_signed_by(public_line: str, checkpoint: Checkpoint) -> bool:
    """Verify a signature with a verifier key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        _, _, encoded = public_line.strip().split("+", 2)
        raw = base64.b64decode(encoded, validate=True)[1:]
        Ed25519PublicKey.from_public_bytes(raw).verify(
            checkpoint.signature, checkpoint.text.encode()
        )
    except (ValueError, InvalidSignature):
        return False
    return checkpoint.key_id == _key_id(raw)


def _key_id(raw: bytes) -> bytes:
    """Return the C2SP key id of a public key."""
    return hashlib.sha256(_NAME.encode() + b"\n" + _ED25519 + raw).digest()[:_KEY_ID_BYTES]


def _b64(raw: bytes) -> str:
    """Encode bytes."""
    return base64.b64encode(raw).decode()


def _new_key() -> str:
    """Make a private key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return (
        Ed25519PrivateKey.generate()
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )


def _write_once(path: Path, text: str, mode: int = 0o644) -> None:
    """Make a file, durably and whole; leave one that exists as it is."""
    if path.exists():
        return
    draft = _draft(path, text, mode)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _replace(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file, durably and whole."""
    _draft(path, text, mode).replace(path)


def _draft(path: Path, text: str, mode: int) -> Path:
    """Write a file beside its final place, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    return draft
