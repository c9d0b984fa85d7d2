"""The one registry of fields: every column of canonical rows and of published tables.

Plain data. Labelled tables, descriptors and the data dictionary read it.
"""

from __future__ import annotations

import re

from turnstile.programme import fields
from turnstile.programme.field import Field
from turnstile.programme.fields_of_numbers import NUMBERS
from turnstile.programme.fields_of_tides import TIDES

FIELDS: tuple[Field, ...] = (*fields.FIELDS, *NUMBERS, *TIDES)
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
