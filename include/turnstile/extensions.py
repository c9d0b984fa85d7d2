"""What extensions bring: further commands, engines, zones in stores, portals, planning tables.

The core imports none of them. Each is a distribution of its own (`extensions/`), found by its entry
points; what asks for one that is not installed says which.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any

from turnstile.errors import InputError

COMMANDS, ENGINES = "turnstile.commands", "turnstile.engines"
ZONES, PORTALS = "turnstile.zones", "turnstile.portals"
PLANNING = "turnstile.planning"
_BROUGHT_BY: dict[str, dict[str, tuple[str, ...]]] = {
    "design": {
        COMMANDS: ("new", "look", "report", "itms"),
        PLANNING: ("plan_tables", "estimate_tables", "price_of_year_to_date"),
    },
    "lab": {COMMANDS: ("assess", "lab")},
    "samples": {COMMANDS: ("sample",)},
    "spark": {ENGINES: ("spark",)},
    "stores": {
        COMMANDS: ("stores", "portal"),
        ZONES: ("stores",),
        PORTALS: ("address", "delivery"),
    },
}
"""What each brings, by name of its folder, for those who have not installed it."""


def brought(group: str, name: str, *, asked_by: str) -> Any:  # noqa: ANN401 - whatever it brings
    """Return what an extension brings under a name.

    Args:
        group: COMMANDS and so on.
        name: in its group.
        asked_by: command, setting or key that needs it, for the message.

    Raises:
        InputError: the extension is not installed.
    """
    for point in _points(group).select(name=name):
        return point.load()
    missing = next(ext for ext, groups in _BROUGHT_BY.items() if name in groups.get(group, ()))
    rule = f"needs the extension {missing}; install it: pip install --no-deps extensions/{missing}"
    raise InputError(where="turnstile", field=asked_by, rule=rule)


def names(group: str) -> tuple[str, ...]:
    """Return the names that extensions bring, or would bring, in a group."""
    return tuple(name for groups in _BROUGHT_BY.values() for name in groups.get(group, ()))


def installed(group: str) -> frozenset[str]:
    """Return the names of a group that installed extensions bring."""
    return frozenset(_points(group).names)


@cache
def _points(group: str) -> EntryPoints:
    return entry_points(group=group)  # searches all that is installed
