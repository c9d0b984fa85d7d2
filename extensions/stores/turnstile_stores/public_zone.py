"""The public zone in its store: a release is created there and read back, pages are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.records import ReleaseKey
from turnstile.publishing.series.index import INDEX
from turnstile.settings import Settings
from turnstile_stores.zone_stores import adopting, plain_zone, whole_packages, zone_of_files

if TYPE_CHECKING:
    from turnstile_stores.bucket import Bucket


def send_to_zone(
    settings: Settings,
    sign: Callable[[], object],
    programme: str | None = None,
    key: ReleaseKey | None = None,
) -> None:
    """Bring a release, then series and pages of its programme, to the store of the public zone.

    Args:
        settings: which stores there are; without one it is signed here.
        sign: lists and signs the public zone as it is here.
        programme: whose series changed; None: of no programme.
        key: of a release that is public here, whose step holds the copies; None: none is new.

    Raises:
        StoreError: the store does not answer, or does not hold what it took.
        IntegrityError: it holds other bytes under a name of the release.
        RefusedError: it shows a newer state of the ledger.
    """
    zone = plain_zone(settings, "public")
    if zone is None:
        sign()
        return
    from turnstile_stores.portals.site import send_list

    with ExitStack() as held:
        if key is None:
            held.enter_context(zone.alone())
        if programme is not None:
            keys = [] if key is None else [str(key)]
            _send(zone.bucket, settings.public, programme, keys, with_list=False)

        def renew() -> None:
            zone.fetch(whole_packages)
            sign()

        send_list(zone.bucket, zone.bucket.name, settings.public, renew)


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
    bucket = zone_of_files(settings, store).bucket
    with adopting(bucket, settings.public):
        for index in sorted(settings.public.glob(f"*/{INDEX}")):
            programme = index.relative_to(settings.public).parts[0]
            keys = (key for key, _ in release_folders(settings.public))
            programme_keys = [key for key in keys if key.startswith(f"{programme}/")]
            _send(bucket, settings.public, programme, programme_keys)
            yield programme


def restore_public(settings: Settings) -> Iterator[str]:
    """Put packages back that are here and lost in a store that a backup made older; yield each.

    Raises:
        StoreError: the store does not answer; the same command goes on.
        IntegrityError: a package here is not as its manifest says.
    """
    if zone := plain_zone(settings, "public"):
        with zone.alone():
            for key in zone.packages_gone():
                _send(zone.bucket, settings.public, key.partition("/")[0], [key])
                yield key


def _send(
    bucket: Bucket, public: Path, programme: str, keys: Iterable[str], *, with_list: bool = True
) -> None:
    """Send packages, then series and pages."""
    from turnstile_stores.portals.sending import send_release
    from turnstile_stores.portals.site import send_site

    for key in keys:
        send_release(bucket, bucket.name, public / key, key)
    send_site(bucket, bucket.name, public, programme, with_list=with_list)
