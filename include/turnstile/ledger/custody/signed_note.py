"""Signed notes: the format of a checkpoint, and the key that signs it.

A note follows C2SP signed-note: origin, number of entries, hash of the last one in base64, and an
Ed25519 signature. It is no tlog-checkpoint, whose third line is an RFC 6962 root: here it is the
hash of a chain (public witnesses cosign those of `tlog`). The note of a release carries one more
signed line, which names the release and its manifest: `release opal/2016-W30/r0 SHA-256`.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from turnstile.durable_files import OWNER_ONLY, create_durably
from turnstile.errors import InputError

ROTATE = "turnstile ledger rotate-key --reason TEXT"
_NAME = "turnstile.ledger"
ED25519 = b"\x01"
KEY_ID_BYTES, _SIGNATURE_BYTES = 4, 64
_PUBLIC_BYTES = 32
_RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A note as read: number of entries, hash of the last, and who signed.

    Args:
        sequence: number of entries.
        hash: of the last one.
        text: what was signed.
        key_id: C2SP id of the key.
        signature: Ed25519.
        release: key and manifest digest of the release that the note goes beside, or None.
    """

    sequence: int
    hash: str
    text: str
    key_id: bytes
    signature: bytes
    release: tuple[str, str] | None = None


class Signer:
    """The ledger's private key."""

    def __init__(self, path: Path) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        private = load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(private, Ed25519PrivateKey):
            rule = f"is no Ed25519 key; restore the ledger's own, or run {ROTATE}"
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
    def load(cls, path: Path) -> Signer:
        """Read the key.

        Raises:
            InputError: the file cannot be read, or holds another kind of key.
        """
        try:
            return cls(path)
        except (OSError, ValueError) as error:
            rule = f"the signing key cannot be read; restore it, or run {ROTATE}"
            raise InputError(where=str(path), field="key", rule=rule) from error

    @classmethod
    def make(cls, path: Path) -> Signer:
        """Make a key, unless there is one, and read it.

        Raises:
            InputError: the file cannot be made or read.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            create_durably(path, _new_key(), OWNER_ONLY)
        except OSError as error:
            rule = "the signing key cannot be made; make its folder writable"
            raise InputError(where=str(path), field="key", rule=rule) from error
        return cls.load(path)

    @property
    def public_line(self) -> str:
        """The public key as a C2SP verifier key."""
        return self.line_of(_NAME)

    def line_of(self, name: str) -> str:
        """Return the public key as the C2SP verifier key of a name."""
        raw = self._private.public_key().public_bytes_raw()
        return f"{name}+{key_id(name, ED25519, raw).hex()}+{_b64(ED25519 + raw)}\n"

    def note(self, name: str, text: str) -> str:
        """Return a text, which ends in a line's end, as a note that is signed under a name."""
        identity = key_id(name, ED25519, self._private.public_key().public_bytes_raw())
        return f"{text}\n— {name} {_b64(identity + self._private.sign(text.encode()))}\n"

    def sign(self, head: tuple[int, str], release: tuple[str, str] | None = None) -> str:
        """Return the signed note of a head, and of a release's key and manifest if one is named."""
        text = f"{_NAME}\n{head[0]}\n{_b64(bytes.fromhex(head[1]))}\n"
        if release is not None:
            text += f"{_RELEASE} {release[0]} {release[1]}\n"
        return self.note(_NAME, text)

    def sign_payload(self, kind: str, payload: bytes) -> bytes:
        """Return the signature of a payload as DSSE frames it, so that no note can be mistaken.

        Args:
            kind: media type of the payload.
            payload: what is signed.
        """
        return self._private.sign(framed(kind, payload))


def framed(kind: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding (secure-systems-lab/dsse, version 1).

    Examples:
        >>> framed("a/b", b"hello")
        b'DSSEv1 3 a/b 5 hello'
    """
    name = kind.encode()
    return b" ".join((b"DSSEv1", b"%d" % len(name), name, b"%d" % len(payload), payload))


def parse_note(note: str) -> Checkpoint:
    """Read a signed note.

    Raises:
        ValueError: it is not one.
    """
    text, _, signatures = note.partition("\n\n")
    origin, size, head, *more = text.split("\n")
    dash, name, signature = signatures.removesuffix("\n").split(" ")
    signed = base64.b64decode(signature, validate=True)
    whole = (_NAME, "—", _NAME, KEY_ID_BYTES + _SIGNATURE_BYTES)  # a torn one may decode
    if (origin, dash, name, len(signed)) != whole:
        msg = "not a whole checkpoint of this ledger"
        raise ValueError(msg)
    release = None
    if more:
        word, key, manifest = more[0].split(" ")
        if word != _RELEASE or len(more) > 1:
            msg = "a line that no version of the ledger wrote"
            raise ValueError(msg)
        release = (key, manifest)
    return Checkpoint(
        sequence=int(size),
        hash=base64.b64decode(head, validate=True).hex(),
        text=f"{text}\n",
        key_id=signed[:KEY_ID_BYTES],
        signature=signed[KEY_ID_BYTES:],
        release=release,
    )


def is_signed_by(public_line: str, checkpoint: Checkpoint) -> bool:
    """Verify a signature with a verifier key."""
    raw = _verified(public_line, checkpoint.text.encode(), checkpoint.signature)
    return raw is not None and checkpoint.key_id == key_id(_NAME, ED25519, raw)


def is_payload_signed_by(public_line: str, kind: str, payload: bytes, signature: bytes) -> bool:
    """Verify the signature of a payload as DSSE frames it."""
    return _verified(public_line, framed(kind, payload), signature) is not None


def _verified(public_line: str, signed: bytes, signature: bytes) -> bytes | None:
    """Return the key that a verifier key names, if the signature is its own."""
    try:
        raw = _public_bytes(public_line)
    except ValueError:
        return None
    return raw if verifies(raw, signed, signature) else None


def verifies(raw: bytes, signed: bytes, signature: bytes) -> bool:
    """Return whether a signature is that of a public key (Ed25519, RFC 8032)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, signed)
    except (ValueError, InvalidSignature):
        return False
    return True


def is_public_line(text: str) -> bool:
    """Return whether a text is a C2SP verifier key."""
    try:
        return len(_public_bytes(text)) == _PUBLIC_BYTES
    except ValueError:
        return False


def _public_bytes(public_line: str) -> bytes:
    """Return the public key of a verifier key.

    Raises:
        ValueError: it is none.
    """
    _, _, encoded = public_line.strip().split("+", 2)
    return base64.b64decode(encoded, validate=True)[1:]


def key_id(name: str, kind: bytes, raw: bytes) -> bytes:
    """Return the C2SP key id of a public key under a name."""
    return hashlib.sha256(name.encode() + b"\n" + kind + raw).digest()[:KEY_ID_BYTES]


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _new_key() -> bytes:
    """Make a private key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
