"""Builds the open-data package of one release: tables, then every file of the registry.

Everything in it is public: made from sealed noisy numbers, the plan and the ledger's balances.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from turnstile.errors import IntegrityError
from turnstile.estimates.labelled import parquet_bytes
from turnstile.estimates.week_estimates import FOLDER, RECORD
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.publishing.card import release_card
from turnstile.publishing.contents import Contents
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes
from turnstile.publishing.describe.week_history import history
from turnstile.publishing.files import FILES
from turnstile.publishing.package_reader import DATA, Tables, csv_file
from turnstile.release.drawn import Drawn
from turnstile.release.zones import digest_of
from turnstile.service_calendar import parse_period

_AS_ASSESSED = ("plan.json", "assessment.json", "assessment.html")


def build_package(  # noqa: PLR0913 - the keyword-only rest is what the card and files are made from
    folder: Path,
    drawn: Drawn,
    *,
    ledger: Ledger,
    embargoed: Path,
    include: Path,
    built_at: datetime,
    public: Path | None = None,
) -> str:
    """Write the package into a new folder, which whoever shows it makes durable first.

    Returns:
        SHA-256 of the manifest.

    Args:
        folder: that does not exist yet.
        drawn: the sealed release.
        ledger: for balances, head and signature.
        embargoed: folder with the labelled tables and the gates' findings.
        include: folder of the public domain's files.
        built_at: instant for the record.
        public: the public zone, for what changed since.

    Raises:
        IntegrityError: a file, column or field has no source in the allow-list.
    """
    folder.mkdir(parents=True)
    data = _write_tables(Tables(embargoed), folder)
    for name in _AS_ASSESSED:
        shutil.copyfile(embargoed / name, folder / name)
    contents = Contents(
        folder=folder,
        drawn=drawn,
        card=release_card(drawn, ledger=ledger, built_at=built_at)
        | {"estimates": _estimates_record(embargoed), "data": data},
        include=include,
        built_at=built_at,
        earlier=None if public is None else _earlier(public, drawn.attempt.key, ledger),
        history=history(ledger, drawn.attempt.key, built_at),
        sign=ledger.sign_payload if ledger.has_key else None,
        proof=ledger.proof_of_seal(drawn.attempt.key),
    )
    for file in FILES:
        content = file.write(contents)
        if content is not None:
            (folder / file.path).parent.mkdir(exist_ok=True)
            (folder / file.path).write_bytes(content)
    manifest = manifest_bytes(
        folder, key=str(drawn.attempt.key), sealed_digest=str(drawn.attempt.artefact_digest)
    )
    (folder / MANIFEST).write_bytes(manifest)
    if unknown := unknown_contents(folder):
        raise IntegrityError(
            f"{drawn.attempt.key}: the package holds what nothing declares: "
            f"{'; '.join(unknown[:5])}; "
            "nothing was published; find out who wrote it (allowed_contents says what may be there)"
        )
    return digest_of(manifest)


def _estimates_record(embargoed: Path) -> dict[str, Any] | None:
    """Return what the estimates say of themselves; None if there are none."""
    path = embargoed / FOLDER / RECORD
    record: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
    return record


def _earlier(public: Path, key: ReleaseKey, ledger: Ledger) -> Path | None:
    """Return the package in force of the period just before one, if it is here."""
    week = ledger.weeks(key.programme).get(str(parse_period(key.period).plus(-1)))
    in_force = None if week is None else week.in_force
    package = None if in_force is None else public / str(in_force.key)
    return package if package is not None and package.is_dir() else None


def _write_tables(tables: Tables, package: Path) -> list[dict[str, Any]]:
    """Write each table as Parquet and CSV; return what the release card says of them."""
    (package / DATA).mkdir()
    for name in tables.layouts:
        rows = tables.rows(name)
        (package / DATA / f"{name}.parquet").write_bytes(parquet_bytes(rows))
        path, content = csv_file(f"{DATA}/{name}", rows)
        (package / path).write_bytes(content)
    return [layout.record() for layout in tables.layouts.values()]
