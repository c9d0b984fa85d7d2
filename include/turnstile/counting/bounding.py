"""Contribution bounding: a unit above its bound keeps records that only it and the key decide.

PRIVACY 4.2: the records of one unit (a card-day, a bus-day) are ordered by HMAC-SHA256 under the
release secret (RFC 2104) of unit and cell, and the first `at_most` are kept. The choice is a
function of the unit's own records and the key, which is all that the sensitivity argument needs;
the key makes it unforeseeable for somebody who plants records, and the same on every retry. Only
units above the bound are ranked: they are few, and a window over all rows costs ten times the
memory.

Where a unit counts once in each cell (PRIVACY 4.5), a record counts only if it is the lowest, in
the same order, among all records of its unit that share a cell of any table with it; of those that
are left, the first `at_most` are kept. So no two kept records share a cell of any table, and all
tables count the same records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from turnstile.counting.engine import Connection

_BLOCK_BYTES = 64  # of SHA-256


@dataclass(frozen=True, slots=True)
class Bounding:
    """What is bounded, in the names of a relation of one service day.

    Args:
        unit: column with the id of the card or vehicle; never NULL.
        cell: integer columns that say in which cell a record lies; never NULL.
        at_most: records of one unit and day that are kept, >= 1.
        apart: groups of columns; no two kept records of a unit agree on all columns of a group.
    """

    unit: str
    cell: tuple[str, ...]
    at_most: int
    apart: tuple[tuple[str, ...], ...] = ()


def install_key(connection: Connection, secret: bytes) -> None:
    """Put the padded key of HMAC-SHA256 into the engine, as a table and not as query text.

    Args:
        connection: engine.
        secret: release secret, any length.
    """
    key = hashlib.sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret
    padded = key.ljust(_BLOCK_BYTES, b"\0")
    inner = bytes(byte ^ 0x36 for byte in padded)
    outer = bytes(byte ^ 0x5C for byte in padded)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE bounding_key AS SELECT ?::BLOB AS inner_pad, "
        "?::BLOB AS outer_pad",
        [inner, outer],
    )


def keep_at_most(
    connection: Connection, records: str, kept: str, *, bounding: Bounding, day: date
) -> None:
    """Make a relation of the records that count; call `install_key` first.

    Records of a unit that share a cell are alike for every table, so ties need no further order.
    Where records are kept apart, equal ones are taken for one: no other column may differ in them.

    Args:
        connection: engine.
        records: temporary table of one service day; all its columns are kept.
        kept: name of the view to make.
        bounding: what is bounded.
        day: service day, part of the unit.
    """
    unit, cells = bounding.unit, ", ".join(bounding.cell)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {kept}_over AS {_over(records, bounding)}")
    # The rank is a table, not a view: it would be computed anew for every reader.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_ranked AS WITH hashed AS MATERIALIZED ("  # noqa: S608 - names of ours
        f"SELECT {'DISTINCT' if bounding.apart else ''} {records}.*, "
        f"{_hmac(bounding.cell, unit, day)} AS hmac "
        f"FROM {records} SEMI JOIN {kept}_over USING ({unit}), bounding_key"
        f"), alone AS (SELECT * FROM hashed {_lowest_of_each(bounding)}) "
        f"SELECT * EXCLUDE (hmac) FROM alone QUALIFY row_number() OVER "
        f"(PARTITION BY {unit} ORDER BY hmac, {cells}) <= {bounding.at_most}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {kept} AS "  # noqa: S608 - names of ours
        f"SELECT * FROM {records} ANTI JOIN {kept}_over USING ({unit}) "
        f"UNION ALL SELECT * FROM {kept}_ranked"
    )


def _over(records: str, bounding: Bounding) -> str:
    """Return the SQL of the units that lose records: too many, or two in one cell."""
    unit = bounding.unit
    found = [f"SELECT {unit} FROM {records} GROUP BY {unit} HAVING count(*) > {bounding.at_most}"]  # noqa: S608 - names of ours
    for group in bounding.apart:
        columns = ", ".join((unit, *group))
        found.append(f"SELECT {unit} FROM {records} GROUP BY {columns} HAVING count(*) > 1")  # noqa: S608 - names of ours
    return " UNION ".join(found)


def _lowest_of_each(bounding: Bounding) -> str:
    """Return the SQL that keeps what is first among all records that share a group with it."""
    cells = ", ".join(bounding.cell)
    rules = [
        f"row_number() OVER (PARTITION BY {', '.join((bounding.unit, *group))} "
        f"ORDER BY hmac, {cells}) = 1"
        for group in bounding.apart
    ]
    return f"QUALIFY {' AND '.join(rules)}" if rules else ""


def message(day: date, cell: Sequence[int], unit: str) -> bytes:
    """Return what is hashed for a record; the id comes last, so no two records share a message.

    Examples:
        >>> message(date(2016, 7, 25), (1, 36), "card")
        b'2016-07-25|1|36|card'
    """
    return "|".join((day.isoformat(), *(str(number) for number in cell), unit)).encode()


def _hmac(cell: tuple[str, ...], unit: str, day: date) -> str:
    """Return the SQL of HMAC-SHA256 of `message`."""
    parts = ", ".join((f"'{day.isoformat()}'", *cell, unit))
    inner = f"sha256(inner_pad || encode(concat_ws('|', {parts})))"
    return f"sha256(outer_pad || unhex({inner}))"
