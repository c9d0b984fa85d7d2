"""Engines that tests lend each other: nothing of one connection is seen by another."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from lent_engines import Lent

from turnstile.duckdb_engine import connect

NAMES = "SELECT table_name FROM duckdb_tables() ORDER BY ALL"


def test_each_connection_has_tables_of_its_own_and_leaves_none(tmp_path: Path) -> None:
    with connect(tmp_path) as first, connect(tmp_path) as other:
        assert isinstance(first, Lent)
        for connection, number in ((first, 1), (other, 2)):
            connection.execute(f"CREATE TABLE kept AS SELECT {number} AS n")
            connection.execute(f"CREATE TEMP TABLE passing AS SELECT {number} AS n")
        for connection, number in ((first, 1), (other, 2)):
            for table in ("kept", "passing"):
                assert connection.execute(f"SELECT n FROM {table}").fetchall() == [(number,)]
    with connect(tmp_path) as next_one:
        assert next_one.execute(NAMES).fetchall() == []
        assert next_one.execute("SELECT current_setting('TimeZone')").fetchone() == ("UTC",)


def test_other_settings_are_another_engine(tmp_path: Path) -> None:
    with connect(tmp_path, keeps_order=True) as first, connect(tmp_path) as other:
        first.execute("CREATE TABLE kept AS SELECT 1 AS n")
        ask = "SELECT current_setting('preserve_insertion_order'), current_setting('threads')"
        assert first.execute(ask).fetchone() == (True, 1)
        assert other.execute(ask).fetchone() == (False, 1)
        assert other.execute(NAMES).fetchall() == []


@pytest.mark.usefixtures("own_engines")
def test_an_engine_of_its_own_is_locked(tmp_path: Path) -> None:
    with connect(tmp_path) as connection, pytest.raises(duckdb.Error, match="locked"):
        connection.execute("SET threads = 1")
