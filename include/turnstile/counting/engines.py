"""The engines that can count a week, by name: the core's own, and those of extensions.

Each names a module with a function `count`, called as `counting.exact_tables.count` is. All of them
give identical exact tables for the same rows; digests of their tables are compared in tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile import extensions
from turnstile.errors import InputError

if TYPE_CHECKING:
    from turnstile.counting.exact_tables import CountWeek

_OWN, _SETTING = "duckdb", "TURNSTILE_COUNTING_ENGINE"
ENGINES = (_OWN, *extensions.names(extensions.ENGINES))


def engine_named(name: str) -> CountWeek:
    """Return the counting of an engine.

    Raises:
        InputError: there is no such engine.
    """
    if name not in ENGINES:
        rule = f"{name!r} is no counting engine; write one of {', '.join(ENGINES)}"
        raise InputError(where="environment", field=_SETTING, rule=rule)
    if name == _OWN:
        from turnstile.counting.exact_tables import count

        return count
    counting: CountWeek = extensions.brought(extensions.ENGINES, name, asked_by=_SETTING)
    return counting
