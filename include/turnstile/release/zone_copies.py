"""Zones that are copies of stores: what steps and readers ask of them; a folder needs nothing.

A process reaches the stores that its environment names, and no other. Where it names none the
folders are the zones themselves; where it names one, an extension fetches and puts (`ZONES`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from turnstile.errors import InputError
from turnstile.extensions import ZONES, brought
from turnstile.ledger.bounding_keys import TakenUp
from turnstile.ledger.custody.traces import STORE_ASIDE
from turnstile.ledger.records import ReleaseKey
from turnstile.programme.source_spec import SourceSpec
from turnstile.release.earlier_bounding_keys import replace_secret
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings

ChangedAt = Callable[[Path], float]
ASIDE = Path(STORE_ASIDE)
"""Below a zone: what a copy of a store kept back where the store lost it, unit by unit."""

SNAPSHOTS = "snapshots"
"""Below a period of the private zone: its rows, which go before the rest does."""

ADOPTING = "adopting"
"""Beside it, while a folder that is the zone is put into its store."""
_BOOKS = ("copies.json", "units")  # beside it, what came from a store


class Unnamed(NamedTuple):
    """An object of the private store that no index names: of a step that died, or lost an index.

    Args:
        unit: its period, `opal/2016-W30`.
        is_rows: whether it is known to be of rows.
        put_at: when it came to the store.
    """

    unit: str
    is_rows: bool
    put_at: datetime


class Copies(Protocol):
    """The copies that the steps of one release work on."""

    def in_step(
        self,
        *,
        raw: bool,
        files: bool = False,
        rows: bool = False,
        year: bool = False,
        publishes: bool = False,
    ) -> AbstractContextManager[None]:
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

    def keep(self, *, is_charged: bool) -> None:
        """Put what lies under embargo now, before the ledger says that it is there.

        Args:
            is_charged: whether a store that is away is waited for, because it would be lost.
        """

    def require_writable(self) -> None:
        """Make sure, before a charge, that the store under embargo takes what is drawn."""


class Zones(Protocol):
    """All zones of a deployment, for those who read or delete what no step has in hand."""

    def of_release(self, key: ReleaseKey, source: SourceSpec, period: ServicePeriod) -> Copies:
        """Return the copies that the steps of one release work on."""

    def refresh(self, key: ReleaseKey | None = None, *, proves: bool = False) -> None:
        """Bring what is public, and the traces under embargo, here.

        Args:
            key: of a release of which everything under embargo is wanted.
            proves: whether traces are read for what was drawn: plans, and whole packages of what is
                not public.
        """

    def fetch_landing(self, source: SourceSpec, period: ServicePeriod) -> ChangedAt:
        """Bring the files of a period here; return what says when one was last written."""

    def fetch_private(self) -> frozenset[str]:
        """Bring everything private here.

        Returns:
            Periods that a step works on here, `opal/2016-W30`: left as that has them.

        Raises:
            StoreObjectGone: the store has lost something; all that it has is here.
            StoreError: it is away.
        """

    def fetch_delivered(self) -> tuple[str, ...]:
        """Bring what tells of which files releases are; return the periods of which it is lost."""

    def changed_at(self, path: Path) -> float:
        """Return when a private file came, in seconds since 1970."""

    def delete(self, gone: Iterable[Path]) -> None:
        """Delete in the stores what was deleted here, of private folders all that is below them."""

    def delete_unnamed(self, age: timedelta, may_go: Callable[[Unnamed], bool]) -> None:
        """Delete in the private store what no index names, if it is so old and may go.

        Args:
            age: of what goes at least: no step still goes on with it.
            may_go: whether its period's days are over; an index that was lost may name it.
        """

    def keep_sealed(self, sealed: Mapping[str, str]) -> Iterable[str]:
        """Put sealed bytes into their store that lie here alone, as after a draw that died.

        Args:
            sealed: digests of the bytes that keys have.

        Returns:
            Why, of each release whose bytes could not be put.
        """

    def replace_bounding_key(self, earlier: Collection[str]) -> TakenUp:
        """Take up a new bounding key; return what `replace_secret` does."""

    def send_public(
        self,
        sign: Callable[[], object],
        programme: str | None = None,
        key: ReleaseKey | None = None,
        series: Mapping[str, str] | None = None,
        *,
        records: Mapping[str, str] | None = None,
    ) -> None:
        """Send a release, if one is new, then series and pages of a programme; sign what is public.

        Args:
            sign: lists and signs the public zone as it is here.
            programme: whose series changed; None: of no programme, what is signed is.
            key: of a release that a step has in hand.
            series: digests of what goes beside packages of the programme, by path in the zone.
            records: digests of files that go alone, before a series names them.
        """


@dataclass(frozen=True, slots=True)
class _Folders:
    """Zones that are their own folders, and the copies of one release."""

    settings: Settings

    def of_release(self, *_: object) -> Copies:
        return self

    def in_step(self, **_: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def keep(self, **_: bool) -> None: ...

    def require_writable(self) -> None: ...

    def refresh(self, *_: object, **__: object) -> None: ...

    def fetch_landing(self, *_: object) -> ChangedAt:
        return changed_here

    def fetch_private(self) -> frozenset[str]:
        return frozenset()

    def fetch_delivered(self) -> tuple[str, ...]:
        return ()

    def changed_at(self, path: Path) -> float:
        return changed_here(path)

    def delete(self, *_: object) -> None: ...

    def delete_unnamed(self, *_: object) -> None: ...

    def keep_sealed(self, _: Mapping[str, str]) -> Iterable[str]:
        return ()

    def replace_bounding_key(self, earlier: Collection[str]) -> TakenUp:
        return replace_secret(self.settings, earlier)

    def send_public(self, sign: Callable[[], object], *_: object, **__: object) -> None:
        sign()


def zones(settings: Settings) -> Zones:
    """Return the zones of a deployment.

    Raises:
        InputError: one lies in a store, and the extension for those is not installed; or none
            does, and a folder is the copy of a store, which would lose what is written here.
    """
    if not settings.stores:
        for zone in (settings.private, settings.embargoed, settings.public):
            require_no_copy(zone)
        return _Folders(settings)
    named = f"TURNSTILE_{settings.stores[0].zone.upper()}_STORE"
    stored: Zones = brought(ZONES, "stores", asked_by=named)(settings)
    return stored


def require_no_copy(zone: Path) -> None:
    """Refuse the copy of a store in the place of a zone: what is written there would go.

    Raises:
        InputError: the zone's store is not named, and its folder was fetched from one.
    """
    books = False
    with suppress(PermissionError):  # of others: this login writes nothing there
        books = any((zone / ASIDE.parent / name).exists() for name in _BOOKS)
    if books and is_copy(zone):
        rule = (
            f"is not set, and {zone} is the copy of a store; set it as it was. If weeks were "
            "released here without it, or the zones leave their stores, first read "
            "docs/OPERATIONS.md, Back to folders: the next fetch takes away what no store has"
        )
        name = f"TURNSTILE_{zone.name.upper()}_STORE"
        raise InputError(where="environment", field=name, rule=rule)


def is_copy(folder: Path) -> bool:
    """Return whether the folder of a zone was ever the copy of a store, and is not put there."""
    state = folder / ASIDE.parent
    return state.exists() and not (state / ADOPTING).exists()


def changed_here(path: Path) -> float:
    """Return when a file was last written, in seconds since 1970: by `ctime`.

    That is the time that no copying tool can set back.
    """
    return path.lstat().st_ctime
