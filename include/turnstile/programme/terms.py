"""What of a programme decides the loss and the cells of a release, key by key; pure.

A sealed or published week is bound to these, and to nothing else of the file: a new contact
address, a raised cap or another licence re-issues old weeks as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from zoneinfo import ZoneInfo

from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod

_SECTIONS = ("source", "time", "domain", "units", "tables", "mechanism")
_FREE = {
    "source.absent_days",  # those of other periods; a period's own bind, see below
    "source.landing",
    "source.missing_day",
    "source.rows_per_day_at_least",
    "source.quiet_hours",
    "source.set_aside_at_most",
    "source.files_at_least",
    "source.marker",
    "domain.timetable",
}
"""Keys of those sections that say when a week is complete, or what it is assessed with."""


def binding_terms(programme: Programme, period: ServicePeriod) -> dict[str, str]:
    """Return every key that binds, with its value as text; a key without a value is left out."""
    terms: dict[str, str] = {}
    for section in _SECTIONS:
        terms.update(_flat(section, getattr(programme, section)))
    if not any(
        axis.endswith(("_region", "_zone")) for table in programme.tables for axis in table.by
    ):
        terms.pop("domain.regions", None)  # nothing is drawn by them: numbers are added up
    if absent := sorted(set(period.days) - set(programme.days_of(period))):
        terms["source.absent_days"] = ", ".join(map(str, absent))
    return terms


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield keys and texts of a value and of all that it holds."""
    if key in _FREE or value is None or value == () or key.endswith(".line"):
        return
    if is_dataclass(value):
        for field in fields(value):
            yield from _flat(f"{key}.{field.name}", getattr(value, field.name))
    elif isinstance(value, tuple):
        for number, entry in enumerate(value):
            name = getattr(entry, "name", None) or getattr(entry, "unit", None) or number
            yield from _flat(f"{key}.{name}", entry)
    else:
        yield key, _text(value)


def _text(value: object) -> str:
    """Return one value as the file would write it."""
    if isinstance(value, ZoneInfo):
        return value.key
    return str(value.value if isinstance(value, Enum) else value)
