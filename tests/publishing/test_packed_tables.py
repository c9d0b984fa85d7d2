"""A packed table is unpacked as far as its table is long."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

from turnstile.publishing.inner_contents import _unpacked

MANY = 64_000_000


def test_a_few_bytes_that_hold_very_many_are_not_unpacked(tmp_path: Path) -> None:
    table = b"value\n1\n"
    path = tmp_path / "location.csv.gz"
    path.write_bytes(gzip.compress(table, mtime=0))
    assert _unpacked(path, len(table)) == table
    path.write_bytes(gzip.compress(bytes(MANY), mtime=0))
    tracemalloc.start()
    assert _unpacked(path, len(table)) != table
    assert tracemalloc.get_traced_memory()[1] < MANY / 10
    tracemalloc.stop()
