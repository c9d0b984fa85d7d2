"""Zones in stores, as the core asks for them (`turnstile.release.zone_copies.Zones`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.bounding_keys import TakenUp
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.programme.source_spec import SourceSpec
from turnstile.release.earlier_bounding_keys import replace_secret
from turnstile.service_calendar import ServicePeriod
from turnstile_stores.private_copies import PrivateCopies
from turnstile_stores.public_zone import send_packages
from turnstile_stores.zone_copies import ZoneCopies, bounding_key_of_store
from turnstile_stores.zone_stores import (
    bring_packages,
    fetch_landing,
    plain_zone,
    refresh,
    unit_zone,
)


class StoredZones(PrivateCopies):
    """The zones of a deployment of which some lie in stores."""

    __slots__ = ()

    def of_release(self, key: ReleaseKey, source: SourceSpec, period: ServicePeriod) -> ZoneCopies:
        """Return the copies that the steps of one release work on."""
        return ZoneCopies(self.settings, key, source, period)

    def refresh(self, key: ReleaseKey | None = None, *, proves: bool = False) -> None:
        """Bring what is public, and the traces under embargo, here; of a key all of it."""
        refresh(self.settings, key, proves=proves)

    def fetch_landing(self, source: SourceSpec, period: ServicePeriod) -> Callable[[Path], float]:
        """Bring the files of a period here; return what says when one was last written."""
        return fetch_landing(self.settings, source, period)

    def keep_sealed(self, sealed: Mapping[str, str]) -> Iterator[str]:
        """Put sealed bytes into their store that lie here alone; say of which it could not be."""
        if zone := unit_zone(self.settings, "embargoed"):
            for key, digest in sealed.items():
                try:
                    zone.keep_sealed(key, digest)
                except (TurnstileError, OSError) as error:
                    yield f"{key}: {error}"

    def replace_bounding_key(self, earlier: Collection[str]) -> TakenUp:
        """Take up a new bounding key; return what `replace_secret` does.

        Raises:
            InputError: this process has no private zone, in which it would stay.
        """
        if unit_zone(self.settings, "private") is None and not self.settings.private.is_dir():
            rule = (
                "is not named, and no private zone lies here in which the key would stay; run this "
                "where private data are read, under Compose in worker-private"
            )
            raise InputError(where="environment", field="TURNSTILE_PRIVATE_STORE", rule=rule)
        with bounding_key_of_store(self.settings):
            return replace_secret(self.settings, earlier)

    def send_public(
        self,
        sign: Callable[[], object],
        programme: str | None = None,
        key: ReleaseKey | None = None,
        series: Mapping[str, str] | None = None,
        *,
        records: Mapping[str, str] | None = None,
    ) -> None:
        """Bring a release, then series and pages of its programme, to the store of the public zone.

        Args:
            sign: lists and signs the public zone as it is here; without a store it is signed here.
            programme: whose series changed; None: of no programme.
            key: of a release that is public here, whose step holds the copies; None: none is new.
            series: digests of what goes beside packages of the programme, by path in the zone.
            records: digests of files that go alone, before a series names them.

        Raises:
            StoreError: the store does not answer, or does not hold what it took.
            IntegrityError: it holds other bytes under a name of the release.
            RefusedError: it shows a newer state of the ledger.
        """
        zone, public = plain_zone(self.settings, "public"), self.settings.public
        if zone is None:
            sign()
            return
        from turnstile_stores.portals.site import send_list, send_named

        with ExitStack() as held:
            if key is None:
                held.enter_context(zone.alone())
            if programme is not None:
                keys = [] if key is None else [str(key)]
                send_packages(zone.bucket, public, programme, keys, lambda: series or {})
            send_named(zone.bucket, zone.bucket.name, public, records or {})

            def renew() -> None:
                bring_packages(zone, self.settings)
                sign()

            ledger = open_ledger(self.settings, read_only=True)
            known = frozenset((*ledger.parties().key_lines, *ledger.trusted_to_list()))
            send_list(zone.bucket, zone.bucket.name, public, renew, known)
