"""`series/packages.json`: what the series takes from each package, read from it once.

A published package never changes, so its schemas, gaps and totals are kept beside the index by the
digest of its manifest: a publication reads one package and not all that came before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from turnstile.errors import IntegrityError
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import PublishedRevision
from turnstile.publishing.describe.manifest import MANIFEST
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.series.dataset import Schema, schemas_of
from turnstile.publishing.series.totals import totals_of
from turnstile.release.zones import digest_of

PACKAGES = "series/packages.json"
_OLD_WORD = "bus-days"  # of totals that add up slots; a package kept with it is read again


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """What the series takes from one package.

    Args:
        version: of the package.
        schemas: of each table, by name.
        gaps: service days without input.
        totals: of its period, by mode (`totals_of`).
    """

    version: int
    schemas: Mapping[str, Schema]
    gaps: tuple[str, ...]
    totals: tuple[Mapping[str, object], ...]


def is_here(published: PublishedRevision, public: Path) -> bool:
    """Return whether the package of a published revision stands in the public zone.

    Raises:
        IntegrityError: another package stands there.
    """
    manifest = public / str(published.key) / MANIFEST
    if not manifest.is_file():
        return False
    if digest_of(manifest.read_bytes()) != published.manifest_sha256:
        raise IntegrityError(
            f"{published.key}: the package in the public zone is not the one that the ledger "
            "names; move it out of the public zone, then run the step publish again"
        )
    return True


def facts_of(
    revisions: Sequence[PublishedRevision], public: Path, kept: bytes | None
) -> dict[ReleaseKey, PackageFacts]:
    """Return the facts of each package.

    Args:
        revisions: whose packages are in the public zone, as the ledger names them.
        public: zone of published packages.
        kept: the file that the last publication left, as the last index names it.
    """
    known = json.loads(kept) if kept else {"packages": {}}
    facts = {}
    for revision in revisions:
        record = known["packages"].get(str(revision.key))
        is_kept = record is not None and "version" in record  # of this form
        is_kept = is_kept and all(total["what"] != _OLD_WORD for total in record["totals"])
        if is_kept and record["manifest_sha256"] == revision.manifest_sha256:
            facts[revision.key] = _facts(record, known["schemas"])
        else:
            package = Tables(public / str(revision.key))
            totals, gaps = totals_of(package, revision.key.period), package.card["gaps"]
            facts[revision.key] = PackageFacts(
                package.version, schemas_of(package), tuple(gaps), tuple(totals)
            )
    return facts


def _facts(record: Mapping[str, Any], schemas: Sequence[Any]) -> PackageFacts:
    """Return what is kept of a package; tables name their schemas by their place in the list."""
    tables = {
        name: Schema(*(tuple(map(tuple, schemas[place][of])) for of in ("columns", "terms")))
        for name, place in record["tables"].items()
    }
    return PackageFacts(record["version"], tables, tuple(record["gaps"]), tuple(record["totals"]))


def kept_facts(
    revisions: Sequence[PublishedRevision], facts: Mapping[ReleaseKey, PackageFacts]
) -> dict[str, Any]:
    """Return the facts as plain values for JSON, each schema once."""
    places: dict[Schema, int] = {}
    packages = {
        str(revision.key): {
            "manifest_sha256": revision.manifest_sha256,
            "version": facts[revision.key].version,  # the version before passes over this key
            "tables": {
                name: places.setdefault(schema, len(places))
                for name, schema in sorted(facts[revision.key].schemas.items())
            },
            "gaps": list(facts[revision.key].gaps),
            "totals": list(facts[revision.key].totals),
        }
        for revision in revisions
    }
    return {"schemas": [asdict(schema) for schema in places], "packages": packages}
