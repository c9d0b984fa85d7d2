"""The deployment's bounding key: one that the ledger has named, never another without a person.

Which records of a unit count is decided under it, and every commitment in the ledger is made with
it. Lost and silently replaced, unchanged weeks would be reported as delivered anew.
"""

from __future__ import annotations

from turnstile.errors import IntegrityError
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt
from turnstile.release.zones import (
    BOUNDING_KEY,
    bounding_secret,
    commitment,
    earlier_secret,
    name_of_secret,
)
from turnstile.settings import Settings


def require_known_key(settings: Settings, ledger: Ledger) -> None:
    """Refuse to go on under another bounding key than the ledger's; make one on first use.

    Raises:
        IntegrityError: the key is gone, or is another one.
    """
    named = ledger.bounding_key()
    path = settings.private / BOUNDING_KEY
    is_used = named is not None or {entry.attempt_id for entry in ledger.entries()} - {None}
    if is_used and not path.exists():
        problem = "is gone"
    elif named is not None and name_of_secret(bounding_secret(settings)) != named:
        problem = "is another one than the ledger names"
    else:
        return
    raise IntegrityError(
        f"private/{BOUNDING_KEY} {problem}; nothing was read or charged: restore it from a backup "
        "of the private zone, or if it is lost for good: turnstile ledger rotate-bounding-key"
    )


def commitment_as_sealed(
    settings: Settings, ledger: Ledger, sealed: Attempt, digest: str
) -> str | None:
    """Return a commitment under the key that a sealed release names; None if that key is gone."""
    named, secret = ledger.bounding_key(until=sealed.reserved_sequence), bounding_secret(settings)
    if named is not None and name_of_secret(secret) != named:
        earlier = earlier_secret(settings, named)
        if earlier is None:
            return None
        secret = earlier
    return commitment(secret, digest)
