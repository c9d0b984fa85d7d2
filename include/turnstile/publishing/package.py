"""Builds the open-data package of one release: tables, data package, release card, manifest.

Everything in it is public: made from sealed noisy numbers, the plan and the ledger's balances.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from turnstile.errors import IntegrityError
from turnstile.estimates.labelled import csv_bytes
from turnstile.estimates.week_estimates import FOLDER, RECORD
from turnstile.ledger.ledger import Ledger
from turnstile.publishing.card import card_markdown, release_card
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.datapackage import datapackage
from turnstile.publishing.manifest import MANIFEST, manifest_bytes
from turnstile.release.drawn import Drawn
from turnstile.release.zones import write_atomically

_FOLDERS = ("estimates", "tables", "measurements")


def build_package(
    folder: Path, drawn: Drawn, *, ledger: Ledger, embargoed: Path, built_at: datetime
) -> None:
    """Write the package into a new folder.

    Args:
        folder: that does not exist yet.
        drawn: the sealed release.
        ledger: for balances and head.
        embargoed: folder with the labelled tables and the gates' findings.
        built_at: instant for the record.

    Raises:
        IntegrityError: a file, column or field has no source in the allow-list.
    """
    folder.mkdir(parents=True)
    for name in _FOLDERS:
        if not any((embargoed / name).glob("*.parquet")):
            continue  # no estimates of a thresholded programme
        (folder / name).mkdir()
        for source in sorted((embargoed / name).glob("*.parquet")):
            shutil.copyfile(source, folder / name / source.name)
            content = csv_bytes(pq.read_table(source))
            write_atomically(folder / name / f"{source.stem}.csv", content)
    for name in ("plan.json", "assessment.json", "assessment.html"):
        shutil.copyfile(embargoed / name, folder / name)
    card = release_card(drawn, ledger=ledger, built_at=built_at)
    card["estimates"] = _estimates_record(embargoed)
    _write_json(folder / "release_card.json", card)
    write_atomically(folder / "release_card.md", card_markdown(card).encode())
    _write_json(
        folder / "datapackage.json", datapackage(folder, drawn.programme, drawn.plan, built_at)
    )
    manifest = manifest_bytes(
        folder, key=str(drawn.attempt.key), sealed_digest=str(drawn.attempt.artefact_digest)
    )
    write_atomically(folder / MANIFEST, manifest)
    if unknown := unknown_contents(folder):
        raise IntegrityError(
            f"{drawn.attempt.key}: the package holds what nothing declares: "
            f"{'; '.join(unknown[:5])}; "
            "nothing was published; find out who wrote it (allowed_contents says what may be there)"
        )


def _estimates_record(embargoed: Path) -> dict[str, Any] | None:
    """Return what the estimates say of themselves; None if there are none."""
    path = embargoed / FOLDER / RECORD
    found: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
    return found


def _write_json(path: Path, content: dict[str, object] | Sequence[object]) -> None:
    """Write plain values as JSON."""
    write_atomically(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())
