"""Exact tables of fixed rows under a fixed key are those that they always were, bounds included.

A change of how rows are read, bounded or counted, or of the engine, that changes what is counted
is seen here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from turnstile.cli import main
from turnstile.counting.exact import ExactTable
from turnstile.counting.exact_tables import count
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.week import ingest

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK = ServiceWeek(2016, 30)
ROWS = 12_000


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week of trips and one of readings, in three forms of file, with rows that came twice."""
    folder = tmp_path_factory.mktemp("landing")
    for made in (("opal", "csv"), ("itms", "parquet")):
        name, form = made
        options = ["--rows", str(ROWS), "--seed", "7", "--format", form, "--out", str(folder)]
        wrong = ["--corruption", "duplicates,nulls"]
        assert main(["sample", name, "--weeks", str(WEEK), *options, *wrong]) == 0
    return folder


def digest_of(tables: tuple[ExactTable, ...]) -> str:
    """Return one digest of all labels and numbers."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(repr(table.label).encode())
        digest.update(table.reveal_to_mechanism().tobytes())
    return digest.hexdigest()[:16]


def counted(name: str, landing: Path, private: Path, secret: bytes) -> str:
    """Ingest and count a shipped programme, or an earlier text of one; return the digest."""
    earlier = INCLUDE / f"programmes/earlier/{name}.yaml"
    programme = (
        parse_programme(earlier.read_text(), f"{name.partition('.')[0]}.yaml")
        if earlier.exists()
        else load_programme(name, INCLUDE)
    )
    snapshot = ingest(programme, WEEK, landing=landing, private=private, progress=lambda _: None)
    tables = count(
        programme,
        load_domain(programme, INCLUDE),
        programme.days_of(WEEK),
        snapshot.folder / "rows",
        secret=secret,
        work=private / "work",
        progress=lambda _: None,
    )
    return digest_of(tables)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("opal", "69f705831974a3a6"),
        ("opal_trip", "d5eab11046c88ff3"),
        ("opal_year", "58748a41f9ece541"),
        ("itms.8bde7f3bc943", "8ce185b21b022e3e"),
        ("itms", "c159521e97d36dfb"),
    ],
)
def test_exact_tables_are_those_that_they_were(
    name: str, digest: str, landing: Path, tmp_path: Path
) -> None:
    assert counted(name, landing, tmp_path, b"a key that never changes") == digest


def test_another_key_keeps_other_records(landing: Path, tmp_path: Path) -> None:
    one, other = (counted("opal", landing, tmp_path, key) for key in (b"one", b"other"))
    assert one != other
