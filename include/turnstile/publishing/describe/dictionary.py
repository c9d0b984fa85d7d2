"""The data dictionary: every column of every table, described once, in the field registry."""

from __future__ import annotations

import csv
from io import StringIO

from turnstile.programme.field_registry import field_of, title_of
from turnstile.publishing.contents import Contents
from turnstile.publishing.week.tides_shapes import column_of_shape, shapes_of

_HEADER = ("file", "column", "type", "unit", "role", "title", "description")


def described(name: str) -> tuple[str, ...]:
    """Return type, unit, role, title and description of a column; of one without an entry, blanks.

    Examples:
        >>> [str(part) for part in described("bus_days")[:3]]
        ['integer', 'bus-days', 'presentation']
    """
    field = field_of(name)
    if field is None:
        return ("", "", "", name, "")
    return (field.type, field.unit, field.role, title_of(name), field.description)


def write(contents: Contents) -> bytes:
    """Return the dictionary of a package: one line a column of a table."""
    sink = StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_HEADER)
    for table in contents.tables:
        for column, _ in table.columns:
            writer.writerow((table.stem, column, *described(column)))
    for path, columns in shapes_of(contents.drawn.programme).items():
        for field in map(column_of_shape, columns):
            about = (field.type, field.unit, field.role, field.title, field.description)
            writer.writerow((path.removesuffix(".csv"), field.name, *about))
    return sink.getvalue().encode()
