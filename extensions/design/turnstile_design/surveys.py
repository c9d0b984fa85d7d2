"""Noisy numbers of buses from a published survey: what public cells may be chosen from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from turnstile.errors import InputError


def noisy_buses_a_day(package: Path, table: str) -> dict[str, list[float]]:
    """Return the noisy buses a day of each cell, one number a slot, from a published package.

    Args:
        package: folder of a published release.
        table: of numbers of buses, or of mean speeds.

    Raises:
        InputError: there is no such package, or the table has no buses.
    """
    path = package / "measurements" / f"{table}.parquet"
    if not path.exists() or "buses" not in pq.read_schema(path).names:
        rule = f"has no published table {table!r} with buses; release itms_survey first"
        raise InputError(where=package.name, field="package", rule=rule)
    card = json.loads((package / "release_card.json").read_bytes())
    days = max(1, len(card["service_days"]) - len(card["gaps"]))
    drawn = pq.read_table(path, columns=["cell", "buses"])
    found: dict[str, list[float]] = {}
    cells, buses = (drawn.column(name).to_pylist() for name in ("cell", "buses"))
    for cell, number in zip(cells, buses, strict=True):
        found.setdefault(cell, []).append(number / days)
    return found
