"""Rows read from the pages of an SQLite file are those that SQLite reads."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.ledger.database.damaged_database import Remains, damage_in, remains_of
from turnstile.ledger.database.pages_of_a_file import rows_in
from turnstile.ledger.encoding import digest_of

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
    page_bytes=st.sampled_from([512, 1024, 4096, 32768, 65536]),
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
    assert {*rows} == {
        ("before", 1, None),  # as the file's own page still has it
        ("before", 1, "later"),
        *(("early", n, "e" * 900) for n in range(90)),
    }


def test_a_page_that_is_damaged_in_the_log_is_read_as_the_file_has_it(tmp_path: Path) -> None:
    file, copy = tmp_path / "made.sqlite", tmp_path / "copy.sqlite"
    with closing(_made(file, [("before", 1, None)])) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("INSERT INTO t VALUES ('after', 2, NULL)")
        for ending in ("", "-wal"):
            shutil.copyfile(f"{file}{ending}", f"{copy}{ending}")
    log = copy.with_name("copy.sqlite-wal")
    header = log.read_bytes()[: 32 + 24]
    log.write_bytes(header + bytes(4096))
    assert _of_t(copy) == [("before", 1, None)]


def test_rows_of_pages_that_keep_some_bytes_free_are_read(tmp_path: Path) -> None:
    """As SQLite of some systems makes them; a file without rows is altered to be such a one."""
    file = tmp_path / "made.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 1")
    content = bytearray(file.read_bytes())
    content[20], content[105:107] = 12, (4096 - 12).to_bytes(2, "big")
    file.write_bytes(content)
    rows = [(n, "x" * n, None) for n in range(3900, 12_500, 61)]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        connection.executemany(_INSERT, rows)
        connection.commit()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert file.read_bytes()[20] == 12
    assert sorted(_of_t(file)) == rows


def _page_of(length: int, kinds: bytes, *, times: int) -> bytes:
    """A page that names one row so often; the row goes on in page 3."""
    pointers = (2000).to_bytes(2, "big") * times
    head = bytes([13, 0, 0]) + times.to_bytes(2, "big") + bytes(3) + pointers
    local = 489 + (length - 489) % 4092
    local = local if local <= 4096 - 35 else 489
    row = _varint_of(length) + b"\1" + (kinds + b"\0" * local)[:local] + (3).to_bytes(4, "big")
    return (head.ljust(2000, b"\0") + row).ljust(4096, b"\0")


def _varint_of(number: int) -> bytes:
    digits = [number >> shift & 0x7F for shift in range(49, -1, -7)]
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])


@pytest.mark.parametrize("is_circle", [True, False])
def test_rows_that_share_pages_end(tmp_path: Path, *, is_circle: bool) -> None:
    """In a circle a row was read for ever, a chain of pages by each of many rows."""
    file, pages = tmp_path / "made.sqlite", 600
    length = 2**40 if is_circle else pages * 4092
    after = [3] if is_circle else [*range(4, 3 + pages), 0]
    first = b"SQLite format 3\0" + (4096).to_bytes(2, "big")
    content = first.ljust(4096, b"\0") + _page_of(length, b"\2\1", times=900)
    content += b"".join(number.to_bytes(4, "big") + b"\1" * 4092 for number in after)
    file.write_bytes(content)
    begun = time.process_time()
    assert sum(1 for _ in rows_in(file)) < 10
    assert time.process_time() - begun < 5


def test_a_record_that_is_nested_beyond_all_is_no_entry(tmp_path: Path) -> None:
    """Whoever put one there stopped every recovery by a traceback."""
    file, record = tmp_path / "made.sqlite", "[" * 99_999
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (a, b, c, d, e, f)")
        row = (1, "sealed", None, None, record, digest_of(record))
        connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    assert remains_of(file) == Remains(last=None)


def test_a_long_log_is_read_once(tmp_path: Path) -> None:
    """What is left of it was copied for each of its pages, and all pages for each commit."""
    file, salts = tmp_path / "made.sqlite", b"saltsalt"
    _made(file, []).close()
    frames = ((n.to_bytes(4, "big") * 2) + salts + bytes(8 + 4096) for n in range(1, 6000))
    log = bytes(16) + salts + bytes(8) + b"".join(frames)
    file.with_name(f"{file.name}-wal").write_bytes(log)
    begun = time.process_time()
    assert not _of_t(file)
    assert time.process_time() - begun < 5


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


def test_a_write_and_its_checkpoint_while_a_file_is_looked_at_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at a file without a log takes no locks; each round told people to stop releasing."""
    file, connect = tmp_path / "made.sqlite", sqlite3.connect
    with closing(_made(file, [])) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("CREATE UNIQUE INDEX of_t ON t (a)")
        connection.executemany(_INSERT, [(f"{n}", n, "x" * 900) for n in range(90)])

    class Looked(sqlite3.Connection):
        """Has read some pages when another process writes."""

        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            super().execute("SELECT a, b, c FROM t").fetchall()
            with closing(connect(file, isolation_level=None)) as writer:
                rows = [(random.random(), 0, "y" * 900) for _ in range(90)]  # noqa: S311
                writer.executemany(_INSERT, rows)
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return super().execute(sql, *given)

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Looked))
    assert damage_in(file) == ""
    monkeypatch.undo()
    with file.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(bytes(4096))
    assert damage_in(file)


def test_a_look_at_a_sound_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """What another login's look left beside a ledger might keep its own from writing."""
    file = tmp_path / "made.sqlite"
    with closing(_made(file, [("a", 1, None)])) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    assert damage_in(file) == ""
    assert [*tmp_path.iterdir()] == [file]
