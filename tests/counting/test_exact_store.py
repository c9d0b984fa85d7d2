from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from turnstile.counting.exact import ExactTable
from turnstile.counting.exact_store import load_exact, save_exact
from turnstile.errors import IntegrityError


@pytest.fixture
def tables() -> tuple[ExactTable, ...]:
    return (
        ExactTable("on_time", "count", date(2016, 7, 25), np.array([5, 0, 10, 2**40])),
        ExactTable("speed", "sum", None, np.array([-7, 10])),
    )


def test_tables_come_back_in_order_and_complete(
    tables: tuple[ExactTable, ...], tmp_path: Path
) -> None:
    loaded_tables = load_exact(tmp_path, save_exact(tables, tmp_path))
    assert [table.label for table in loaded_tables] == [table.label for table in tables]
    for before, after in zip(tables, loaded_tables, strict=True):
        assert np.array_equal(before.reveal_to_mechanism(), after.reveal_to_mechanism())


def test_an_altered_byte_stops_everything(tables: tuple[ExactTable, ...], tmp_path: Path) -> None:
    digest = save_exact(tables, tmp_path)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(IntegrityError, match="altered"):
        load_exact(tmp_path, digest)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="count the week again"):
        load_exact(tmp_path, "0" * 64)


def test_only_the_owner_reads_the_file_and_no_part_of_it_stays(
    tables: tuple[ExactTable, ...], tmp_path: Path
) -> None:
    digest = save_exact(tables, tmp_path / "deep" / "er")
    (path,) = (tmp_path / "deep" / "er").iterdir()
    assert path.name == f"exact-{digest}.bin"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_digest_reveals_nothing_to_somebody_who_guesses_the_counts(
    tables: tuple[ExactTable, ...], tmp_path: Path
) -> None:
    assert save_exact(tables, tmp_path) != save_exact(tables, tmp_path)


def test_equal_counts_keep_the_file_that_a_hold_names(
    tables: tuple[ExactTable, ...], tmp_path: Path
) -> None:
    digest = save_exact(tables, tmp_path)
    assert save_exact(tables, tmp_path, digest) == digest
    assert save_exact(tables[1:], tmp_path, digest) != digest
    path = tmp_path / f"exact-{digest}.bin"
    path.write_bytes(b"\0" * 32 + path.read_bytes()[32:])  # another salt: what a digest is of
    assert save_exact(tables, tmp_path, digest) != digest
    assert save_exact(tables, tmp_path, "0" * 64) != digest
