"""Contribution bounding: a unit above its bound keeps records that only it and the key decide.

PRIVACY 4.2: the records of one unit (a card-day, a card-week, a bus-day) are ordered by HMAC-SHA256
under the release secret (RFC 2104) of unit and cell, and the first `at_most` are kept. The choice
is a function of the unit's own records and the key, which is all that the sensitivity argument
needs; the key makes it unforeseeable for somebody who plants records, and the same on every retry.
Only units above the bound are ranked: they are few.

Where only so many records of a unit may share a cell (PRIVACY 4.5), a record counts only if it is
among the lowest so many, in the same order, of all records of its unit in that cell, for every such
limit; of those that are left, the first `at_most` are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from turnstile.counting.engine import Connection, columns_of
from turnstile.counting.lowest import lowest

_BLOCK_BYTES = 64  # of SHA-256


@dataclass(frozen=True, slots=True)
class Limit:
    """How many records of a unit may agree on some columns; equal records never both count at 1."""

    columns: tuple[str, ...]
    at_most: int


@dataclass(frozen=True, slots=True)
class Bounding:
    """What is bounded, in the names of a relation.

    Args:
        unit: column with the id of the card or vehicle; never NULL.
        cell: integer columns that say in which cell a record lies; never NULL.
        at_most: records of one unit that are kept, >= 1.
        limits: on the kept records of a unit that agree on some columns.
    """

    unit: str
    cell: tuple[str, ...]
    at_most: int
    limits: tuple[Limit, ...] = ()

    @property
    def groups(self) -> tuple[tuple[tuple[str, ...], int], ...]:
        """Columns that records of a unit may share, and how many: none is the unit as a whole."""
        return (((), self.at_most), *((limit.columns, limit.at_most) for limit in self.limits))


def install_key(connection: Connection, secret: bytes) -> None:
    """Put the padded key of HMAC-SHA256 into the engine, as a table and not as query text.

    Args:
        connection: engine.
        secret: release secret, any length.
    """
    inner, outer = padded_keys(secret)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE bounding_key AS SELECT ?::BLOB AS inner_pad, "
        "?::BLOB AS outer_pad",
        [inner, outer],
    )


def padded_keys(secret: bytes) -> tuple[bytes, bytes]:
    """Return the inner and the outer key of HMAC-SHA256, 64 bytes each."""
    key = hashlib.sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret
    padded = key.ljust(_BLOCK_BYTES, b"\0")
    return bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded)


def keep_at_most(
    connection: Connection, records: str, kept: str, *, bounding: Bounding, scope: str
) -> None:
    """Make a relation of the records that count; call `install_key` first.

    Records of a unit that share a cell are alike for every table, so ties need no further order.

    Args:
        connection: engine.
        records: temporary table of one scope; all its columns are kept.
        kept: name of the view to make.
        bounding: what is bounded.
        scope: service day or week, part of the unit.
    """
    unit = bounding.unit
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_suspect AS {_suspects(records, bounding)}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_few AS SELECT {records}.* FROM {records} "  # noqa: S608 - names of ours
        f"SEMI JOIN {kept}_suspect ON hash({unit}) = unit_hash"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_over AS {_over(f'{kept}_few', bounding)}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_hashed AS WITH units AS ("  # noqa: S608 - names of ours
        f"SELECT {unit}, row_number() OVER () AS unit_number FROM {kept}_few "
        f"SEMI JOIN {kept}_over ON hash({unit}) = unit_hash GROUP BY {unit}) "
        f"SELECT few.*, unit_number, {hmac_sql(bounding.cell, unit, scope)} AS hmac "
        f"FROM {kept}_few AS few JOIN units USING ({unit}), bounding_key"
    )
    connection.register(f"{kept}_lowest", _lowest(connection, f"{kept}_hashed", bounding))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {kept}_ranked AS "  # noqa: S608 - names of ours
        f"SELECT * EXCLUDE (unit_number, hmac) FROM {kept}_hashed "
        f"WHERE rowid IN (SELECT place FROM {kept}_lowest)"
    )
    connection.unregister(f"{kept}_lowest")
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {kept} AS "  # noqa: S608 - names of ours
        f"SELECT * FROM {records} ANTI JOIN {kept}_over ON hash({unit}) = unit_hash "
        f"UNION ALL SELECT * FROM {kept}_ranked"
    )


def _suspects(records: str, bounding: Bounding) -> str:
    """Return the SQL of the units that may lose records, by a hash of theirs, in one pass.

    Numbers are grouped in a fraction of the time of texts. Two units that share a hash are both
    looked at, and so is a unit whose cells share a bit of a mask (of n records with more than k in
    one cell at most n - k bits are set): what is decided depends on neither.
    """
    unit = bounding.unit
    conditions = [f"count(*) > {bounding.at_most}"]
    conditions += [
        f"bit_count(bit_or(1::UBIGINT << (hash({', '.join(limit.columns)}) & 63))) "
        f"<= count(*) - {limit.at_most}"
        for limit in bounding.limits
    ]
    return (
        f"SELECT hash({unit}) AS unit_hash FROM {records} GROUP BY ALL "  # noqa: S608 - names of ours
        f"HAVING {' OR '.join(conditions)}"
    )


def _over(records: str, bounding: Bounding) -> str:
    """Return the SQL of the units that lose records, by their hash: too many, or in one cell."""
    unit = bounding.unit
    return " UNION ".join(
        f"SELECT unit_hash FROM (SELECT hash({unit}) AS unit_hash, {unit}, count(*) AS held "  # noqa: S608 - names of ours
        f"FROM {records} GROUP BY {', '.join((unit, *columns))}) WHERE held > {at_most}"
        for columns, at_most in bounding.groups
    )


def _lowest(connection: Connection, hashed: str, bounding: Bounding) -> pa.Table:
    """Return the rows of `hashed` that count, as a table of one column, `place`."""
    columns = sorted({column for limit in bounding.limits for column in limit.columns})
    found = columns_of(
        connection,
        # 64 bits of it: in a week's millions, two records of a unit agree in them never
        "SELECT rowid AS place, unit_number, ('0x' || substr(hmac, 1, 16))::UBIGINT AS hmac"  # noqa: S608 - names of ours
        f"{''.join(f', {column}' for column in columns)} FROM {hashed}",
    )
    limits = [([found[one] for one in limit.columns], limit.at_most) for limit in bounding.limits]
    chosen = lowest(found["unit_number"], found["hmac"], limits, bounding.at_most)
    return pa.table({"place": found["place"][chosen]})


def message(scope: str, cell: Sequence[int], unit: str) -> bytes:
    """Return what is hashed for a record; the id comes last, so no two records share a message.

    Examples:
        >>> message("2016-07-25", (1, 36), "card")
        b'2016-07-25|1|36|card'
    """
    return "|".join((scope, *(str(number) for number in cell), unit)).encode()


def hmac_sql(cell: tuple[str, ...], unit: str, scope: str) -> str:
    """Return the SQL of HMAC-SHA256 of `message`, in hex, beside a row of `bounding_key`."""
    parts = ", ".join((f"'{scope}'", *cell, unit))
    inner = f"sha256(inner_pad || encode(concat_ws('|', {parts})))"
    return f"sha256(outer_pad || unhex({inner}))"
