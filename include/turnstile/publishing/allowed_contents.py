"""What a package may hold: every file, column and field, each with its source.

A package is made from sealed noisy numbers, the plan, the ledger and synthetic data, so everything
in it has one of these sources. What has none here is not published, whoever wrote it, and
`turnstile assess` finds it in a package whose manifest agrees. A new field is one word in
`allowed_contents.txt`, a column one entry in `programme.fields`, a file one in `files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from turnstile.programme.field import PUBLIC_ROLES, Role


class Source(StrEnum):
    """Where a published value comes from."""

    NOISY_INTEGER = "noisy integer, as drawn"
    POST_PROCESSING = "made from noisy integers alone"
    DECLARED = "parameter that was declared before the data were read"
    LEDGER = "amount or digest of the ledger"
    SYNTHETIC = "synthetic units and made-up tables"
    CODE = "the code, the same in every package"


# Keys that stand for any unit, for any name that was declared, for whatever a record holds.
UNIT, NAME, ANYTHING = "{unit}", "{name}", "{anything}"
Fields = Mapping[str, Any]


def fields_from(text: str) -> dict[str, Any]:
    r"""Read fields by the file and the fields that they stand in, each with its source.

    Examples:
        >>> text = "plan.json: declared\n    week\nplan.json > events: ledger\n    scale"
        >>> fields_from(text)["plan.json"]["events"]["scale"].name
        'LEDGER'
    """
    by_file: dict[str, Any] = {}
    fields, source = by_file, Source.CODE
    for line in text.splitlines():
        if line.startswith(" "):
            fields.update(dict.fromkeys(line.split(), source))
        elif line and not line.startswith("#"):
            place, _, name = line.partition(": ")
            fields, source = by_file, Source[name.upper()]
            for part in place.split(" > "):
                fields = fields.setdefault(part, {})
    return by_file


_FIELDS = fields_from(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
SERIES: Fields = _FIELDS.pop("series/index.json")
SERIES_PACKAGES: Fields = _FIELDS.pop("series/packages.json")
TOMBSTONE: Fields = _FIELDS.pop("tombstone.json")
PAGES: Fields = _FIELDS.pop("pages")  # elements and attributes of pages and pictures
EXPLORER: Fields = _FIELDS.pop("explore/index.js")
# Beside those of the registry (`files`), which name their own sources.
OTHER_FILES: Mapping[str, Source] = {"assessment.html": Source.SYNTHETIC}
JSON_FILES: Mapping[str, Fields] = _FIELDS
FILES_OF_VERSION_1 = frozenset(_FIELDS.pop("files of version 1"))
# Folders of tables: `data` of version 2, the others of version 1 and under embargo.
TABLE_FOLDERS: Mapping[str, frozenset[Role]] = {
    "measurements": frozenset({Role.KEY, Role.GAP, Role.DIMENSION, Role.MEASUREMENT}),
    "tables": PUBLIC_ROLES,
    "estimates": PUBLIC_ROLES,
    "data": PUBLIC_ROLES,
}
# Whose versions a release card states.
LIBRARIES = ("turnstile", "opendp", "duckdb", "pyarrow", "h3", "numpy", "great-expectations")
METADATA = frozenset({b"ARROW:schema", b"turnstile.gaps"})
