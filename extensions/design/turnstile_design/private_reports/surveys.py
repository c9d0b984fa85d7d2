"""Noisy numbers of buses from a published survey: what public cells may be chosen from."""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import InputError
from turnstile.publishing.package_reader import Tables


def noisy_buses_a_day(package: Path, table: str) -> dict[str, list[float]]:
    """Return the noisy buses a day of each cell, one number a slot, from a published package.

    Args:
        package: folder of a published release.
        table: of numbers of buses, or of mean speeds.

    Raises:
        InputError: there is no such package, or the table has no buses.
    """
    tables = Tables(package)
    try:
        drawn = tables.drawn(table).select(["cell", "buses"])
    except (OSError, KeyError, InputError):
        rule = f"has no published table {table!r} with buses; release itms_survey first"
        raise InputError(where=package.name, field="package", rule=rule) from None
    days = max(1, len(tables.card["service_days"]) - len(tables.card["gaps"]))
    buses_of_cell: dict[str, list[float]] = {}
    cells, buses = (drawn.column(name).to_pylist() for name in ("cell", "buses"))
    for cell, number in zip(cells, buses, strict=True):
        buses_of_cell.setdefault(cell, []).append(number / days)
    return buses_of_cell
