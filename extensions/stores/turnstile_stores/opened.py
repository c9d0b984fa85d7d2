"""Opens the store of a zone; the client of a store is made once in a process."""

from __future__ import annotations

from functools import lru_cache

from turnstile.settings import ZoneStore
from turnstile_stores.address import credentials_of, store_address
from turnstile_stores.bucket import Bucket


def opened(store: ZoneStore) -> Bucket:
    """Return the bucket of a store, with the credentials as their file holds them now.

    Raises:
        InputError: the address or the credentials are none.
    """
    return _bucket(store, tuple(sorted(credentials_of(store).items())))


@lru_cache(maxsize=8)
def _bucket(store: ZoneStore, credentials: tuple[tuple[str, str], ...]) -> Bucket:
    """Make a client; that takes a third of a second."""
    return Bucket(store_address(store), dict(credentials))
