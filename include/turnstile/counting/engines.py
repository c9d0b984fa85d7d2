"""The engines that can count a week, by name: the core's own, and those of extensions.

Each names a module with a function `count`, called as `counting.exact_tables.count` is. All of them
give identical exact tables for the same rows; digests of their tables are compared in tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from turnstile import extensions
from turnstile.errors import InputError

if TYPE_CHECKING:
    from turnstile.counting.exact_tables import CountWeek

_SETTING = "TURNSTILE_COUNTING_ENGINE"
_OWN = {
    "duckdb": "turnstile.counting.exact_tables",
}


def engine_named(name: str) -> CountWeek:
    """Return the counting of an engine.

    Raises:
        InputError: there is no such engine.
    """
    counting: CountWeek
    further = extensions.names(extensions.ENGINES)
    if name in _OWN:
        counting = import_module(_OWN[name]).count
    elif name in further:
        counting = extensions.brought(extensions.ENGINES, name, asked_by=_SETTING)
    else:
        rule = f"{name!r} is no counting engine; write one of {', '.join((*_OWN, *further))}"
        raise InputError(where="environment", field=_SETTING, rule=rule)
    return counting
