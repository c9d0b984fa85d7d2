"""A package of a few files, whole by its manifest: for tests of what carries packages about."""

from __future__ import annotations

import json
from pathlib import Path

from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes

KEY = "opal/2016-W30/r0"
_CARD = {
    "title": "Opal",
    "service_week": "2016-W30",
    "description": "Taps.",
    "licence": "CC-BY-4.0",
    "curator": "Authority",
    "service_days": ["2016-07-25", "2016-07-31"],
}


def write_package(folder: Path, *, text: str = "numbers") -> Path:
    """Write one, with a table of more than 500 bytes."""
    (folder / "tables").mkdir(parents=True)
    (folder / "release_card.json").write_text(json.dumps(_CARD))
    (folder / "README.md").write_text("read me\n")
    (folder / "SHA256SUMS").write_text(f"{text}\n")
    (folder / "tables/on_location.csv").write_text(f"{text}\n" * 100)
    (folder / MANIFEST).write_bytes(manifest_bytes(folder, key=KEY, sealed_digest="0" * 64))
    return folder
