"""The public zone in its store: a release is created there and read back, pages are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.records import ReleaseKey
from turnstile.publishing.series.index import INDEX
from turnstile.settings import Settings
from turnstile_stores.zone_stores import adopting, plain_zone, zone_of_files

if TYPE_CHECKING:
    from turnstile_stores.bucket import Bucket


def send_to_zone(settings: Settings, programme: str, key: ReleaseKey | None = None) -> None:
    """Bring a release, then series and pages of its programme, to the store of the public zone.

    Args:
        settings: which stores there are; nothing is done without one.
        programme: name.
        key: of a release that is public here; None: none is new.

    Raises:
        StoreError: the store does not answer, or does not hold what it took.
        IntegrityError: it holds other bytes under a name of the release.
        RefusedError: it shows a newer state of the ledger.
    """
    if zone := plain_zone(settings, "public"):
        _send(zone.bucket, settings.public, programme, [] if key is None else [str(key)])


def adopt_public(settings: Settings) -> Iterator[str]:
    """Put a folder that was the public zone into its store; yield each programme that is there.

    Raises:
        InputError: the store holds something that is not from here.
        StoreError: it does not answer.
        IntegrityError: a package here is not as its manifest says.
    """
    store = next((one for one in settings.stores if one.zone == "public"), None)
    if store is None:
        return
    bucket = zone_of_files(settings, store).bucket
    with adopting(bucket, settings.public):
        for index in sorted(settings.public.glob(f"*/{INDEX}")):
            programme = index.relative_to(settings.public).parts[0]
            keys = (key for key, _ in release_folders(settings.public))
            own = [key for key in keys if key.startswith(f"{programme}/")]
            _send(bucket, settings.public, programme, own)
            yield programme


def _send(bucket: Bucket, public: Path, programme: str, keys: Iterable[str]) -> None:
    """Send packages, then series and pages."""
    from turnstile_stores.portals.sending import send_release
    from turnstile_stores.portals.site import send_site

    for key in keys:
        send_release(bucket, bucket.name, public / key, key)
    send_site(bucket, bucket.name, public, programme)
