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
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from turnstile.arrow_columns import column, texts, vector
from turnstile.counting.engine import Connection, columns_of
from turnstile.counting.lowest import crowded, lowest

_BLOCK_BYTES = 64  # of SHA-256
_HALF_BITS = 32  # of a number: a unit's; the others are those of its cells
_UNIT = 2**64 - 2**_HALF_BITS
_ROWS_OF_PART = 32_000_000  # a number of eight bytes each; every part costs two scans of the rest


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
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {kept}_dropped (place BIGINT)")
    for part in _parts(connection, records, bounding.unit):
        suspects = _suspects(connection, f"{records}{part}", bounding)
        if not len(suspects):
            continue
        connection.register("suspects", pa.table([column(suspects)], ["prefix"]))
        suspect_rows = connection.sql(
            f"SELECT rowid AS place, {bounding.unit} AS unit, {', '.join(bounding.cell)} "  # noqa: S608 - names of ours
            f"FROM {records} SEMI JOIN suspects ON {_prefix(bounding.unit)} = prefix"
        ).to_arrow_table()
        connection.unregister("suspects")
        dropped = column(_dropped(connection, suspect_rows, bounding, scope))
        connection.register("dropped", pa.table([dropped], ["place"]))
        connection.execute(f"INSERT INTO {kept}_dropped FROM dropped")
        connection.unregister("dropped")
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {kept} AS SELECT * FROM {records} "  # noqa: S608 - names of ours
        f"ANTI JOIN {kept}_dropped ON {records}.rowid = place"
    )


def _parts(connection: Connection, records: str, unit: str) -> list[str]:
    """Return the conditions of parts of the records small enough for arrays; no unit is in two."""
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {records}").fetchall()  # noqa: S608 - names of ours
    parts = 1 + rows // _ROWS_OF_PART
    if parts == 1:
        return [""]
    return [f" WHERE hash({unit}) % {parts} = {part}" for part in range(parts)]


def _prefix(unit: str) -> str:
    """Return the SQL of a unit's first bits of a hash; all units that share them are looked at."""
    return f"(hash({unit}) >> {_HALF_BITS})"


def _suspects(connection: Connection, records: str, bounding: Bounding) -> NDArray[np.uint64]:
    """Return the prefixes of the units that may lose records, each once.

    A prefix and a hash of each limited cell in one number: sorted, the records of a unit stand side
    by side, at a fraction of the cost of a group-by of the engine. What is decided depends on no
    hash.
    """
    cell_bits = _HALF_BITS // max(1, len(bounding.limits))
    fields = [f"{_prefix(bounding.unit)} << {_HALF_BITS}"]
    fields += [
        f"hash({', '.join(limit.columns)}) >> {2 * _HALF_BITS - cell_bits} << {at * cell_bits}"
        for at, limit in enumerate(bounding.limits)
    ]
    query = f"SELECT ({') | ('.join(fields)}) AS record FROM {records}"  # noqa: S608 - names of ours
    ordered = columns_of(connection, query)["record"]
    ordered.sort()  # in place: they are all rows of a part
    limits = [
        (_UNIT | (2**cell_bits - 1) << at * cell_bits, limit.at_most)
        for at, limit in enumerate(bounding.limits)
    ]
    is_crowded = crowded(ordered, _UNIT, limits, bounding.at_most)
    suspects = ordered[is_crowded] >> np.uint64(_HALF_BITS)
    is_first = np.diff(suspects, prepend=~suspects[:1]) != 0  # `np.unique` is far slower
    return np.asarray(suspects[is_first], dtype=np.uint64)


def _dropped(
    connection: Connection, rows: pa.Table, bounding: Bounding, scope: str
) -> NDArray[np.int64]:
    """Return the places of the records of suspects that do not count."""
    units = vector(pa.chunked_array([rows["unit"].combine_chunks().dictionary_encode().indices]))
    limits = [
        ([vector(rows[axis]) for axis in limit.columns], limit.at_most) for limit in bounding.limits
    ]
    order = _hash_order(connection, rows, bounding.cell, scope)
    is_dropped = np.ones(len(units), dtype=np.bool_)
    is_dropped[lowest(units, order, limits, bounding.at_most)] = False
    return np.asarray(vector(rows["place"])[is_dropped], dtype=np.int64)


def _hash_order(
    connection: Connection, rows: pa.Table, cell: tuple[str, ...], scope: str
) -> NDArray[np.uint64]:
    """Return the first 64 bits of HMAC-SHA256 of each record's message, shape (n,).

    A message is scope, cell and id, with bars between: the id, which may hold bars, comes last, so
    no two records share one. In a week's millions, two records of a unit agree in the bits never.
    """
    parts = [_as_texts(vector(rows[axis])) for axis in cell]
    of_scope, between = texts([scope, "|"])
    messages = pc.binary_join_element_wise(of_scope, *parts, rows["unit"], between)
    ((inner_pad, outer_pad),) = connection.execute("FROM bounding_key").fetchall()
    inner, outer = hashlib.sha256(inner_pad), hashlib.sha256(outer_pad)
    hashes = bytearray()
    for message_bytes in messages.cast(pa.binary()).to_pylist():
        first, second = inner.copy(), outer.copy()  # both have read their key
        first.update(message_bytes)
        second.update(first.digest())
        hashes += second.digest()[:8]
    return np.frombuffer(hashes, dtype=">u8").astype(np.uint64)


def _as_texts(numbers: NDArray[np.int32]) -> pa.Array:
    """Return indices of a public axis as texts: each number is written once."""
    least, most = int(numbers.min()), int(numbers.max())
    return texts([str(number) for number in range(least, most + 1)]).take(column(numbers - least))
