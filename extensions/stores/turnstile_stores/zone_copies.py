"""The folders of zones as copies of their stores: fetched before a step, put back after it.

A process reaches the stores that its environment names, and no other. Where no store is named the
folders are the zones themselves, and nothing here does anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from turnstile.errors import IntegrityError, StoreConflict, StoreError, TurnstileError
from turnstile.ledger.records import ReleaseKey
from turnstile.programme.source_spec import SourceSpec
from turnstile.release.zones import AFTER_A_CHARGE_S, AGAIN_AFTER_S, bounding_secret
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings
from turnstile_stores.zone_stores import fetch_landing, fetch_public, is_trace, unit_zone

if TYPE_CHECKING:
    from turnstile_stores.unit_zone import UnitZone

_Own = tuple["UnitZone", str, Callable[[str], bool]]
_log = logging.getLogger("turnstile")


@dataclass(frozen=True, slots=True)
class ZoneCopies:
    """The copies that the steps of one release work on.

    Args:
        settings: which stores there are.
        key: of the release.
        source: of its programme: which files of the landing zone are its own.
        period: of the release.
    """

    settings: Settings
    key: ReleaseKey
    source: SourceSpec
    period: ServicePeriod

    @contextmanager
    def in_step(
        self,
        *,
        raw: bool,
        files: bool = False,
        rows: bool = False,
        year: bool = False,
        publishes: bool = False,
    ) -> Iterator[None]:
        """Fetch what a step needs, and put what it made, if it refuses too: findings are kept.

        Args:
            raw: whether it sees private data.
            files: whether it reads those of the landing zone.
            rows: whether it reads rows, not only tables.
            year: whether its draws carry exact tables of earlier weeks along.
            publishes: whether it writes the public zone.

        Raises:
            StoreError: a store is away, or another worker wrote the same files.
        """
        if not self.settings.stores:
            yield
            return
        with ExitStack() as held:
            if files:
                fetch_landing(self.settings, self.source, self.period)
            zones: list[_Own] = []
            if raw and (private := unit_zone(self.settings, "private")):
                with bounding_key_of_store(self.settings):  # all workers use one secret
                    bounding_secret(self.settings)
                unit = f"{self.key.programme}/{self.key.period}"
                zones.append((private, unit, partial(self._is_private, rows=rows, year=year)))
            if embargoed := unit_zone(self.settings, "embargoed"):
                zones.append((embargoed, str(self.key), self._is_embargoed))
            for zone, unit, wanted in zones:
                held.enter_context(zone.working_on(unit))
                zone.fetch((unit,), wanted)
            fetch_public(self.settings, holding=held if publishes else None)
            try:
                yield
            except IntegrityError:
                raise  # what is wrong here stays here
            except TurnstileError:
                with suppress(TurnstileError):
                    _put(zones)
                raise
            _put(zones)

    def keep(self, *, is_charged: bool) -> None:
        """Put what lies under embargo now, before the ledger says that it is there.

        Args:
            is_charged: whether a store that is away is waited for, because it would be lost.

        Raises:
            StoreError: it did not come back in time.
            StoreConflict: another worker made the same meanwhile.
        """
        zone = unit_zone(self.settings, "embargoed")
        until = time.monotonic() + (AFTER_A_CHARGE_S if is_charged else 0)
        while zone is not None:
            try:
                zone.put(str(self.key))
            except StoreConflict:
                raise
            except StoreError as error:
                if time.monotonic() > until:
                    raise
                _log.warning("%s; the bytes are kept here meanwhile", error)
                time.sleep(AGAIN_AFTER_S)
            else:
                return

    def require_writable(self) -> None:
        """Make sure, before a charge, that the store under embargo takes what is drawn.

        Raises:
            StoreError: it does not.
        """
        if zone := unit_zone(self.settings, "embargoed"):
            zone.require_writable(str(self.key))

    def _is_private(self, path: str, *, rows: bool, year: bool) -> bool:
        """Return whether a step needs a file of the private zone."""
        prefix = f"{self.key.programme}/{self.key.period}/"
        if path.startswith(prefix):
            return rows or not ("/rows/" in path or "/quarantine/" in path)
        if not path.startswith(f"{self.key.programme}/"):
            return False
        name = path.rpartition("/")[2]
        return (rows and name == "figures.json") or (year and name.startswith("exact"))

    def _is_embargoed(self, path: str) -> bool:
        """Return whether a step needs a file under embargo: its own, and traces of others."""
        return path.startswith(f"{self.key}/") or is_trace(path)


@contextmanager
def bounding_key_of_store(settings: Settings) -> Iterator[None]:
    """Have the bounding key here as it is in its store, if it has one; changes of it go there."""
    private = unit_zone(settings, "private")
    if private is None:
        yield
        return
    from turnstile_stores.unit_zone import ZONE

    with private.working_on(ZONE):
        private.fetch((ZONE,), lambda path: path.startswith("bounding"))
        yield
        private.put(ZONE)


def _put(zones: list[_Own]) -> None:
    for zone, unit, _ in zones:
        zone.put(unit)
