"""Zones in stores, as the core asks for them (`turnstile.release.zone_copies.Zones`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from turnstile.ledger.records import ReleaseKey
from turnstile.programme.source_spec import SourceSpec
from turnstile.service_calendar import ServicePeriod
from turnstile_stores.private_copies import PrivateCopies
from turnstile_stores.public_zone import send_to_zone
from turnstile_stores.zone_copies import ZoneCopies, replace_bounding_key
from turnstile_stores.zone_stores import fetch_landing, refresh


class StoredZones(PrivateCopies):
    """The zones of a deployment of which some lie in stores."""

    __slots__ = ()

    def of_release(self, key: ReleaseKey, source: SourceSpec, period: ServicePeriod) -> ZoneCopies:
        """Return the copies that the steps of one release work on."""
        return ZoneCopies(self.settings, key, source, period)

    def refresh(self, key: ReleaseKey | None = None) -> None:
        """Bring what is public, and the traces under embargo, here; of a key all of it."""
        refresh(self.settings, key)

    def fetch_landing(self, source: SourceSpec, period: ServicePeriod) -> Callable[[Path], float]:
        """Bring the files of a period here; return what says when one was last written."""
        return fetch_landing(self.settings, source, period)

    def replace_bounding_key(self) -> tuple[str | None, str]:
        """Take up a new bounding key; return the names of the old one, if it is there, and it."""
        return replace_bounding_key(self.settings)

    def send_public(
        self,
        sign: Callable[[], object],
        programme: str | None = None,
        key: ReleaseKey | None = None,
    ) -> None:
        """Send a release, if one is new, then series and pages of a programme, then the list."""
        send_to_zone(self.settings, sign, programme, key)
