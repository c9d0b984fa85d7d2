"""`datapackage.json`: the Data Package v2 descriptor of the published tables."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.programme.spec import Programme
from turnstile.release.plan import ReleasePlan
from turnstile.release.zones import digest_of

_TITLES = {
    "service_date": "Service day in the agency's time zone, of the tap-on",
    "mode": "Mode of transport",
    "tap_on_slot": "Start of the slot of the tap-on; UNKNOWN outside of the mode's slots",
    "tap_on_location": "Place of the tap-on as published",
    "tap_off_slot": "Start of the slot of the tap-off; UNKNOWN without one, or outside of them",
    "tap_off_location": "Place of the tap-off as published; UNKNOWN without one",
    "slot": "Start of the slot",
    "cell": "H3 cell",
    "count": "Number of trips",
    "reconciled": "Number of trips by least squares over all tables, unbiased, may be negative",
    "standard_deviation": "Standard deviation of the number's noise",
    "half_width_90": "The number lies this near to the exact one with probability 0.90",
    "half_width_95": "The number lies this near to the exact one with probability 0.95",
    "sum": "Noisy sum of speeds less half the clamp, in 0.1 km/h",
    "buses": "Noisy number of bus-days",
    "bus_days": "Number of bus-days, not below zero",
    "mean_speed_kmh": "Mean over bus-days of a bus's mean speed, km/h",
    "standard_deviation_kmh": "Standard deviation of the mean's noise, to first order, km/h",
    "low_95_kmh": "Lower end of the 95 % interval of the mean, km/h; noise only",
    "high_95_kmh": "Upper end of the 95 % interval of the mean, km/h; noise only",
    "bus_days_standard_deviation": "Standard deviation of the noise of bus_days",
    "bus_days_half_width_95": "The noise of bus_days is within this with probability 0.95",
    "buses_a_day": "bus_days over the service days with input",
    "is_withheld": "True where too few bus-days rise above the noise for a mean",
}
_LICENCES = {"CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/"}
_ABOUT = {
    "tables": "Presentation: whole, non-negative and consistent counts (biased by that), beside "
    "unbiased reconciled numbers and their errors.",
    "measurements": "The noisy numbers exactly as drawn; use these for sums and models.",
}


def datapackage(
    folder: Path, programme: Programme, plan: ReleasePlan, built_at: datetime
) -> dict[str, Any]:
    """Return the descriptor of the tables that lie in a folder."""
    licence: dict[str, str] = {"name": programme.publish.licence}
    if programme.publish.licence in _LICENCES:
        licence["path"] = _LICENCES[programme.publish.licence]
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": f"{programme.name}-{str(plan.week).lower()}-r{plan.revision}".replace("_", "-"),
        "title": f"{programme.title}, {plan.week}",
        "description": programme.description,
        "version": f"{plan.week}.r{plan.revision}",
        "created": built_at.isoformat(timespec="seconds"),
        "licenses": [licence],
        "contributors": [{"title": programme.publish.curator, "roles": ["curator"]}],
        "resources": [
            _resource(folder, path)
            for part in _ABOUT
            for suffix in ("csv", "parquet")
            for path in sorted((folder / part).glob(f"*.{suffix}"))
        ],
    }


def _resource(folder: Path, path: Path) -> dict[str, Any]:
    """Describe one file."""
    content = path.read_bytes()
    part, suffix = path.parent.name, path.suffix[1:]
    described: dict[str, Any] = {
        "name": f"{part}-{path.stem}-{suffix}".replace("_", "-"),
        "path": path.relative_to(folder).as_posix(),
        "format": suffix,
        "mediatype": "text/csv" if suffix == "csv" else "application/vnd.apache.parquet",
        "description": _ABOUT[part],
        "bytes": len(content),
        "hash": f"sha256:{digest_of(content)}",
    }
    if suffix == "csv":
        described["type"] = "table"
        described["encoding"] = "utf-8"
        described["schema"] = {"fields": _fields(path.with_suffix(".parquet"))}
    return described


def _fields(path: Path) -> list[dict[str, str]]:
    """Describe the columns of a table."""
    return [
        {
            "name": field.name,
            "type": _type(field.type),
            "title": _TITLES.get(field.name, field.name),
        }
        for field in pq.read_schema(path)
    ]


def _type(kind: pa.DataType) -> str:
    """Return the name of a column's type in a table schema."""
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "date" if pa.types.is_date(kind) else "string"
