"""The public zone in its store: releases are created there and read back, pages are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.of_deployment import open_ledger
from turnstile.publishing.series.index import INDEX
from turnstile.settings import Settings
from turnstile_stores.zone_stores import adopting, plain_zone, zone_of_files

if TYPE_CHECKING:
    from turnstile_stores.bucket import Bucket


def adopt_public(settings: Settings) -> Iterator[str]:
    """Put a folder that was the public zone into its store; yield each programme that is there.

    Raises:
        InputError: the store holds something that is not from here.
        StoreError: it does not answer.
        IntegrityError: a package here is not as its manifest says.
    """
    store = next((candidate for candidate in settings.stores if candidate.zone == "public"), None)
    if store is None:
        return
    from turnstile_stores.portals.site import send_log

    bucket = zone_of_files(settings, store).bucket
    named = open_ledger(settings, read_only=True).public_list()
    with adopting(bucket, settings.public):
        for index in sorted(settings.public.glob(f"*/{INDEX}")):
            programme = index.relative_to(settings.public).parts[0]
            keys = (key for key, _ in release_folders(settings.public))
            programme_keys = [key for key in keys if key.startswith(f"{programme}/")]
            send_packages(bucket, settings.public, programme, programme_keys, named)
            send_log(bucket, bucket.name, settings.public, named)
            yield programme


def restore_public(settings: Settings) -> Iterator[str]:
    """Put packages back that are here and lost in a store that a backup made older; yield each.

    Raises:
        StoreError: the store does not answer; the same command goes on.
        IntegrityError: a package here is not as its manifest says.
    """
    from turnstile_stores.portals.site import send_log

    if zone := plain_zone(settings, "public"):
        named = open_ledger(settings, read_only=True).public_list()
        with zone.alone():
            for key in zone.packages_gone():
                send_packages(zone.bucket, settings.public, key.partition("/")[0], [key], named)
                send_log(zone.bucket, zone.bucket.name, settings.public, named)
                yield key


def send_packages(
    bucket: Bucket, public: Path, programme: str, keys: Iterable[str], named: Mapping[str, str]
) -> None:
    """Send packages, then series and pages."""
    from turnstile_stores.portals.sending import send_release
    from turnstile_stores.portals.site import send_site

    for key in keys:
        send_release(bucket, bucket.name, public / key, key)
    send_site(bucket, bucket.name, public, programme, named)
