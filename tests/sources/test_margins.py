"""Texts are trimmed unless no field of a file has a blank at either end: nobody can tell which."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.sources.ingest.landing import FileForm, RawFile
from turnstile.sources.ingest.lines import PhysicalLines, sort_lines

FIELDS = st.text(alphabet='a ,"\u00a0\u3000', max_size=4)
ROWS = st.lists(st.lists(FIELDS, min_size=1, max_size=3), min_size=1, max_size=4)


def looked_at(content: str, folder: Path) -> PhysicalLines:
    """Sort the lines of a file with this content."""
    path = folder / "trips.csv"
    path.write_bytes(content.encode())
    return sort_lines(RawFile("trips.csv", path, FileForm.CSV), folder / "sorted", has_quotes=True)


@given(rows=ROWS, quotes=st.booleans())
def test_a_field_with_a_margin_is_never_missed(rows: list[list[str]], *, quotes: bool) -> None:
    def quoted(field: str) -> str:
        doubled = field.replace('"', '""')
        return f'"{doubled}"' if quotes or doubled != field or "," in field else field

    with TemporaryDirectory() as folder:
        physical_lines = looked_at(
            "".join(",".join(map(quoted, row)) + "\n" for row in rows), Path(folder)
        )
        clean = physical_lines.clean.read_text().split("\n")
    fields = [field for line in clean for field in next(csv.reader([line]), [])]
    if any(field != field.strip(" \u00a0\u3000") for field in fields):
        assert physical_lines.may_have_margins


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("card,place\nc1,Central\n", False),
        ("card,place\nc1,St Peters\n", False),
        ('card,place\nc1,"St Peters"\n', False),
        ('card,place\nc1,"[72.8, 21.2]"\n', False),
        ('card,place\nc1,"[72.8, 21.2]", Central\n', True),
        ('card,place\nc1,"[72.8, 21.2]"\nc2, Central\n', True),
        ('card,place\nc1,"72.8 "\n', True),
        ('card,place\n"c1,[72.8, 21.2]\nc2, Central\n', True),  # which quotes belong together?
        ('card,place\n"c1,[72.8, 21.2]\nc2,"[72.8, 21.2]"\n', True),
        ("card,place\nc1, Central\n", True),
        ("card,place\nc1 ,Central\n", True),
        ("card,place\n c1,Central\n", True),
        ("card,place\nc1,Central \n", True),
        ("card,place\nc1,Central ", True),
        ('card,place\nc1," Central"\n', True),
        ("card,place\nc1,\u00a0Central\n", True),
    ],
)
def test_margins_are_seen_and_blanks_within_are_none(
    tmp_path: Path, content: str, *, expected: bool
) -> None:
    assert looked_at(content, tmp_path).may_have_margins is expected
