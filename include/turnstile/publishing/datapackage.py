"""`datapackage.json`: the Data Package v2 descriptor of the published tables."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.programme.fields import title_of
from turnstile.programme.spec import Programme
from turnstile.release.plan import ReleasePlan
from turnstile.release.zones import digest_of

_LICENCES = {"CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/"}
_ABOUT = {
    "estimates": "The most exact numbers: they borrow strength from like places, days and earlier "
    "weeks, so they are biased towards the usual; each with an interval. They add up. For unbiased "
    "numbers take tables and measurements.",
    "tables": "Presentation: whole, non-negative and consistent counts (biased by that), beside "
    "reconciled numbers of the trips counted, which have no bias, and their errors.",
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
            "title": title_of(field.name),
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
