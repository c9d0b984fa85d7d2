"""Checkpoints of a transparency log, cosignatures and proofs, as C2SP writes them. Pure.

Signed notes: `signed-note`, `tlog-checkpoint`, `tlog-cosignature` (version 1, Ed25519), and
`tlog-proof`. A text that is not exactly of the form is refused: `07`, a second line's end, another
spelling of the same base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass

from turnstile.ledger.custody.signed_note import ED25519, KEY_ID_BYTES, key_id, verifies

_COSIGNATURE = b"\x04"
_HASH_BYTES, _PUBLIC_BYTES, TIME_BYTES = 32, 32, 8
_SIZE = "(0|[1-9][0-9]{0,18})"
_CHECKPOINT = re.compile(rf"([^ +\n]+)\n{_SIZE}\n([^ \n]+)((?:\n[^\n]+)*)")
_FORM = "c2sp.org/tlog-proof@v1"
_PROOF = re.compile(rf"{re.escape(_FORM)}\nextra ([^ \n]+)\nindex {_SIZE}((?:\n[^ \n]+)*)")
_STEP = re.compile(rf"old {_SIZE}((?:\n[^ \n]+)*)")


@dataclass(frozen=True, slots=True)
class Verifier:
    """Who signs: a log (Ed25519) or a cosigner (cosignature/v1).

    Args:
        name: of the key; a log's is its origin.
        kind: one byte, of the algorithm.
        raw: public key.
    """

    name: str
    kind: bytes
    raw: bytes

    @classmethod
    def of(cls, line: str) -> Verifier:
        """Read a C2SP verifier key.

        Raises:
            ValueError: it is none of these two kinds, or its id is another key's.
        """
        name, stated, encoded = line.strip().split("+", 2)
        content = _decoded(encoded)
        verifier = cls(name, content[:1], content[1:])
        is_known = verifier.kind in {ED25519, _COSIGNATURE} and len(verifier.raw) == _PUBLIC_BYTES
        if not is_known or verifier.digits != stated:
            raise ValueError(f"{line.strip()!r} is no verifier key of a log or a cosigner")
        return verifier

    @property
    def key_id(self) -> bytes:
        """By which a note names the key."""
        return key_id(self.name, self.kind, self.raw)

    @property
    def digits(self) -> str:
        """By which files and folders name the key."""
        return self.key_id.hex()


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """A checkpoint as read.

    Args:
        origin: name of the log.
        size: number of leaves.
        root: over them.
        text: what was signed.
        signatures: name, key id and signature of each line.
    """

    origin: str
    size: int
    root: bytes
    text: str
    signatures: tuple[tuple[str, bytes, bytes], ...]

    def is_signed_by(self, verifier: Verifier) -> bool:
        """Return whether a log signed it.

        Raises:
            ValueError: a signature under that very key is false.
        """
        signatures = self._signatures_of(verifier)
        for signature in signatures:
            _require_true(verifier, self.text, signature)
        return bool(signatures)

    def cosigned_at(self, verifier: Verifier) -> int | None:
        """Return when a cosigner last saw it, in seconds since 1970; None if it did not.

        Raises:
            ValueError: a signature under that very key is false.
        """
        seen = list[int]()
        for signature in self._signatures_of(verifier):
            at = int.from_bytes(signature[:TIME_BYTES], "big")
            said = f"cosignature/v1\ntime {at}\n{self.text}"
            _require_true(verifier, said, signature[TIME_BYTES:])
            seen.append(at)
        return max(seen, default=None)

    def _signatures_of(self, verifier: Verifier) -> list[bytes]:
        """Return signatures under a key; those of unknown keys tell nothing."""
        named = (verifier.name, verifier.key_id)
        return [
            signature for name, identity, signature in self.signatures if (name, identity) == named
        ]


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    """Return what a log signs: origin, number of leaves, root."""
    return f"{origin}\n{size}\n{_encoded(root)}\n"


def parse_checkpoint(note: str) -> LogCheckpoint:
    """Read a checkpoint; lines that a log may add after the root are read over.

    Raises:
        ValueError: it is none.
    """
    text, _, lines = note.partition("\n\n")
    match = _CHECKPOINT.fullmatch(text)
    if match is None or "\r" in note or not lines.endswith("\n"):
        raise ValueError("this is no checkpoint of a log")
    signatures = tuple(map(_signature, lines[:-1].split("\n")))
    return LogCheckpoint(match[1], int(match[2]), _hash(match[3]), f"{text}\n", signatures)


@dataclass(frozen=True, slots=True)
class Proof:
    """That an entry is in a log.

    Args:
        index: of the leaf, from 0.
        data: of the leaf: the entry's hash.
        path: siblings, the nearest first.
        checkpoint: of the log, with its signatures.
    """

    index: int
    data: bytes
    path: tuple[bytes, ...]
    checkpoint: str

    def __str__(self) -> str:
        """Return the proof as a file holds it; `extra` is the leaf's data."""
        head = f"{_FORM}\nextra {_encoded(self.data)}\nindex {self.index}\n"
        return f"{head}{hash_lines(self.path)}\n{self.checkpoint}"


def parse_proof(text: str) -> Proof:
    """Read a proof.

    Raises:
        ValueError: it is none.
    """
    (data, index, path), checkpoint = _parted(text, _PROOF, "proof of an entry in a log")
    return Proof(int(index), _hash(data), _hashes(path), checkpoint)


def hash_lines(hashes: Iterable[bytes]) -> str:
    """Return hashes as lines of base64."""
    return "".join(f"{_encoded(digest)}\n" for digest in hashes)


def parse_step(text: str) -> tuple[int, tuple[bytes, ...], str]:
    """Read a step: the older size, the proof, and the newer checkpoint (tlog-witness's request).

    Raises:
        ValueError: it is none.
    """
    (old, path), checkpoint = _parted(text, _STEP, "step between two checkpoints")
    return int(old), _hashes(path), checkpoint


def step_text(old: int, path: Iterable[bytes], checkpoint: str) -> str:
    """Return the step from an older size to a checkpoint."""
    return f"old {old}\n{hash_lines(path)}\n{checkpoint}"


def _signature(line: str) -> tuple[str, bytes, bytes]:
    dash, name, encoded = line.split(" ")
    content = _decoded(encoded)
    if dash != "—" or not name or len(content) <= KEY_ID_BYTES:
        raise ValueError("this is no signature line")
    return name, content[:KEY_ID_BYTES], content[KEY_ID_BYTES:]


def _require_true(verifier: Verifier, said: str, signature: bytes) -> None:
    """Refuse a checkpoint that carries a false signature of a known key."""
    if not verifies(verifier.raw, said.encode(), signature):
        raise ValueError(f"a signature of {verifier.name} is false")


def _parted(text: str, form: re.Pattern[str], what: str) -> tuple[tuple[str, ...], str]:
    """Return what stands before a checkpoint, by its form, and the checkpoint."""
    head, _, checkpoint = text.partition("\n\n")
    match = form.fullmatch(head)
    if match is None:
        raise ValueError(f"this is no {what}")
    return match.groups(), checkpoint


def _hashes(lines: str) -> tuple[bytes, ...]:
    """Read hashes, one a line."""
    return tuple(map(_hash, lines.split()))


def _hash(encoded: str) -> bytes:
    content = _decoded(encoded)
    if len(content) != _HASH_BYTES:
        raise ValueError("a hash has 32 bytes")
    return content


def _decoded(encoded: str) -> bytes:
    """Read base64 of one spelling."""
    content = base64.b64decode(encoded, validate=True)
    if _encoded(content) != encoded:
        raise ValueError("base64 in another spelling")
    return content


def _encoded(content: bytes) -> str:
    """Write base64."""
    return base64.b64encode(content).decode()
