"""Parquet and Arrow: a cell that the engine cannot read costs its own record, and nobody else's."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested_weeks import texts
from pyarrow import feather

from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.sources.ingest import typed_cells
from turnstile.sources.ingest.landing import FileForm, RawFile
from turnstile.sources.ingest.lines import UNREADABLE
from turnstile.sources.ingest.reading import open_source
from turnstile.sources.ingest.snapshot import counts_of
from turnstile.sources.ingest.typed_cells import as_readable, write_readable

WEEK, SECONDS = "2016-W30", 1_469_413_800  # 2016-07-25 02:30 UTC
READ, OTHER = "vehicle_id, latitude", [("other", 21.25)]
LARGEST = 2**63 - 1
Columns = dict[str, Any]


def instants(unit: str, zone: str | None, units: int, hostile: int) -> Columns:
    kind = pa.timestamp(unit, zone)
    return {"observationDateTime": pa.array([SECONDS * units, hostile], kind)}


def words(*values: bytes) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), texts(*values))


HOSTILE: dict[str, Columns] = {
    "an id that is no UTF-8": {"license_plate": texts(b"other", b"\xff\xfe")},
    "an id of a dictionary": {"license_plate": words(b"other", b"\xff\xfe")},
    "a time that is no UTF-8": {
        "observationDateTime": texts(b"2016-07-25T02:30:00Z", b"2016\xff"),
    },
    "milliseconds": instants("ms", "UTC", 10**3, -LARGEST - 1),
    "most milliseconds": instants("ms", "UTC", 10**3, LARGEST),
    "microseconds": instants("us", None, 10**6, -LARGEST - 1),
    "nanoseconds": instants("ns", "UTC", 10**9, -LARGEST - 1),
    "milliseconds that nobody reads": {
        "license_plate": ["other", ""],
        "more": pa.array([0, -LARGEST - 1], pa.timestamp("ms")),
    },
    "a text that nobody reads": {"license_plate": ["other", ""], "more": texts(b"", b"\xff")},
    "a place within": {
        "location": pa.StructArray.from_arrays(
            [texts(b"[72.75, 21.25]", b"\xff"), pa.array(["x", None])], ["coordinates", "type"]
        )
    },
    "words of a place": {
        "location": pa.StructArray.from_arrays(
            [words(b"[72.75, 21.25]", b"\xff"), pa.array(["x", None])], ["coordinates", "type"]
        )
    },
    "a long view of a text": {
        "license_plate": pa.array([b"other", b"\xff" * 20], pa.binary_view()).view(pa.string_view())
    },
}
UNREAD = {"license_plate": ["other", ""]}
PLACE = b'{"coordinates": [72.75, 21.25]}'


def names_of_place(kind: Any) -> Columns:
    """A place that has, beside its coordinates, a list of two texts, one of them no UTF-8."""
    words = texts(b"a", b"b", b"c", b"\xff")
    both = pa.FixedSizeListArray.from_arrays(words, 2).cast(kind)
    pairs = pa.array([[72.75, 21.25]] * 2)
    return UNREAD | {
        "location": pa.StructArray.from_arrays([pairs, both], ["coordinates", "names"])
    }


def json_of(*values: bytes) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(), texts(*values))


BEYOND = pa.array([0, -LARGEST - 1], pa.timestamp("ms"))
HOSTILE |= {
    "a list of texts": names_of_place(pa.list_(pa.string())),
    "a long list of texts": names_of_place(pa.large_list(pa.string())),
    "pairs of texts": names_of_place(pa.list_(pa.string(), 2)),
    "a list of instants that nobody reads": UNREAD
    | {"more": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), BEYOND)},
    "a map of instants that nobody reads": UNREAD
    | {"more": pa.MapArray.from_arrays([0, 1, 2], pa.array(["a", "b"]), BEYOND)},
    "a list of records that nobody reads": UNREAD
    | {"more": pa.array([[{"at": 0}], [{"at": -LARGEST - 1}]],
                        pa.list_(pa.struct([("at", pa.timestamp("ms"))])))},
    "no JSON": {"location": json_of(PLACE, b"{")},
    "JSON of no character": {"location": json_of(PLACE, b"")},
    "JSON with half a character": {"location": json_of(PLACE, rb'"\ud83d"')},
    "JSON that is no UTF-8": {"location": json_of(PLACE, b'"\xff"')},
    "a number of JSON": {"speed": json_of(b"10.0", b"10,0")},
}  # fmt: skip
OF_ARROW = {
    "seconds": instants("s", "UTC", 1, LARGEST),
    "fewest seconds": instants("s", "UTC", 1, -LARGEST - 1),
    "seconds that nobody reads": {
        "license_plate": ["other", ""],
        "more": pa.array([0, LARGEST], pa.timestamp("s")),
    },
}


def table_of(hostile: Columns) -> pa.Table:
    """Two records, one of which has a hostile cell."""
    columns: Columns = {
        "license_plate": ["other", "unit"],
        "observationDateTime": ["2016-07-25T02:30:00Z"] * 2,
        "speed": [10.0, 10.0],
        "latitude": [21.25, 21.25],
        "longitude": [72.75, 72.75],
    }
    if "location" in hostile:
        del columns["latitude"], columns["longitude"]
    return pa.table(columns | hostile)


def parquet(table: pa.Table) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def required(table: pa.Table) -> pa.Table:
    """The same, of columns that promise a value in each row."""
    return table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))


def arrow(table: pa.Table) -> bytes:
    written = io.BytesIO()
    feather.write_feather(table, written, compression="uncompressed")
    return written.getvalue()


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("a.parquet", case) for case in HOSTILE),
        *(("a.feather", case) for case in (*HOSTILE, *OF_ARROW)),
    ],
)
def test_a_cell_that_cannot_be_read_costs_its_own_record(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, name: str, case: str
) -> None:
    table = table_of((HOSTILE | OF_ARROW)[case])
    zones.deliver(WEEK, {name: parquet(table) if name == "a.parquet" else arrow(table)})
    snapshot = zones.ingest(programme_of("itms", feed=Feed.ITMS), WEEK)
    assert rows_of(snapshot, READ) == OTHER
    counts = counts_of(snapshot)
    assert (counts["rows_in"], counts["rows_out"]) == (2, 1)


@pytest.mark.parametrize(
    "content",
    [b"ARROW1 is what it says", arrow(table_of({}))[:-9]],
    ids=["no Arrow", "cut off"],
)
def test_damaged_arrow_is_refused_without_any_of_its_content(
    zones: Any, programme_of: Callable[..., Programme], content: bytes
) -> None:
    zones.deliver(WEEK, {"a.arrow": content})
    with pytest.raises(InputError, match=r"a\.arrow: file: cut off or damaged"):
        zones.ingest(programme_of("itms", feed=Feed.ITMS), WEEK)


KINDS = """'x' AS a, uuid() AS b, 1::UTINYINT AS c, 2::UBIGINT AS d, 3::HUGEINT AS e,
    1.5::DECIMAL(10, 3) AS f, 1.5::FLOAT AS g, DATE '2016-07-25' AS h, TIME '08:00:00.5' AS i,
    TIMESTAMP '2016-07-25 08:00:00.25' AS j, TIMESTAMPTZ '2016-07-25 08:00:00+00' AS k,
    TIMESTAMP_NS '2016-07-25 08:00:00.123456789' AS l, TIMESTAMP_MS '2016-07-25 08:00:00' AS m,
    {'id': '7', 'at': TIMESTAMP '2016-07-25 08:00:00'} AS n, [1.5, 2.5] AS o, true AS p,
    'abc'::BLOB AS q, NULL AS r, '{"a": [1]}'::JSON AS s, ['x', NULL] AS t, MAP {'a': 1.5} AS u,
    [{'id': '7', 'at': TIMESTAMP '2016-07-25 08:00:00'}] AS v, {'a': '{"a": 1}'::JSON} AS w"""


def test_a_copy_says_what_the_file_says(tmp_path: Path) -> None:
    """Whether a file is copied is decided by a hostile cell, and changes nobody else's."""
    file, copy = tmp_path / "a.parquet", tmp_path / "b.parquet"
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"COPY (SELECT {KINDS} FROM range(3)) TO '{file}' (FORMAT parquet)")
    with pq.ParquetFile(file) as delivered:
        write_readable(delivered.schema_arrow, delivered.iter_batches(), copy)
    for asked in ("DESCRIBE FROM", "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM"):
        of_file, of_copy = (
            connection.execute(f"{asked} '{path}'").fetchall() for path in (file, copy)
        )
        assert of_copy == of_file
    assert as_readable(file, tmp_path / "c.parquet", ("a", "j", "n")) == file


@pytest.mark.parametrize(("unit", "per"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_a_day_ends_at_24_hours(tmp_path: Path, unit: str, per: int) -> None:
    file, copy = tmp_path / "a.parquet", tmp_path / "b.parquet"
    of = pa.time32(unit) if unit == "ms" else pa.time64(unit)
    pq.write_table(pa.table({"clock": pa.array([86_400 * per], of)}), file)
    assert as_readable(file, copy, ("clock",)) == file
    assert duckdb.sql(f"SELECT CAST(clock AS VARCHAR) FROM '{file}'").fetchall() == [("24:00:00",)]
    pq.write_table(pa.table({"clock": pa.array([86_400 * per + 1], of)}), file)
    assert as_readable(file, copy, ("clock",)) == copy


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_a_cell_is_empty_where_the_file_promises_a_value(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, name: str
) -> None:
    table = required(table_of(instants("ms", "UTC", 10**3, -LARGEST - 1)))
    zones.deliver(WEEK, {name: parquet(table) if name == "a.parquet" else arrow(table)})
    snapshot = zones.ingest(programme_of("itms", feed=Feed.ITMS), WEEK)
    assert rows_of(snapshot, READ) == OTHER


def test_a_copy_has_the_instants_that_the_engine_reads_of_twelve_bytes(tmp_path: Path) -> None:
    """INT96, of Spark and Hive: nanoseconds, of which the engine reads microseconds."""
    file = tmp_path / "a.parquet"
    for id_ in (b"a", b"\xff"):
        instant = pa.array([SECONDS * 10**9 + 999], pa.timestamp("ns"))
        table = pa.table({"instant": instant, "id": texts(id_)})
        pq.write_table(table, file, use_deprecated_int96_timestamps=True)
        read = as_readable(file, tmp_path / "b.parquet", ("instant", "id"))
        said = duckdb.sql(f"SELECT CAST(instant AS VARCHAR) FROM '{read}'").fetchall()
        assert said == [("2016-07-25 02:30:00",)]
    assert read != file


# TIMESTAMP, of UTC, in microseconds; an element without it has the type of old writers alone.
NEW_TYPE = b"\x4c\x8c\x11\x1c\x2c\x00\x00\x00\x00"


@pytest.mark.parametrize("within", ["a column", "a struct"])
@pytest.mark.parametrize("kind", ["a time of UTC", "an instant of an old writer"])
def test_a_copy_that_has_another_type_is_read_as_the_file_says(
    tmp_path: Path, kind: str, within: str
) -> None:
    """One unit's text would move everybody's clock from the zone of a programme to UTC."""
    file = tmp_path / "a.parquet"
    of = pa.time64("us") if kind == "a time of UTC" else pa.timestamp("us", "UTC")
    said = []
    for id_ in (b"b", b"\xff"):
        at: pa.Array = pa.array([0, 3_600_000_000], of)
        if within == "a struct":
            at = pa.StructArray.from_arrays([at], ["at"])
        table = pa.table({"at": at, "id": texts(b"a", id_)})
        pq.write_table(table, file, write_time_adjusted_to_utc=True, store_schema=False)
        file.write_bytes(file.read_bytes().replace(NEW_TYPE, b"\x9c" + NEW_TYPE[1:]))
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        raw = RawFile(file.name, file, FileForm.PARQUET)
        source = open_source(connection, raw, ("at", "id"), tmp_path / id_.hex())
        described = connection.execute(f"DESCRIBE FROM '{file}'").fetchall()
        assert source.kinds == {row[0]: row[1] for row in described}
        said.append(connection.execute(source.relation).fetchall())
    (first, second), mended = said
    assert mended == [first]
    assert first[0] != second[0]
    assert source.malformed is not None
    assert len(connection.execute(source.malformed).fetchall()) == 1


def test_words_that_come_often_are_looked_at_once_and_none_is_missed(tmp_path: Path) -> None:
    """In one group of rows a word is no UTF-8, of a dictionary that others do not have."""
    words = [b"bus", b"tram"] * 4000
    good = pa.table({"mode": texts(*words), "card": [f"card {n}" for n in range(8000)]})
    bad = pa.table({"mode": texts(*words[:6000], b"\xff", *words[6001:]), "card": good["card"]})
    for name, table in (("good", good), ("bad", bad)):
        pq.write_table(table, tmp_path / name, row_group_size=1000)
        with pq.ParquetFile(tmp_path / name) as parquet:
            assert typed_cells._of_few_words(parquet) == ["mode"]
    made = tmp_path / "made"
    assert typed_cells.as_readable(tmp_path / "good", made, ("mode", "card")) == tmp_path / "good"
    assert typed_cells.as_readable(tmp_path / "bad", made, ("mode", "card")) == made
    read = pq.read_table(made)
    assert read["mode"][6000].as_py() == UNREADABLE
    assert read["mode"][6001:].equals(good["mode"][6001:])
    assert read.drop_columns("mode").equals(good.drop_columns("mode"))
    assert read["mode"][:6000].equals(good["mode"][:6000])
