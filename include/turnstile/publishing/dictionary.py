"""The data dictionary: every column of every table, described once, in the field registry."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO

from turnstile.programme.fields import field_of, title_of

_HEADER = ("file", "column", "type", "unit", "role", "title", "description")


def described(name: str) -> tuple[str, ...]:
    """Return type, unit, role, title and description of a column; of one without an entry, blanks.

    Examples:
        >>> described("bus_days")[:3]
        ('integer', 'bus-days', 'presentation')
    """
    field = field_of(name)
    if field is None:
        return ("", "", "", name, "")
    return (field.type, field.unit, field.role, title_of(name), field.description)


def dictionary_csv(columns: Iterable[tuple[str, str]]) -> bytes:
    """Return the dictionary of a package.

    Args:
        columns: pairs (file without suffix, column), in order.
    """
    sink = StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_HEADER)
    for file, column in columns:
        writer.writerow((file, column, *described(column)))
    return sink.getvalue().encode()
