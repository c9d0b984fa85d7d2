"""The public zone in its store: releases are created there and read back, pages are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.durable_files import sha256_of
from turnstile.errors import InputError, IntegrityError, StoreError, TurnstileError
from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.custody.traces import MANIFEST
from turnstile.ledger.of_deployment import open_ledger
from turnstile.publishing.series.index import INDEX
from turnstile.settings import Settings
from turnstile_stores.plain_zone import MAY_WRITE
from turnstile_stores.zone_stores import (
    plain_zone,
    store_of,
    withdrawn_releases,
    zone_of_files,
)

if TYPE_CHECKING:
    from turnstile_stores.bucket import Bucket


def require_listed(settings: Settings) -> None:
    """Check that the signed list names what is to be put into a store of the public zone.

    Raises:
        InputError: it does not name a series or a package as it lies here, or there is no ledger.
    """
    public = settings.public
    files = [*public.glob(f"*/{INDEX}"), *(f / MANIFEST for _, f in release_folders(public))]
    if not files or all(store.zone != "public" for store in settings.stores):
        return
    named = open_ledger(settings, read_only=True).public_list()
    for path in (file.relative_to(public).as_posix() for file in files):
        if named.get(path) != sha256_of(public / path):
            rule = "the signed list does not name it so: keep TURNSTILE_PUBLIC_STORE unset, run "
            rule += "turnstile ledger republish, see turnstile ledger verify, then adopt"
            raise InputError(where=str(public), field=path, rule=rule)


def adopt_public(settings: Settings) -> Iterator[str]:
    """Put a folder that was the public zone into its store; yield each programme that is there.

    Raises:
        StoreError: the store does not answer.
        IntegrityError: a package here is not as its manifest says.
    """
    store = store_of(settings, "public")
    if store is None:
        return
    from turnstile_stores.portals.site import send_log

    bucket, public = zone_of_files(settings, store).bucket, settings.public
    for index in sorted(public.glob(f"*/{INDEX}")):
        list_of = open_ledger(settings, read_only=True).public_list
        programme = index.relative_to(public).parts[0]
        keys = (key for key, _ in release_folders(public))
        programme_keys = [key for key in keys if key.startswith(f"{programme}/")]
        send_packages(bucket, public, programme, programme_keys, list_of)
        send_log(bucket, bucket.name, public, list_of())
        yield programme


def restore_public(settings: Settings) -> Iterator[str]:
    """Put packages back that are here and lost in a store that a backup made older; yield each.

    Raises:
        TurnstileError: the store does not answer, or not this user; the same command goes on.
        IntegrityError: a package here is not as its manifest says.
    """
    from turnstile_stores.portals.sending import send_release
    from turnstile_stores.portals.site import send_log, send_site

    if zone := plain_zone(settings, "public"):
        bucket, public = zone.bucket, settings.public
        with zone.alone():
            withdrawn = withdrawn_releases(settings)  # which people may have taken down
            gone = (key for key in zone.packages_gone() if key not in withdrawn)
            keys = [key for key in gone if not _is_withdrawn_here(public, key)]
            for key in keys:
                zone.remove_strangers(key)
                try:
                    send_release(bucket, bucket.name, public / key, key)
                except StoreError as error:
                    if error.status != HTTPStatus.FORBIDDEN:  # away, and not a matter of rights
                        raise
                    raise TurnstileError(f"{error}, as a user who {MAY_WRITE}") from None
                yield key
            with suppress(InputError, IntegrityError):  # a lost ledger is recovered from packages
                list_of = open_ledger(settings, read_only=True).public_list
                for programme in {key.partition("/")[0] for key in keys}:
                    send_site(bucket, bucket.name, public, programme, list_of)
                    send_log(bucket, bucket.name, public, list_of())


def _is_withdrawn_here(public: Path, key: str) -> bool:
    """Return whether a record says so, too, where the ledger is lost or away."""
    period, _, revision = key.rpartition("/")
    return (public / period / f"withdrawn-{revision}.json").exists()


def send_packages(
    bucket: Bucket,
    public: Path,
    programme: str,
    keys: Iterable[str],
    list_of: Callable[[], Mapping[str, str]],
) -> None:
    """Send packages, then series and pages."""
    from turnstile_stores.portals.sending import send_release
    from turnstile_stores.portals.site import send_site

    for key in keys:
        send_release(bucket, bucket.name, public / key, key)
    send_site(bucket, bucket.name, public, programme, list_of)
