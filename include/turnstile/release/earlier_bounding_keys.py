"""Bounding keys that were in use before: they stay beside the present one, to verify with."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from turnstile.ledger.bounding_keys import TakenUp
from turnstile.release.zones import BOUNDING_KEY, bounding_secret, name_of_secret
from turnstile.settings import Settings


def earlier_secret(settings: Settings, name: str) -> bytes | None:
    """Return a secret that was in use before, by its name; None if it is gone, or is another."""
    path = _place(settings, name)
    secret = path.read_bytes() if path.exists() else b""
    return secret if name_of_secret(secret) == name else None


def replace_secret(settings: Settings, earlier: Collection[str]) -> TakenUp:
    """Take up a new secret; the old one stays to verify.

    Args:
        settings: where the private zone is.
        earlier: names of secrets that have to be there, the old one among them.
    """
    path, old = settings.private / BOUNDING_KEY, None
    if path.exists():
        old = name_of_secret(path.read_bytes())
        path.rename(_place(settings, old))
    gone = tuple(sorted(name for name in earlier if earlier_secret(settings, name) is None))
    return TakenUp(old, name_of_secret(bounding_secret(settings)), gone)


def _place(settings: Settings, name: str) -> Path:
    """Return where the key of this name lies once another is in use."""
    return settings.private / f"bounding-{name}.key"
