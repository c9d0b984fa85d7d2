"""`series/index.json`: every period with its state, every file with its digest, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnstile.ledger.parties import Parties
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import PublishedRevision
from turnstile.programme.spec import Programme
from turnstile.publishing.describe.licences import path_of
from turnstile.publishing.package_reader import DATA
from turnstile.publishing.series.dataset import LABELS, SeriesTable
from turnstile.publishing.series.periods import Period
from turnstile.release.zones import digest_of

FOLDER, EXPLORER, EXPLORER_PAGE = "series", "explore", "explore.html"
INDEX = f"{FOLDER}/index.json"


def index(  # noqa: PLR0913 - each a part of the page
    programme: Programme,
    periods: Sequence[Period],
    in_force: Sequence[PublishedRevision],
    *,
    tables: Sequence[SeriesTable],
    files: Mapping[str, bytes | tuple[int, str]],
    totals: Sequence[Mapping[str, object]],
    versions: Mapping[ReleaseKey, int],
    parties: Parties,
) -> dict[str, Any]:
    """Return the index.

    Args:
        programme: whose title, licence and people it names.
        periods: in order.
        in_force: releases that are here, in order.
        tables: of the dataset.
        files: of the series, by path below the programme's folder: bytes, or size and digest.
        totals: of each period, with their errors.
        versions: of the packages that are here.
        parties: how often the ledger was brought back, from where its entries count anew.
    """
    licence = {"name": programme.publish.licence, "path": path_of(programme.publish.licence)}
    return {
        "programme": programme.name,
        "title": programme.title,
        "description": programme.description,
        "licence": {name: value for name, value in licence.items() if value},
        "curator": programme.publish.curator,
        "contact": programme.publish.contact,
        "latest": _below(str(in_force[-1].key)) if in_force else None,
        "ledger_sequence": max(
            (r.published.sequence for period in periods for r in period.revisions), default=0
        ),
        "ledger_recoveries": parties.recoveries,
        "ledger_recovered_over": sorted(parties.recovered_over.items()),
        "package_versions": _since(in_force, versions),
        "periods": [_period(period, in_force, versions) for period in periods],
        "totals": list(totals),
        "tables": [_table(table) for table in tables],
        "files": [_file(path, content) for path, content in sorted(files.items())],
    }


def _below(key: str) -> str:
    """Return the path of a package below its programme's folder."""
    return key.partition("/")[2]


def _since(
    in_force: Sequence[PublishedRevision], versions: Mapping[ReleaseKey, int]
) -> list[dict[str, Any]]:
    """Return from which period on packages in force are of which version; in order."""
    starts: list[dict[str, Any]] = []
    for revision in in_force:
        if not starts or starts[-1]["version"] != versions[revision.key]:
            starts.append({"version": versions[revision.key], "from": revision.key.period})
    return starts


def _period(
    period: Period, in_force: Sequence[PublishedRevision], versions: Mapping[ReleaseKey, int]
) -> dict[str, Any]:
    """Return what is known of a period; keys without a value are left out."""
    days, current = period.period.days, period.in_force
    record: dict[str, Any] = {
        "period": str(period.period),
        "first_day": days[0].isoformat(),
        "last_day": days[-1].isoformat(),
        "state": period.state.value,
    }
    if current is not None:
        record |= {
            "revision": current.key.revision,
            "manifest_sha256": current.manifest_sha256,
            "published_at": current.published.at,
        }
        if current in in_force:
            record |= {"path": _below(str(current.key)), "package_version": versions[current.key]}
    elif period.week.no_release is not None:
        record["stated_at"] = period.week.no_release.at
    withdrawn = [
        {
            "revision": revision.key.revision,
            "withdrawn_at": revision.withdrawn.at,
            "reason": revision.withdrawn.public_note,
        }
        for revision in period.revisions
        if revision.withdrawn is not None
    ]
    return record | ({"withdrawn": withdrawn} if withdrawn else {})


def _table(table: SeriesTable) -> dict[str, Any]:
    """Return the schema versions of a table."""
    return {
        "name": table.name,
        "versions": [
            {
                "version": number,
                "path": f"series/{DATA}/{table.name}/v{number}",
                "columns": [
                    {"name": name, "type": kind} for name, kind in (*LABELS, *schema.columns)
                ],
                "terms": dict(schema.terms),
                "periods": [
                    revision.key.period for revision, version in table.parts if version == number
                ],
            }
            for number, schema in enumerate(table.versions, start=1)
        ],
    }


def _file(path: str, content: bytes | tuple[int, str]) -> dict[str, Any]:
    """Return path, size and digest of a file."""
    size, digest = (len(content), digest_of(content)) if isinstance(content, bytes) else content
    return {"path": path, "bytes": size, "sha256": digest}
