"""`series/index.json`: every period with its state, every file with its digest, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Fact, PublishedRevision
from turnstile.programme.spec import Programme
from turnstile.publishing.describe.licences import path_of
from turnstile.publishing.package_reader import DATA
from turnstile.publishing.series.dataset import LABELS, SeriesTable
from turnstile.publishing.series.periods import Period
from turnstile.release.zones import digest_of

INDEX = "series/index.json"


def index(  # noqa: PLR0913 - each a part of the page
    programme: Programme,
    periods: Sequence[Period],
    in_force: Sequence[PublishedRevision],
    *,
    tables: Sequence[SeriesTable],
    files: Mapping[str, bytes | tuple[int, str]],
    totals: Sequence[Mapping[str, object]],
    versions: Mapping[ReleaseKey, int],
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
            (fact.sequence for one in periods for fact in _facts(one)), default=0
        ),
        "package_versions": _since(in_force, versions),
        "periods": [_period(one, in_force, versions) for one in periods],
        "totals": list(totals),
        "tables": [_table(one) for one in tables],
        "files": [_file(path, one) for path, one in sorted(files.items())],
    }


def tombstones(periods: Sequence[Period]) -> dict[str, dict[str, Any]]:
    """Return the record of each withdrawn revision, by path below the programme's folder."""
    return {
        f"{one.key.period}/withdrawn-r{one.key.revision}.json": {
            "release": str(one.key),
            "state": "withdrawn",
            "withdrawn_at": one.withdrawn.at,
            "reason": one.withdrawn.public_note,
            "manifest_sha256": one.manifest_sha256,
            "ledger": {"sequence": one.withdrawn.sequence, "entry_sha256": one.withdrawn.sha256},
        }
        for period in periods
        for one in period.revisions
        if one.withdrawn is not None
    }


def _facts(period: Period) -> list[Fact]:
    """Return every fact about a period."""
    found = [fact for one in period.revisions for fact in (one.published, one.withdrawn)]
    return [fact for fact in (*found, period.week.no_release) if fact is not None]


def _below(key: str) -> str:
    """Return the path of a package below its programme's folder."""
    return key.partition("/")[2]


def _since(
    in_force: Sequence[PublishedRevision], versions: Mapping[ReleaseKey, int]
) -> list[dict[str, Any]]:
    """Return from which period on packages in force are of which version; in order."""
    found: list[dict[str, Any]] = []
    for one in in_force:
        if not found or found[-1]["version"] != versions[one.key]:
            found.append({"version": versions[one.key], "from": one.key.period})
    return found


def _period(
    one: Period, in_force: Sequence[PublishedRevision], versions: Mapping[ReleaseKey, int]
) -> dict[str, Any]:
    """Return what is known of a period; keys without a value are left out."""
    days, own = one.period.days, one.in_force
    record: dict[str, Any] = {
        "period": str(one.period),
        "first_day": days[0].isoformat(),
        "last_day": days[-1].isoformat(),
        "state": one.state.value,
    }
    if own is not None:
        record |= {
            "revision": own.key.revision,
            "manifest_sha256": own.manifest_sha256,
            "published_at": own.published.at,
        }
        if own in in_force:
            record |= {"path": _below(str(own.key)), "package_version": versions[own.key]}
    elif one.week.no_release is not None:
        record["stated_at"] = one.week.no_release.at
    withdrawn = [
        {
            "revision": revision.key.revision,
            "withdrawn_at": revision.withdrawn.at,
            "reason": revision.withdrawn.public_note,
        }
        for revision in one.revisions
        if revision.withdrawn is not None
    ]
    return record | ({"withdrawn": withdrawn} if withdrawn else {})


def _table(one: SeriesTable) -> dict[str, Any]:
    """Return the schema versions of a table."""
    return {
        "name": one.name,
        "versions": [
            {
                "version": number,
                "path": f"series/{DATA}/{one.name}/v{number}",
                "columns": [{"name": name, "type": kind} for name, kind in (*LABELS, *columns)],
                "periods": [
                    revision.key.period for revision, version in one.parts if version == number
                ],
            }
            for number, columns in enumerate(one.versions, start=1)
        ],
    }


def _file(path: str, one: bytes | tuple[int, str]) -> dict[str, Any]:
    """Return path, size and digest of a file."""
    size, digest = (len(one), digest_of(one)) if isinstance(one, bytes) else one
    return {"path": path, "bytes": size, "sha256": digest}
