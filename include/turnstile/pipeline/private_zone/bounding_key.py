"""The deployment's bounding key: one that the ledger has named, never another without a person.

Which records of a unit count is decided under it, and every commitment in the ledger is made with
it. Lost and silently replaced, unchanged weeks would be reported as delivered anew.
"""

from __future__ import annotations

from turnstile.errors import IntegrityError
from turnstile.ledger.bounding_keys import BoundingKeys
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt
from turnstile.release.earlier_bounding_keys import earlier_secret
from turnstile.release.zones import BOUNDING_KEY, bounding_secret, name_of_secret
from turnstile.settings import Settings

REPAIR = (
    "restore it from a backup of the private zone, or if it is lost for good: turnstile ledger "
    "rotate-bounding-key --reason TEXT, which declares lost what is not there"
)


def require_known_key(settings: Settings, ledger: Ledger) -> None:
    """Refuse to go on under another bounding key than the ledger's; make one on first use.

    Nor without an earlier one, under which the files of releases are known: by copies of them
    another budget group would charge the same people.

    Raises:
        IntegrityError: a key is gone, or is another one.
    """
    keys = ledger.bounding_keys()
    require_present_key(settings, ledger, keys)
    if gone := earlier_keys_gone(settings, keys):
        raise IntegrityError(f"{gone}; nothing was read or charged: {REPAIR}")


def earlier_keys_gone(settings: Settings, keys: BoundingKeys) -> str:
    """Say which earlier keys are gone that nobody declared lost; empty if none is."""
    earlier = sorted(keys.kept - {keys.at()})
    names = [name for name in earlier if earlier_secret(settings, name) is None]
    files = ", ".join(f"private/bounding-{name}.key" for name in names)
    return files and f"{files} gone or another, under which the files of earlier weeks are known"


def require_present_key(settings: Settings, ledger: Ledger, keys: BoundingKeys) -> None:
    """Refuse to go on under another bounding key than the present one of the ledger.

    Raises:
        IntegrityError: it is gone, or is another one.
    """
    named = keys.at()
    is_here = (settings.private / BOUNDING_KEY).exists()
    if not is_here and (named is not None or _was_used(ledger)):
        problem = "is gone"
    elif named is not None and name_of_secret(bounding_secret(settings)) != named:
        problem = "is another one than the ledger names"
    else:
        return
    raise IntegrityError(f"private/{BOUNDING_KEY} {problem}; nothing was read or charged: {REPAIR}")


def _was_used(ledger: Ledger) -> bool:
    """Return whether anything was ever reserved, by an earlier version too."""
    return bool({entry.attempt_id for entry in ledger.entries()} - {None})


def secret_as_sealed(settings: Settings, keys: BoundingKeys, sealed: Attempt) -> bytes | None:
    """Return the key of a sealed release's commitments; None if it is gone."""
    named, secret = keys.at(sealed.reserved_sequence), bounding_secret(settings)
    is_present = named is None or name_of_secret(secret) == named
    return secret if is_present else earlier_secret(settings, str(named))
