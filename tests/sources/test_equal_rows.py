"""Equal rows come out once, whichever hashes they share and however few are sorted at a time."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.sources.ingest.equal_rows import each_once

# the key says little about the value: rows that differ have equal ones, too
ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, "a", "b"])), max_size=30)


@given(rows=ROWS, at_once=st.sampled_from([1, 3, 1000]))
def test_rows_that_are_equal_come_once(rows: list[tuple[int, str | None]], at_once: int) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows (key UBIGINT, value VARCHAR)")
        if rows:
            connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        once = each_once(
            connection, "key, value", "FROM rows WHERE true", len(rows), at_once=at_once
        )
        unique_rows = connection.execute(once).fetchall()
    assert len(unique_rows) == len(set(rows))
    assert set(unique_rows) == set(rows)


@pytest.mark.parametrize("keys", [[1, 2, 3], [1, 2, 1]])
def test_rows_are_compared_only_if_keys_repeat(keys: list[int]) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows AS SELECT unnest(?)::UBIGINT AS key", [keys])
        once = each_once(connection, "key", "FROM rows WHERE true", 3)
    assert ("DISTINCT" in once) is (len(set(keys)) < len(keys))
