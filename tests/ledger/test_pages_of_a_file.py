"""Rows read from the pages of an SQLite file are those that SQLite reads."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.ledger.database.pages_of_a_file import rows_in

_VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 127, -128, 2**15, -(2**23), 2**31, 2**47, -(2**47) - 1]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.binary(),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda real: real % 1),
    st.integers(0, 20_000).map("x".__mul__),  # more than a page holds
)


_INSERT = "INSERT INTO t VALUES (?, ?, ?)"


def _made(file: Path, rows: list[tuple[object, ...]], page_bytes: int = 4096) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {page_bytes}")
    connection.execute("CREATE TABLE t (a, b, c)")
    connection.executemany(_INSERT, rows)
    return connection


def _of_t(file: Path) -> list[tuple[object, ...]]:
    return [row for row in rows_in(file) if len(row) == len("abc")]


@given(
    rows=st.lists(st.tuples(_VALUES, _VALUES, _VALUES), max_size=40),
    page_bytes=st.sampled_from([512, 1024, 4096, 32768]),
)
def test_every_row_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]], page_bytes: int
) -> None:
    file = tmp_path_factory.mktemp("made") / "made.sqlite"
    _made(file, rows, page_bytes).close()
    whole = [tuple(None if isinstance(v, float) else v for v in row) for row in rows]
    assert sorted(map(repr, _of_t(file))) == sorted(map(repr, whole))
    assert ("table", "t", "t") in [row[:3] for row in rows_in(file)]  # its schema, in page 1


def test_what_the_log_beside_a_file_committed_is_read_and_nothing_else(tmp_path: Path) -> None:
    """A process that was killed leaves it: what it had rolled back, and an earlier use of it."""
    file, copy = tmp_path / "made.sqlite", tmp_path / "copy.sqlite"
    with closing(_made(file, [("before", 1, None)])) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [("early", n, "e" * 900) for n in range(90)]
        )
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        connection.execute("UPDATE t SET c = 'later' WHERE a = 'before'")
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [("gone", n, "x" * 900) for n in range(90)]
        )
        for ending in ("", "-wal"):  # as a kill in mid-transaction leaves them
            shutil.copyfile(f"{file}{ending}", f"{copy}{ending}")
        assert b"gone" in copy.with_name("copy.sqlite-wal").read_bytes()
        connection.execute("ROLLBACK")
    rows = _of_t(copy)
    assert ("before", 1, "later") in rows
    assert {row[0] for row in rows} == {"before", "early"}
    assert len(rows) == len({*rows}) == 1 + 90


def test_pages_without_schema_tree_and_end_are_read(tmp_path: Path) -> None:
    file, rng = tmp_path / "made.sqlite", random.Random(7)  # noqa: S311 - no secret
    _made(file, [(n, "x" * rng.randrange(3000), n) for n in range(300)]).close()
    content = file.read_bytes()
    half = content[: len(content) // 2]
    for damaged, left in ((bytes(4096) + content[4096:], 290), (half, 120), (b"\xff" * 9999, 0)):
        file.write_bytes(damaged)
        with closing(sqlite3.connect(file)) as connection, pytest.raises(sqlite3.DatabaseError):
            connection.execute("SELECT * FROM t").fetchall()
        rows = _of_t(file)
        assert all(a == c and set(str(b)) <= {"x"} for a, b, c in rows)
        assert len(rows) >= left
