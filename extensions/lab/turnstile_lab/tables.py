"""What a table of others gives away, for `turnstile assess`: findings, labels and days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path

from turnstile.assessment.attacks.timetable_view import CellLabels
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.external.of_table import assess_external
from turnstile_lab.external.table import ExternalTable

_DAY_FORMS = ("%Y-%m-%d", "%Y%m%d")


def assessed(
    paths: list[Path], lookup: Mapping[tuple[str, str], str]
) -> tuple[tuple[Disclosure, ...], CellLabels, set[date]]:
    """Return what files of counts give away, the labels of their cells, and their service days.

    Args:
        paths: files of one table.
        lookup: which area each location is published as.
    """
    table = read_external_tables(paths)
    days = set(days_of(cell.date for cell in table.cells))
    return assess_external(table), labels_of_external(table, lookup), days


def labels_of_external(table: ExternalTable, lookup: Mapping[tuple[str, str], str]) -> CellLabels:
    """Return the labels of an external table."""
    slots = frozenset(cell.time for cell in table.cells if cell.time is not None)
    areas: defaultdict[str | None, set[str]] = defaultdict(set)
    for cell in table.cells:
        areas[cell.mode] |= {cell.loc} if cell.loc is not None else set()
    return CellLabels(
        slots, {mode: frozenset(locations) for mode, locations in areas.items()}, lookup
    )


def days_of(texts: Iterable[str | None]) -> list[date]:
    """Return the service days that labels are, as `2016-07-25` or `20160725`; others are none."""
    days = []
    for text in {text for text in texts if text}:
        for form in _DAY_FORMS:
            try:
                days.append(datetime.strptime(text, form).date())  # noqa: DTZ007 - a service day has no zone
                break
            except ValueError:
                continue
    return sorted(days)
