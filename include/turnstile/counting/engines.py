"""The engines that can count a week, by name: plain data, imported when one is used.

Each names a module with a function `count`, called as `counting.exact_tables.count` is. All of them
give identical exact tables for the same rows; digests of their tables are compared in tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from turnstile.errors import InputError

if TYPE_CHECKING:
    from turnstile.counting.exact_tables import CountWeek

ENGINES: dict[str, str] = {
    "duckdb": "turnstile.counting.exact_tables",
    "spark": "turnstile.counting.spark",
}


def engine_named(name: str) -> CountWeek:
    """Return the counting of an engine.

    Raises:
        InputError: there is no such engine.
    """
    if name not in ENGINES:
        rule = f"{name!r} is no counting engine; write one of {', '.join(ENGINES)}"
        raise InputError(where="environment", field="TURNSTILE_COUNTING_ENGINE", rule=rule)
    counting: CountWeek = import_module(ENGINES[name]).count
    return counting
