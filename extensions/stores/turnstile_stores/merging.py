"""Two workers at one unit: changes to different files go together, to the same file they do not."""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.durable_files import SEALED
from turnstile.errors import IntegrityError, StoreConflict
from turnstile_stores.unit import Stored

Files = Mapping[str, Stored]


def merged(base: Files, ours: Files, theirs: Files, store: str, unit: str) -> dict[str, Stored]:
    """Return what others wrote with our changes.

    Args:
        base: what both began with.
        ours: what it is here.
        theirs: what it is in the store by now.
        store: its name, for the message.
        unit: its name.

    Raises:
        StoreConflict: both changed the same file.
    """
    files = dict(theirs)
    for name in base.keys() | ours.keys():
        old, new, now = (side.get(name) for side in (base, ours, theirs))
        if new == old:
            continue
        if digest_of(now) not in {digest_of(old), digest_of(new)}:
            problem = f"another worker wrote to {unit}/{name} meanwhile, and its file stays"
            raise StoreConflict(store, problem)
        if new is None:
            files.pop(name, None)
        else:
            files[name] = new
    return files


def require_written_once(unit: str, before: Files, after: Files) -> None:
    """Refuse other bytes in the place of sealed ones.

    Raises:
        IntegrityError: they differ.
    """
    for name in before.keys() & after.keys():
        if name.startswith(SEALED) and before[name].sha256 != after[name].sha256:
            raise IntegrityError(f"{unit}: {name} is sealed with other bytes in the store")


def digest_of(stored: Stored | None) -> str:
    """Return the digest of a file; empty if there is none."""
    return stored.sha256 if stored else ""
