"""Everything private here, for retention: what it deletes here goes in the stores too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from turnstile.errors import StoreObjectGone
from turnstile.release.zone_copies import ASIDE, Unnamed, changed_here
from turnstile.settings import Settings
from turnstile_stores.unit_zone import ZONE
from turnstile_stores.zone_stores import plain_zone, refresh, tells_of_files, unit_zone


@dataclass(frozen=True, slots=True)
class PrivateCopies:
    """Everything private, for retention; where no store is named, the zones themselves."""

    settings: Settings

    def fetch_private(self) -> frozenset[str]:
        """Bring all of it here; return the periods that a step works on here, left as they are.

        Raises:
            StoreObjectGone: the private store has lost something; all that it has is here.
            StoreError: a store is away.
        """
        if landing := plain_zone(self.settings, "landing"):
            with landing.alone():
                landing.fetch(lambda _: lambda _: True)
        refresh(self.settings)  # whether a release still has its bytes
        private = unit_zone(self.settings, "private")
        return private.fetch((), lambda _: True) if private else frozenset()

    def fetch_delivered(self) -> tuple[str, ...]:
        """Bring what tells of which files releases are; return the periods of which it is lost.

        Raises:
            StoreObjectGone: a bounding key is lost, without which no file is known.
            StoreError: the store is away.
        """
        if private := unit_zone(self.settings, "private"):
            try:
                private.fetch((), tells_of_files)
            except StoreObjectGone as error:
                if ZONE in error.units:
                    raise
                return error.units
        return ()

    def changed_at(self, path: Path) -> float:
        """Return when a file came, in seconds since 1970."""
        for name, zone in (
            ("landing", plain_zone(self.settings, "landing")),
            ("private", unit_zone(self.settings, "private")),
        ):
            if zone and path.is_relative_to(self.settings.home / name):
                return 0.0 if path.is_dir() else zone.put_at(path) or changed_here(path)
        return changed_here(path)

    def delete(self, gone: Iterable[Path]) -> None:
        """Delete in the stores what was deleted here, of private folders all that is below them.

        Raises:
            StoreError: a store is away; the next time tries again.
        """
        landing, private = plain_zone(self.settings, "landing"), unit_zone(self.settings, "private")
        units = defaultdict[str, set[str]](set)
        for path in gone:
            if landing and path.is_relative_to(self.settings.landing):
                with landing.alone():
                    landing.delete(path)
            elif path.is_relative_to(self.settings.private / ASIDE):
                continue  # no store has it
            elif private and path.is_relative_to(self.settings.private):
                programme, period, *rest = path.relative_to(self.settings.private).parts
                units[f"{programme}/{period}"].add("/".join(rest))
        for unit, names in units.items():
            if private:
                with private.working_on(unit):
                    private.fetch((unit,), lambda _: False)  # what steps left that died
                    private.put(unit, names)

    def delete_unnamed(self, age: timedelta, may_go: Callable[[Unnamed], bool]) -> None:
        """Delete in the private store what no index names, if it is so old and may go.

        Args:
            age: of what goes at least.
            may_go: whether its period's days are over.

        Raises:
            StoreError: the store is away; the next time tries again.
        """
        if private := unit_zone(self.settings, "private"):
            private.delete_unnamed(age, may_go)
