"""Contribution bounding: a unit above its bound keeps records that only it and the key decide.

PRIVACY 4.2: the records of one unit (a card-day, a bus-day) are ordered by HMAC-SHA256 under the
release secret (RFC 2104) of unit and cell, and the first `at_most` are kept. The choice is a
function of the unit's own records and the key, which is all that the sensitivity argument needs;
the key makes it unforeseeable for somebody who plants records, and the same on every retry. Only
units above the bound are ranked: they are few, and a window over all rows costs ten times the
memory.
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
    """

    unit: str
    cell: tuple[str, ...]
    at_most: int


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

    Args:
        connection: engine.
        records: temporary table of one service day; all its columns are kept.
        kept: name of the view to make.
        bounding: what is bounded.
        day: service day, part of the unit.
    """
    unit, cells = bounding.unit, ", ".join(bounding.cell)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_over AS SELECT {unit} FROM {records} "  # noqa: S608 - names of ours
        f"GROUP BY {unit} HAVING count(*) > {bounding.at_most}"
    )
    # The rank is a table, not a view: it would be computed anew for every reader.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_ranked AS "  # noqa: S608 - names of ours
        f"SELECT * FROM (SELECT {records}.*, row_number() OVER "
        f"(PARTITION BY {unit} ORDER BY {_hmac(bounding.cell, unit, day)}, {cells}) AS place "
        f"FROM {records} SEMI JOIN {kept}_over USING ({unit}), bounding_key) "
        f"WHERE place <= {bounding.at_most}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {kept} AS "  # noqa: S608 - names of ours
        f"SELECT * FROM {records} ANTI JOIN {kept}_over USING ({unit}) "
        f"UNION ALL SELECT * EXCLUDE (place) FROM {kept}_ranked"
    )


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
