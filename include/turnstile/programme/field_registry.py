"""The one registry of fields: every column of canonical rows and of published tables.

Columns of rows and labels stand in `fields`; columns of numbers, as drawn, presented, estimated and
with their errors, in `fields_of_numbers.csv`, and those of files in the shape of TIDES beside it.
Labelled tables, descriptors and the data dictionary read it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from turnstile.programme import fields
from turnstile.programme.field import Field, FieldType, Role


def _of(what: str) -> Iterator[Field]:
    """Read columns of published numbers from the table beside this module."""
    path = Path(__file__).with_name(f"fields_of_{what}.csv")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            said = (row["unit"], row["title"], row["description"])
            yield Field(row["name"], FieldType(row["type"]), *said, Role(row["role"]))


FIELDS: tuple[Field, ...] = (*fields.FIELDS, *_of("numbers"), *_of("tides"))
BY_NAME = {field.name: field for field in FIELDS}
_PATTERNS = [
    (re.compile(re.escape(field.name).replace(r"\{limit\}", r"(\d+)")), field)
    for field in FIELDS
    if "{limit}" in field.name
]


def field_of(name: str) -> Field | None:
    """Return the entry of a column; None for a column that has none.

    Examples:
        >>> field_of("over_40").title
        'Bus-days above {limit} km/h'
        >>> field_of("card") is None
        True
    """
    patterned = (field for pattern, field in _PATTERNS if pattern.fullmatch(name))
    return BY_NAME.get(name) or next(patterned, None)


def title_of(name: str) -> str:
    """Return the title of a column, with its own number; the name where it has no entry.

    Examples:
        >>> title_of("over_40")
        'Bus-days above 40 km/h'
    """
    field = field_of(name)
    limit = re.search(r"(?:over|class)_(\d+)", name)
    return name if field is None else field.title.replace("{limit}", limit[1] if limit else "")
