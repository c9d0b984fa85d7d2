"""The zones on disk: where each record of a week lives, and how a file gets there whole or not.

Folders of the private zone are readable by their owner alone. A sealed file is written once: a
second write of other bytes to the same place is an integrity failure, never an overwrite.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from turnstile.durable_files import (
    EVERYBODY_READS,
    OWNER_ONLY,
    exclusively,
    replace_durably,
    sealed_name,
)
from turnstile.errors import IntegrityError, TurnstileError
from turnstile.ledger.landing_paths import fixed_part
from turnstile.ledger.records import ReleaseKey
from turnstile.settings import Settings

_PRIVATE_FOLDER = 0o700
_KEY_BYTES = 32
_NAME_DIGITS = 16
BOUNDING_KEY = "bounding.key"
"""In the private zone."""
AFTER_A_CHARGE_S = 900
"""For how long a draw waits for a ledger or a store that is away: after that it is lost."""
AGAIN_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class ReleaseFolders:
    """Folders of one release key; made when they are first asked for."""

    settings: Settings
    key: ReleaseKey

    @property
    def private(self) -> Path:
        """Working folder in the private zone: snapshot, findings, exact tables."""
        folder = self.settings.private / str(self.key)
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
        self.settings.private.chmod(_PRIVATE_FOLDER)
        return folder

    @property
    def embargoed(self) -> Path:
        """Sealed noisy bytes and what is made from them, before publication."""
        folder = self.settings.embargoed / str(self.key)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def public(self) -> Path:
        """The published package; not made here, because it appears whole or not at all."""
        return self.settings.public / str(self.key)


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write_atomically(path: Path, content: bytes, mode: int = EVERYBODY_READS) -> None:
    """Write a file so that a reader sees all of it or none of it, and so that it survives a crash.

    Raises:
        TurnstileError: the disk is full or the folder cannot be written.
    """
    try:
        replace_durably(path, content, mode)
    except OSError as error:
        # without a path that an outsider has no business with
        raise TurnstileError(
            f"cannot write {path.name} ({error.strerror}); free space or mend the rights, run again"
        ) from None


def write_once(path: Path, content: bytes) -> None:
    """Write a sealed file; a repeat with the same bytes changes nothing.

    Raises:
        IntegrityError: the place holds other bytes.
        TurnstileError: the disk is full or the folder cannot be written.
    """
    if path.exists():
        if path.read_bytes() != content:
            raise IntegrityError(f"{path.name} is sealed with other bytes; nothing was written")
        return
    write_atomically(path, content)
    path.chmod(0o444)


def sealed_path(folder: Path, digest: str) -> Path:
    """Return where the sealed bytes of a release lie, in its folder under embargo."""
    return folder / sealed_name(digest)


def bounding_secret(settings: Settings) -> bytes:
    """Return the deployment's secret that orders a unit's own records; made on first use."""
    settings.private.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    path = settings.private / BOUNDING_KEY
    with exclusively(settings.private / ".bounding.lock"):
        if not path.exists():
            write_atomically(path, secrets.token_bytes(_KEY_BYTES), OWNER_ONLY)
    return path.read_bytes()


def known_secrets(settings: Settings) -> tuple[bytes, ...]:
    """Return the deployment's secret and those before it, which rotations keep to verify with."""
    earlier = sorted(settings.private.glob(f"bounding-{'[0-9a-f]' * _NAME_DIGITS}.key"))
    return (bounding_secret(settings), *(path.read_bytes() for path in earlier))


def name_of_secret(secret: bytes) -> str:
    """Return what the ledger calls a secret by; it tells nothing of it."""
    return commitment(secret, "the bounding key of a deployment of turnstile")[:_NAME_DIGITS]


def commitment(secret: bytes, digest: str) -> str:
    """Return a private digest under the deployment's secret, as it may stand in the ledger.

    An entry is an output: the plain digest of small or guessable files would confirm a guess.
    """
    return hmac.new(secret, digest.encode(), hashlib.sha256).hexdigest()


def landing_place(settings: Settings, pattern: str) -> str:
    """Return a pattern below the landing zone with every link of its fixed folders followed.

    Two patterns over one folder begin alike then, whatever its names are; a folder outside of the
    landing zone is named by its whole path.
    """
    folder, _, _ = fixed_part(pattern).rpartition("/")
    place, zone = (settings.landing / folder).resolve(), settings.landing.resolve()
    if place.is_relative_to(zone):
        place = place.relative_to(zone)
    return (place / pattern[len(folder) :].lstrip("/")).as_posix()
