"""Zones with their stores, as far as this process reaches any, and how readers bring them here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.durable_files import SEALED
from turnstile.errors import InputError
from turnstile.ledger.landing_paths import fixed_part
from turnstile.ledger.records import ReleaseKey, revision_of
from turnstile.programme.source_spec import SourceSpec
from turnstile.release.zone_copies import changed_here
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings, ZoneStore
from turnstile_stores.unit import STATE

if TYPE_CHECKING:
    from turnstile_stores.bucket import Bucket
    from turnstile_stores.plain_zone import PlainZone
    from turnstile_stores.unit_zone import UnitZone

_OF_TRACES = ("/plan.json", "/package/manifest.json", "/package/release_card.json")
_ADOPTING = "adopting"
_PARTS_OF_PACKAGE = 4  # opal/2016-W30/r0/manifest.json


def unit_zone(settings: Settings, zone: str) -> UnitZone | None:
    """Return the private or embargoed zone with its store, if it has one."""
    store = next((candidate for candidate in settings.stores if candidate.zone == zone), None)
    if store is None:
        return None
    _require_a_copy(settings.home / zone, zone)
    return _unit_zone(settings, store)


def _unit_zone(settings: Settings, store: ZoneStore) -> UnitZone:
    from turnstile_stores.opened import opened
    from turnstile_stores.unit_zone import UnitZone

    is_private = store.zone == "private"
    return UnitZone(opened(store), settings.home / store.zone, 2 if is_private else 3, is_private)


def plain_zone(settings: Settings, zone: str) -> PlainZone | None:
    """Return the landing or public zone with its store, if it has one."""
    store = next((candidate for candidate in settings.stores if candidate.zone == zone), None)
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
        InputError: the store holds something that is not here.
        StoreError: it does not answer.
    """
    store = next((candidate for candidate in settings.stores if candidate.zone == zone), None)
    if store is None:
        return
    opened_zone = _unit_zone(settings, store)
    with adopting(opened_zone.bucket, opened_zone.folder):
        for unit in opened_zone.units():
            with opened_zone.working_on(unit):
                opened_zone.put(unit)
            yield unit


def restore_units(settings: Settings, zone: str) -> Iterator[tuple[str, int, int]]:
    """Put back what is here and lost in a store that is older; yield units and what became of them.

    Raises:
        StoreError: it does not answer.
        IntegrityError: it holds other sealed bytes.
    """
    if opened_zone := unit_zone(settings, zone):
        yield from opened_zone.restore()


@contextmanager
def adopting(bucket: Bucket, folder: Path) -> Iterator[None]:
    """Make a folder the copy of a store while the block puts it there; a repeat goes on.

    Raises:
        InputError: the store holds something, and not from here.
    """
    mark = folder / STATE / _ADOPTING
    if not mark.exists():
        if bucket.listed(""):
            rule = f"{bucket.name} is not empty; name an empty one, or another TURNSTILE_HOME"
            raise InputError(where=str(folder), field="store", rule=rule)
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch()
    yield
    mark.unlink()


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
            zone.fetch(whole_packages)


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
        zone.fetch(lambda _: wanted)
    return lambda path: zone.put_at(path) or changed_here(path)


def is_trace(path: str) -> bool:
    """Return whether a charge asks for a file under embargo."""
    return path.rpartition("/")[2].startswith(SEALED) or path.endswith(_OF_TRACES)


def _is_proof(public: Path, path: str) -> bool:
    """Return whether a file under embargo is of a package that is not public."""
    release, _, name = path.partition("/package/")
    return bool(name) and not (public / release / "manifest.json").exists()


def whole_packages(names: frozenset[str]) -> Callable[[str], bool]:
    """Say of a name whether it is of a whole package, or of none."""

    def wanted(name: str) -> bool:
        parts = name.split("/")
        if len(parts) < _PARTS_OF_PACKAGE or revision_of(parts[2]) is None:
            return True
        return "/".join((*parts[:3], "manifest.json")) in names

    return wanted


def _require_a_copy(folder: Path, zone: str) -> None:
    """Refuse a folder that holds a zone of its own: what is not in the store would go.

    Raises:
        InputError: it was never a copy of a store.
    """
    state = folder / STATE
    is_copy = state.exists() and not (state / _ADOPTING).exists()
    if not is_copy and any(folder.glob("[!.]*/[!.]*/[!.]*")):
        rule = (
            f"holds a {zone} zone that is no copy of the store; put it there by turnstile stores "
            "adopt, or name another TURNSTILE_HOME"
        )
        raise InputError(where=str(folder), field=f"TURNSTILE_{zone.upper()}_STORE", rule=rule)
