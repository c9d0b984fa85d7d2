"""Files as they come: encodings, delimiters, quotes, titles, decimals, times, containers.

Each form is read as the plain file of the same records, or refused with the key that would do.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested_weeks import Zones

from turnstile.errors import InputError
from turnstile.programme.source_spec import (
    DateForm,
    DecimalMark,
    Delimiter,
    Encoding,
    Feed,
    FileSpec,
    QuoteMark,
    TimeForm,
)
from turnstile.programme.spec import Programme

WEEK = "2016-W30"
HEADER = "tap_id,card_id,mode,action,tapped_at,place,remark"
RECORDS = [
    ["1", "c", "bus", "enter", "2016-07-25 08:00:10", "Østre, Ring", ";"],
    ["2", "c", "bus", "exit", "2016-07-25 08:20:00", "Bø", "æøå"],
    ["3", "d", "train", "enter", "2016-07-26 09:30:00", "O'Hara St", "'"],
    ["4", "e", "bus", "enter", "2016-07-26 10:00:00", 'a "b" c', "|,\t"],
]
WANTED = [
    ("c", 480, "Østre, Ring", 500, "Bø"),
    ("d", 570, "O'Hara St", None, "UNKNOWN"),
    ("e", 600, 'a "b" c', None, "UNKNOWN"),
]
READ = "card_id, tap_on_minute, tap_on_location, tap_off_minute, tap_off_location"


def _written(spec: FileSpec) -> bytes:
    """The records as a file, by another hand than the reader's."""
    text = io.StringIO("title; of, two\n" * (spec.header_row - 1), newline="")
    text.seek(0, io.SEEK_END)
    between = (spec.delimiter or Delimiter.SEMICOLON).character
    marks = {QuoteMark.DOUBLE: '"', QuoteMark.SINGLE: "'", QuoteMark.NONE: "\x02"}
    writer = csv.writer(text, delimiter=between, quotechar=marks[spec.quote], lineterminator="\n")
    writer.writerows([HEADER.split(","), *RECORDS])
    return text.getvalue().encode(spec.encoding)


PLAIN = _written(FileSpec(delimiter=Delimiter.COMMA)).decode()


def _zst(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


def _zip(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("taps.csv", content)
    return packed.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".csv": lambda content: content,
    ".csv.gz": gzip.compress,
    ".txt.zst": lambda content: _zst(content[:100]) + _zst(content[100:]),
    ".zip": _zip,
}


@pytest.fixture
def rows(zones: Zones, programme_of: Callable[..., Programme], rows_of: Any) -> Any:
    """Rows of one file, as a programme reads it."""

    def read(name: str, content: bytes, columns: str = READ, **source: Any) -> list[Any]:
        zones.deliver(WEEK, {name: content})
        programme = programme_of("opal", **({"feed": Feed.TAPS} | source))
        snapshot = zones.ingest(programme, WEEK)
        return sorted(rows_of(snapshot, columns)) if snapshot.days else []

    return read


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize(
    ("encoding", "delimiter"), [*itertools.product(Encoding, Delimiter), (Encoding.UTF_8, None)]
)
def test_a_file_of_every_form_is_read_as_the_plain_one(
    rows: Any, encoding: Encoding, delimiter: Delimiter | None, packed: str
) -> None:
    spec = FileSpec(encoding=encoding, delimiter=delimiter, header_row=3)
    content = _written(spec)
    assert rows(f"taps{packed}", PACKED[packed](content), file=spec) == WANTED


@pytest.mark.parametrize("quote", QuoteMark)
def test_quotes_are_those_that_are_stated(rows: Any, quote: QuoteMark) -> None:
    spec = FileSpec(delimiter=Delimiter.TAB, quote=quote)
    content = _written(spec)
    assert rows("taps.tsv", content, file=spec) == WANTED
    if quote is QuoteMark.SINGLE:  # negative control: a mark of another kind is part of the text
        other = FileSpec(delimiter=Delimiter.TAB, quote=QuoteMark.NONE)
        assert ("d", 570, "'O''Hara St'", None, "UNKNOWN") in rows("taps.tsv", content, file=other)


def test_what_the_header_and_a_mark_say_needs_no_key(rows: Any) -> None:
    semicolons = _written(FileSpec(delimiter=Delimiter.SEMICOLON))
    assert rows("taps.csv", semicolons) == WANTED
    assert rows("taps.csv", codecs.BOM_UTF8 + PLAIN.encode()) == WANTED
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        assert rows("taps.csv", mark + PLAIN.encode(codec)) == WANTED


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode("utf-16-le"),
        ("A title; of two\nparts\n" + PLAIN).encode(),
        PLAIN.encode("utf-16")[:-1],
    ],
    ids=["UTF-16 without a mark", "titles above the header", "cut off within a character"],
)
def test_what_nobody_stated_is_refused_with_the_key_that_would_do(
    rows: Any, content: bytes
) -> None:
    with pytest.raises(InputError, match=r"source\.file|column is missing|cut off") as error:
        rows("taps.csv", content)
    assert "taps.csv" in str(error.value)


def test_a_bad_byte_costs_a_record_only_in_a_column_that_is_read(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    content = PLAIN.encode().replace("æøå".encode(), b"\xe6\xf8\xe5")
    programme = programme_of("opal", feed=Feed.TAPS)
    zones.deliver(WEEK, {"taps.csv": content})
    assert sorted(rows_of(zones.ingest(programme, WEEK), READ)) == WANTED
    zones.deliver(WEEK, {"taps.csv": content.replace("Bø".encode(), b"B\xf8")})
    found = sorted(rows_of(zones.ingest(programme, WEEK), READ))
    assert found == [("c", 480, "Østre, Ring", None, "UNKNOWN"), *WANTED[1:]]


@pytest.mark.parametrize("times", [TimeForm.EPOCH_S, TimeForm.EPOCH_MS, TimeForm.EPOCH_US])
def test_instants_in_units_since_1970(rows: Any, times: TimeForm) -> None:
    at = int(datetime(2016, 7, 24, 22, 0, 10, tzinfo=UTC).timestamp()) * times.of_second
    content = f"card_id,mode,tapped_at,place\nc,bus,{at},A\n".encode()
    found = rows("taps.csv", content, file=FileSpec(times=times))
    assert found == [("c", 480, "A", None, "UNKNOWN")]
    assert rows("taps.csv", content) == []  # negative control: such a number is no written time


def test_typed_columns_of_parquet_and_arrow_are_read_whatever_the_form_of_texts(
    rows: Any, tmp_path: Path
) -> None:
    table = pa.table(
        {
            "card_id": ["c"],
            "mode": pa.array(["bus"]).dictionary_encode(),
            "tap_date": [date(2016, 7, 25)],
            "tap_time": ["08:00"],
            "place": ["A"],
        }
    )
    pa.feather = pytest.importorskip("pyarrow.feather")
    pa.feather.write_feather(table, tmp_path / "taps.feather")
    found = rows(
        "taps.feather", (tmp_path / "taps.feather").read_bytes(), date_form=DateForm.DAY_FIRST
    )
    assert found == [("c", 480, "A", None, "UNKNOWN")]


def test_decimals_behind_a_comma(rows: Any) -> None:
    content = b"card_id;mode;tapped_at;latitude;longitude\nc;bus;2016-07-25 08:00;-34,65;-58,449\n"
    spec = FileSpec(decimal=DecimalMark.COMMA)
    assert rows("taps.csv", content, "tap_on_location", file=spec) == [("-34.7 -58.4",)]
    assert rows("taps.csv", content, "tap_on_location") == []  # negative control


@pytest.mark.parametrize("spoil", [b"\xd8\x00", b"\x00\xdc", b"\x0d\x00", b"\x22\x00"])
def test_a_unit_that_no_character_has_costs_its_own_line_alone(rows: Any, spoil: bytes) -> None:
    lines = [line.encode("utf-16-le") for line in PLAIN.splitlines(keepends=True)]
    lines[2] = lines[2][:6] + spoil + lines[2][6:]
    found = rows("taps.csv", codecs.BOM_UTF16_LE + b"".join(lines))
    assert [row for row in found if row[0] != "c"] == WANTED[1:]
    assert ("c", 480, "Østre, Ring", None, "UNKNOWN") in found


def test_a_byte_that_an_encoding_does_not_have_costs_its_own_line_alone(rows: Any) -> None:
    content = PLAIN.encode("windows-1252").replace(b"O'Hara", b"O\x81Hara")
    found = rows("taps.csv", content, file=FileSpec(encoding=Encoding.WINDOWS_1252))
    assert found == [WANTED[0], WANTED[2]]


def test_what_is_set_aside_is_kept_in_the_files_own_characters(
    zones: Zones, programme_of: Callable[..., Programme]
) -> None:
    spec = FileSpec(delimiter=Delimiter.SEMICOLON)
    content = _written(spec).replace("Bø".encode(), b"B\xf8")
    zones.deliver(WEEK, {"taps.csv": content})
    snapshot = zones.ingest(programme_of("opal", feed=Feed.TAPS, file=spec), WEEK)
    kept = pq.read_table(snapshot.folder / "quarantine/malformed_line.parquet")
    (line,) = kept["fields"].to_pylist()
    assert line == "2;c;bus;exit;2016-07-25 08:20:00;B\\xf8;æøå"
