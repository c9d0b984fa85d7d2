"""Zones with their stores, as far as this process reaches any, and how readers bring them here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.durable_files import SEALED
from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.custody.evidence_of_draws import KEPT_PLAN
from turnstile.ledger.custody.folders import package_of
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.landing_paths import fixed_part
from turnstile.ledger.records import ReleaseKey
from turnstile.programme.source_spec import SourceSpec
from turnstile.release.zone_copies import ADOPTING, changed_here, is_copy, require_no_copy
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings, ZoneStore
from turnstile_stores.address import store_address
from turnstile_stores.unit import STATE

if TYPE_CHECKING:
    from turnstile_stores.plain_zone import PlainZone
    from turnstile_stores.unit_zone import UnitZone

_OF_TRACES = ("/plan.json", "/package/manifest.json", "/package/release_card.json")


def unit_zone(settings: Settings, zone: str) -> UnitZone | None:
    """Return the private or embargoed zone with its store, if it has one."""
    store = store_of(settings, zone)
    if store is None:
        require_no_copy(settings.home / zone)
        return None
    _require_a_copy(settings.home / zone, zone)
    return _unit_zone(settings, store)


def store_of(settings: Settings, zone: str) -> ZoneStore | None:
    """Return the store of a zone, if it has one.

    Raises:
        InputError: an address is none, or one zone lies in the store of another.
    """
    _require_apart(settings.stores)
    return settings.store_of(zone)


@cache  # every step asks for its zones a dozen times
def _require_apart(stores: tuple[ZoneStore, ...]) -> None:
    """Refuse zones in the store of another.

    Raises:
        InputError: one is, or an address is none.
    """
    places = [(store.zone, store_address(store)) for store in stores]
    for (inner, place), (outer, around) in permutations(places, 2):
        if around.holds(place):
            rule = (
                f"lies in the store of {outer}, whose readers are others; name a bucket or a "
                "prefix that holds no other zone and lies in none"
            )
            raise InputError(
                where="environment", field=f"TURNSTILE_{inner.upper()}_STORE", rule=rule
            )


def _unit_zone(settings: Settings, store: ZoneStore) -> UnitZone:
    from turnstile_stores.opened import opened
    from turnstile_stores.unit_zone import UnitZone

    is_private = store.zone == "private"
    return UnitZone(opened(store), settings.home / store.zone, 2 if is_private else 3, is_private)


def plain_zone(settings: Settings, zone: str) -> PlainZone | None:
    """Return the landing or public zone with its store, if it has one."""
    store = store_of(settings, zone)
    if store is None:
        return None
    if zone == "public":
        _require_a_copy(settings.home / zone, zone)
    return zone_of_files(settings, store)


def zone_of_files(settings: Settings, store: ZoneStore) -> PlainZone:
    """Return a zone whose store holds files by their names."""
    from turnstile_stores.opened import opened
    from turnstile_stores.plain_zone import PlainZone

    folder, is_public = settings.home / store.zone, store.zone == "public"
    return PlainZone(opened(store), folder, is_private=not is_public, is_whole=is_public)


def adopt_units(settings: Settings, zone: str) -> Iterator[str]:
    """Put a folder that was a zone of its own into its store; yield each unit that is there.

    Raises:
        StoreError: it does not answer.
    """
    store = store_of(settings, zone)
    if store is None:
        return
    opened_zone = _unit_zone(settings, store)
    for unit in opened_zone.units():
        with opened_zone.working_on(unit):
            opened_zone.adopt(unit)
        yield unit


def require_all_here(settings: Settings) -> None:
    """Check that folders which were copies of other stores hold all of them.

    Raises:
        InputError: a file is in such a store alone.
    """
    for zone in ("private", "embargoed"):
        if store := store_of(settings, zone):
            copy = _unit_zone(settings, store)
            if not copy.bucket.listed("") and (lacking := next(copy.elsewhere(), None)):
                rule = (
                    f"is the copy of another store, which alone holds {lacking}; copy the objects "
                    "of that store into this one with any S3 client, and name a new TURNSTILE_HOME"
                )
                raise InputError(where=str(copy.folder), field="store", rule=rule)


def restore_units(settings: Settings, zone: str) -> Iterator[tuple[str, int, int]]:
    """Put back what is here and lost in a store that is older; yield units and what became of them.

    Raises:
        StoreError: it does not answer.
        IntegrityError: it holds other sealed bytes.
    """
    if opened_zone := unit_zone(settings, zone):
        yield from opened_zone.restore()


@contextmanager
def adopting(settings: Settings) -> Iterator[None]:
    """Make folders the copies of empty stores while the block puts them there; a repeat goes on.

    Raises:
        InputError: a store holds something, and not from here.
    """
    from turnstile_stores.opened import opened

    stores = [store for store in settings.stores if store.zone != "landing"]
    marks = [settings.home / store.zone / STATE / ADOPTING for store in stores]
    if not any(mark.exists() for mark in marks):
        for store in stores:
            if (bucket := opened(store)).listed(""):
                rule = f"{bucket.name} is not empty; name an empty one, or another TURNSTILE_HOME"
                where = str(settings.home / store.zone)
                raise InputError(where=where, field="store", rule=rule)
        for mark in marks:
            mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            mark.touch()
    yield
    for mark in marks:
        mark.unlink(missing_ok=True)


def refresh(settings: Settings, key: ReleaseKey | None = None, *, proves: bool = False) -> None:
    """Bring what is public, and the traces under embargo, here; for readers.

    Args:
        settings: which stores there are.
        key: of a release of which everything under embargo is wanted.
        proves: whether traces are read for what was drawn: whole packages of what is not public.

    Raises:
        StoreError: a store is away.
    """
    if proves:
        fetch_public(settings)  # tells which staged packages are the only ones
    if embargoed := unit_zone(settings, "embargoed"):
        prefix = f"{key}/"

        def wanted(path: str) -> bool:
            is_asked_for = path.startswith(prefix) or is_trace(path)
            return is_asked_for or (proves and _is_proof(settings.public, path))

        embargoed.fetch((), wanted)
        if proves:
            embargoed.bring_unnamed()
    if not proves:
        fetch_public(settings)


def fetch_public(settings: Settings, holding: ExitStack | None = None) -> None:
    """Bring the public zone here: packages whose manifest is there, and everything else.

    Args:
        settings: which stores there are.
        holding: what holds the copies for the caller afterwards.
    """
    if zone := plain_zone(settings, "public"):
        with ExitStack() as held:
            (holding or held).enter_context(zone.alone())
            bring_packages(zone, settings)


def bring_packages(zone: PlainZone, settings: Settings) -> None:
    """Bring the public zone here, whose copies the caller holds."""
    zone.fetch(whole_packages, withdrawn=lambda: withdrawn_releases(settings))


def withdrawn_releases(settings: Settings) -> frozenset[str]:
    """Return the releases that the ledger calls withdrawn; none, where it cannot say."""
    from turnstile.ledger.of_deployment import open_ledger

    with suppress(TurnstileError):
        entries = open_ledger(settings, read_only=True).entries()
        return frozenset(str(e.key) for e in entries if e.kind is EntryKind.WITHDRAWN)
    return frozenset()


def fetch_landing(
    settings: Settings, source: SourceSpec, period: ServicePeriod
) -> Callable[[Path], float]:
    """Bring the files of a period here; return what says when one was last written.

    Where the landing zone has no store, that is the time that no copying tool can set back.
    """
    zone = plain_zone(settings, "landing")
    if zone is None:
        return changed_here
    prefixes = [fixed_part(source.landing.replace("{week}", str(week))) for week in period.weeks]
    markers = {source.marker.replace("{week}", str(week)) for week in period.weeks}

    def wanted(name: str) -> bool:
        return name in markers or any(name.startswith(prefix) for prefix in prefixes)

    with zone.alone():
        zone.fetch(lambda _: wanted, delivers=True)
    return lambda path: zone.put_at(path) or changed_here(path)


def is_trace(path: str) -> bool:
    """Return whether a charge asks for a file under embargo."""
    return path.rpartition("/")[2].startswith((SEALED, KEPT_PLAN)) or path.endswith(_OF_TRACES)


def tells_of_files(path: str) -> bool:
    """Return whether a private file tells of which files a release is, or is the key to that."""
    return path.endswith("/files") or "/" not in path


def _is_proof(public: Path, path: str) -> bool:
    """Return whether a file under embargo is of a package that is not public."""
    release, _, name = path.partition("/package/")
    return bool(name) and not (public / release / "manifest.json").exists()


def whole_packages(names: frozenset[str]) -> Callable[[str], bool]:
    """Say of a name whether it is of a whole package, or of none."""

    def wanted(name: str) -> bool:
        package = package_of(name)
        return package in {None, name} or f"{package}/manifest.json" in names

    return wanted


def _require_a_copy(folder: Path, zone: str) -> None:
    """Refuse a folder that holds a zone of its own: what is not in the store would go.

    Raises:
        InputError: it was never a copy of a store.
    """
    if not is_copy(folder) and any(folder.glob("[!.]*/[!.]*/[!.]*")):
        rule = (
            f"holds the {zone} zone, and is no copy of the store; put it there by turnstile "
            "stores adopt, or name another TURNSTILE_HOME"
        )
        raise InputError(where=str(folder), field=f"TURNSTILE_{zone.upper()}_STORE", rule=rule)
