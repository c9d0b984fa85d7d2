"""Files as they come: encodings, delimiters, quotes, titles, decimals, times, containers.

Each form is read as the plain file of the same records, or refused with the key that would do.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested_weeks import Zones, texts
from pyarrow import feather

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
    WithoutCard,
)
from turnstile.programme.spec import Programme
from turnstile.sources.ingest.landing import RawFile, form_of
from turnstile.sources.ingest.snapshot import counts_of
from turnstile.sources.ingest.worksheet import as_parquet

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


def _written(spec: FileSpec, *, has_offset: bool = False) -> bytes:
    """The records as a file, by another hand than the reader's."""
    times = [_time(record[4], spec, has_offset=has_offset) for record in RECORDS]
    records = [[*record[:4], at, *record[5:]] for record, at in zip(RECORDS, times, strict=True)]
    text = io.StringIO("title; of, two\n" * (spec.header_row - 1), newline="")
    text.seek(0, io.SEEK_END)
    between = (spec.delimiter or Delimiter.SEMICOLON).character
    marks = {QuoteMark.DOUBLE: '"', QuoteMark.SINGLE: "'", QuoteMark.NONE: "\x02"}
    writer = csv.writer(text, delimiter=between, quotechar=marks[spec.quote], lineterminator="\n")
    writer.writerows([HEADER.split(","), *records])
    return text.getvalue().encode(spec.encoding)


def _time(local: str, spec: FileSpec, *, has_offset: bool) -> str:
    """A time of the agency's clock, as a file states it."""
    at = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo("Australia/Sydney"))
    if spec.times.of_second:
        return str(int(at.timestamp()) * spec.times.of_second)
    if has_offset:
        return at.isoformat()
    return f"{at.astimezone(spec.zone or at.tzinfo):%Y-%m-%d %H:%M:%S}"


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


EXCEL_ZERO = datetime(1899, 12, 30)  # noqa: DTZ001 - a wall clock
PARTS = "http://schemas.openxmlformats.org/"
TIMES = '<numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy&quot; h&quot;"/></numFmts>'
FORMATS = (0, 22, 14, 21, 164)  # general, an instant, a date, a time of day, a date of one's own


def _cell(place: str, value: object, shared: list[str]) -> str:
    """A cell: texts in turn shared and within, instants as serial numbers with a format."""
    if isinstance(value, datetime | date):
        at = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a wall clock
        style = 2
        if isinstance(value, datetime):
            at, style = value, 1
        serial = (at - EXCEL_ZERO).total_seconds() / 86_400
        return f'<c r="{place}" s="{style}"><v>{serial!r}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value}</v></c>'
    if value is None:
        return ""
    text = str(value).replace("&", "&amp;").replace("<", "&lt;")
    if len(shared) % 2:
        shared.append("")
        return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'
    shared.append(f"<si><r><t>{text[:1]}</t></r><r><t>{text[1:]}</t></r><rPh><t>x</t></rPh></si>")
    return f'<c r="{place}" t="s"><v>{sum(map(bool, shared))}</v></c>'


def workbook(records: list[list[Any]], *, titles: int = 0, **parts: str) -> bytes:
    """Records as a workbook, by another hand than the reader's."""
    shared: list[str] = []
    rows = []
    for number, record in enumerate(records, start=titles + 1):
        cells = (_cell(f"{chr(65 + n)}{number}", value, shared) for n, value in enumerate(record))
        rows.append(f'<row r="{number}">{"".join(cells)}</row>')
    above = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, titles + 1))
    xfs = "".join(f'<xf numFmtId="{number}"/>' for number in FORMATS)
    texts, below = "".join(shared), "".join(rows)
    made = {
        "xl/workbook.xml": f'<workbook xmlns="{PARTS}main"><workbookPr/></workbook>',
        "xl/styles.xml": f"<styleSheet>{TIMES}<cellXfs>{xfs}</cellXfs></styleSheet>",
        "xl/sharedStrings.xml": f"<sst><si><t/></si>{texts}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{above}{below}</sheetData></worksheet>",
    } | {name.replace("__", "/") + ".xml": text for name, text in parts.items()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in made.items():
            archive.writestr(name, text)
    return packed.getvalue()


@pytest.fixture
def rows(zones: Zones, programme_of: Callable[..., Programme], rows_of: Any) -> Any:
    """Rows of one file, as a programme reads it."""

    def read(name: str, content: bytes, columns: str = READ, **source: Any) -> list[Any]:
        zones.deliver(WEEK, {name: content})
        programme = programme_of("opal", **({"feed": Feed.TAPS} | source))
        snapshot = zones.ingest(programme, WEEK)
        return sorted(rows_of(snapshot, columns)) if snapshot.days else []

    return read


# Each time of a file with each of the others' values, in turn.
CLOCKS = [*TimeForm, "an offset", "another zone"]
FORMS = [
    (*form, CLOCKS[number % len(CLOCKS)])
    for number, form in enumerate(itertools.product(Encoding, (*Delimiter, None), PACKED))
]


@pytest.mark.some(30)
@pytest.mark.parametrize(("encoding", "delimiter", "packed", "clock"), FORMS)
def test_a_file_of_every_form_is_read_as_the_plain_one(
    rows: Any, encoding: Encoding, delimiter: Delimiter | None, packed: str, clock: str
) -> None:
    spec = FileSpec(
        encoding=encoding,
        delimiter=delimiter,
        header_row=3,
        times=TimeForm(clock) if clock in [*TimeForm] else TimeForm.WRITTEN,
        zone=ZoneInfo("UTC") if clock == "another zone" else None,
    )
    content = _written(spec, has_offset=clock == "an offset")
    name, packed_now = f"taps{packed}", PACKED[packed](content)
    assert rows(name, packed_now, file=spec) == WANTED
    if spec.times.of_second or spec.zone:  # negative control: unstated it is not read as it is
        assert (
            rows(name, packed_now, file=replace(spec, times=TimeForm.WRITTEN, zone=None)) != WANTED
        )


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
    taps = sorted(rows_of(zones.ingest(programme, WEEK), READ))
    assert taps == [("c", 480, "Østre, Ring", None, "UNKNOWN"), *WANTED[1:]]


@pytest.mark.parametrize("times", [time_form for time_form in TimeForm if time_form.of_second])
def test_instants_in_units_since_1970(rows: Any, times: TimeForm) -> None:
    at = int(datetime(2016, 7, 24, 22, 0, 10, tzinfo=UTC).timestamp()) * times.of_second
    content = f"card_id,mode,tapped_at,place\nc,bus,{at},A\n".encode()
    taps = rows("taps.csv", content, file=FileSpec(times=times))
    assert taps == [("c", 480, "A", None, "UNKNOWN")]
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
    taps = rows(
        "taps.feather", (tmp_path / "taps.feather").read_bytes(), date_form=DateForm.DAY_FIRST
    )
    assert taps == [("c", 480, "A", None, "UNKNOWN")]


def test_decimals_behind_a_comma(rows: Any) -> None:
    content = b"card_id;mode;tapped_at;latitude;longitude\nc;bus;2016-07-25 08:00;-34,65;-58,449\n"
    spec = FileSpec(decimal=DecimalMark.COMMA)
    assert rows("taps.csv", content, "tap_on_location", file=spec) == [("-34.7 -58.4",)]
    assert rows("taps.csv", content, "tap_on_location") == []  # negative control


@pytest.mark.parametrize("spoil", [b"\xd8\x00", b"\x00\xdc", b"\x0d\x00", b"\x22\x00"])
def test_a_unit_that_no_character_has_costs_its_own_line_alone(rows: Any, spoil: bytes) -> None:
    lines = [line.encode("utf-16-le") for line in PLAIN.splitlines(keepends=True)]
    lines[2] = lines[2][:6] + spoil + lines[2][6:]
    taps = rows("taps.csv", codecs.BOM_UTF16_LE + b"".join(lines))
    assert [row for row in taps if row[0] != "c"] == WANTED[1:]
    assert ("c", 480, "Østre, Ring", None, "UNKNOWN") in taps


def test_a_byte_that_an_encoding_does_not_have_costs_its_own_line_alone(rows: Any) -> None:
    content = PLAIN.encode("windows-1252").replace(b"O'Hara", b"O\x81Hara")
    taps = rows("taps.csv", content, file=FileSpec(encoding=Encoding.WINDOWS_1252))
    assert taps == [WANTED[0], WANTED[2]]


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


def test_a_workbook_is_read_as_the_plain_file(rows: Any) -> None:
    """Texts shared and within their cells, typed instants, titles above the header."""
    typed = [[*record[:4], datetime.fromisoformat(record[4]), *record[5:]] for record in RECORDS]
    header = HEADER.split(",")
    assert rows("taps.xlsx", workbook([header, *RECORDS])) == WANTED
    assert rows("taps.xlsx", workbook([header, *typed])) == WANTED
    content = workbook([header, *typed], titles=3)
    assert rows("taps.xlsx", content, file=FileSpec(header_row=4)) == WANTED
    with pytest.raises(InputError, match="header_row|missing"):
        rows("taps.xlsx", content)


OTHER_CARDS = {
    "fifteen digits": ('<c r="B6"><v>308522000000000</v></c>', True),
    "a text of sixteen": ('<c r="B6" t="str"><v>3085220000000001</v></c>', True),
    "a decimal": ('<c r="B6"><v>-33.86881999999999</v></c>', True),
    "sixteen digits": ('<c r="B6"><v>3085220000000000</v></c>', False),
    "a power": ('<c r="B6"><v>3.08522E+15</v></c>', False),
    "as an instant": ('<c r="B6" s="1"><v>308522000000</v></c>', False),
    "an error": ('<c r="B6" t="e"><v>#N/A</v></c>', False),
    "no character": ('<c r="B6" t="str"><v>c\x01</v></c>', False),
    "a text that nobody has": ('<c r="B6" t="s"><v>999999</v></c>', False),
}


@pytest.mark.parametrize("case", OTHER_CARDS)
def test_a_card_of_a_workbook_that_cannot_be_read_is_no_unit(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Any, case: str
) -> None:
    """Ten that a spreadsheet rounded would be one, records of one that nobody reads a unit each."""
    cell, is_read = OTHER_CARDS[case]
    record = ["9", "x", "bus", "enter", "2016-07-27 08:00:00", "A", ""]
    with zipfile.ZipFile(io.BytesIO(workbook([HEADER.split(","), *RECORDS, record]))) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    sheet = re.sub(r'<c r="B6".*?</c>', cell, parts.pop("xl/worksheets/sheet1.xml"))
    assert cell in sheet
    others = {name[:-4].replace("/", "__"): text for name, text in parts.items()}
    content = workbook([], xl__worksheets__sheet1=sheet, **others)
    zones.deliver(WEEK, {"taps.xlsx": content})
    snapshot = zones.ingest(
        programme_of("opal", feed=Feed.TAPS, without_card=WithoutCard.OWN_UNIT), WEEK
    )
    assert len(rows_of(snapshot, READ)) == len(WANTED) + is_read
    assert counts_of(snapshot).get("malformed_line", 0) == (not is_read)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("card", [b"\xff1", "\ufdd0".encode()])
def test_a_card_that_cannot_be_read_is_no_unit_whatever_stands_beside_it(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Any, form: str, card: bytes
) -> None:
    """As units of their own its records would be bounded by nothing."""
    for others in ([], [b"\xff2"]):  # of somebody else
        cards = [b"c", card, *others]
        records = [f"{n},".encode() + card + _REST for n, card in enumerate(cards)]
        text = pa.array([f"{n}" for n in range(len(cards))])
        columns = [text, texts(*cards)]
        columns += [pa.array([value] * len(cards)) for value in _REST.decode().split(",")[1:]]
        table = pa.table(columns, HEADER.split(",")[:6])
        written = io.BytesIO()
        if form == "parquet":
            pq.write_table(table, written)
        elif form == "arrow":
            feather.write_feather(table, written, compression="uncompressed")
        else:
            written.write(b"\n".join([HEADER.rpartition(",")[0].encode(), *records, b""]))
        zones.deliver(WEEK, {f"taps.{form}": written.getvalue()})
        snapshot = zones.ingest(
            programme_of("opal", feed=Feed.TAPS, without_card=WithoutCard.OWN_UNIT), WEEK
        )
        assert len(rows_of(snapshot, READ)) == 1
        assert counts_of(snapshot)["malformed_line"] == len(cards) - 1


_REST = b",bus,enter,2016-07-25 08:00:10,A"


def test_typed_dates_and_times_of_a_workbook_need_no_form_of_dates(rows: Any) -> None:
    sheet = (
        '<c r="A2" t="str"><v>c</v></c><c r="B2" t="str"><v>bus</v></c><c r="C2" s="4"><v>42576</v>'
        '</c><c r="D2" s="3"><v>0.3333333333</v></c><c r="E2" t="str"><v>A</v></c>'
    )
    header = workbook([["card_id", "mode", "tap_date", "tap_time", "place"]])
    with zipfile.ZipFile(io.BytesIO(header)) as archive:
        first = archive.read("xl/worksheets/sheet1.xml").decode()
    edited_sheet = first.replace("</sheetData>", f'<row r="2">{sheet}</row></sheetData>')
    content = workbook(
        [["card_id", "mode", "tap_date", "tap_time", "place"]], xl__worksheets__sheet1=edited_sheet
    )
    taps = rows("taps.xlsx", content, date_form=DateForm.MONTH_FIRST)
    assert taps == [("c", 480, "A", None, "UNKNOWN")]


HOSTILE_CELLS = {
    "a text that nobody has": '<c r="A3" t="s"><v>999999</v></c>',
    "no number of a text": '<c r="A3" t="s"><v>x</v></c>',
    "an instant beyond all years": '<c r="E3" s="1"><v>1e300</v></c>',
    "an instant that is none": '<c r="E3" s="1"><v>nan</v></c>',
    "an error": '<c r="A3" t="e"><v>#REF!</v></c>',
    "lines of others": '<c r="A3" t="str"><v>x&#10;9,d,bus,enter,2016-07-25 08:00:00,A,</v></c>',
    "a cell far to the right": '<c r="XFD3" t="str"><v>d</v></c>',
    "a cell without a place": '<c t="str"><v>z</v></c>',
    "a style that nobody has": '<c r="A3" s="77"><v>5</v></c>',
    "a control": '<c r="A3" t="str"><v>d\x01</v></c>',
    "a control by its number": '<c r="A3" t="str"><v>d&#1;&#x1F;</v></c>',
    "half a character by its number": '<c r="A3" t="str"><v>d&#55357;&#xd83d;</v></c>',
    "no character by its number": '<c r="A3" t="str"><v>d&#1114112;&#xFFFE;</v></c>',
    "a long number": '<c r="A3" t="str"><v>d&#99999999999;&#x0000000001;</v></c>',
    "a prefix that nobody declared": '<c r="A3" x:nil="true"><x:v>5</x:v></c>',
    "a row far below": '</row><row r="99999999999999999999"><c r="A3" t="str"><v>d</v></c>',
}


@pytest.mark.parametrize("hostile", HOSTILE_CELLS)
def test_no_cell_of_a_workbook_decides_anything_about_another_row(rows: Any, hostile: str) -> None:
    """Whatever stands in a row of nobody's, the others are read as they are without it."""
    without = workbook([HEADER.split(","), *RECORDS])
    with zipfile.ZipFile(io.BytesIO(without)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    row = f'<row r="77">{HOSTILE_CELLS[hostile]}</row>'
    for place in ('<row r="2">', '<row r="4">', "</sheetData>"):
        edited_sheet = sheet.replace(place, row + place)
        content = workbook([HEADER.split(","), *RECORDS], xl__worksheets__sheet1=edited_sheet)
        assert [tap for tap in rows("taps.xlsx", content) if tap[0] in {"c", "d", "e"}] == WANTED


def test_a_shared_text_with_what_is_no_character_is_of_nobody(rows: Any) -> None:
    odd = [[f"{n}", f"card {n}\x01", "bus", "enter", *RECORDS[0][4:]] for n in range(2)]
    assert rows("taps.xlsx", workbook([HEADER.split(","), odd[0], *RECORDS, odd[1]])) == WANTED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_parts_of_a_workbook_are_in_the_encoding_that_they_declare(
    rows: Any, encoding: str
) -> None:
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    with zipfile.ZipFile(io.BytesIO(workbook([HEADER.split(","), *RECORDS]))) as archive:
        parts: dict[str, Any] = {
            name.removesuffix(".xml"): (declared + archive.read(name).decode()).encode(encoding)
            for name in archive.namelist()
        }
    assert rows("taps.xlsx", workbook([], **parts)) == WANTED


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (workbook([["card_id"]], xl__worksheets__sheet2="<worksheet/>"), "several"),
        (workbook([["card_id", "card_id"]]), "named twice"),
        (workbook([]), "no header"),
        (workbook([["card_id"]])[:-30], "cut off or damaged"),
        (workbook([["a"]], xl__worksheets__sheet1="<worksheet><sheetData><row>"), "cut off or"),
        (
            workbook(
                [["a"]],
                xl__sharedStrings='<!DOCTYPE s [<!ENTITY a "b">]><sst><si><t>&a;</t></si></sst>',
            ),
            "cut off or damaged",
        ),
        (b"no workbook at all", "cut off or damaged"),
    ],
    ids=["sheets", "twice", "empty", "cut off", "half a row", "entities", "none"],
)
def test_a_workbook_that_is_none_is_refused(rows: Any, content: bytes, rule: str) -> None:
    with pytest.raises(InputError, match=rule) as error:
        rows("taps.xlsx", content)
    assert "taps.xlsx" in str(error.value)


@pytest.mark.parametrize("form", ["a.geojsonl", "a.geojson", "array.geojson", "a.geojsonl.gz"])
def test_features_of_geojson_are_records(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Any, form: str
) -> None:
    records = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [72.8 + n / 100, 21.2]},
            "properties": {
                "license_plate": f"p{n}",
                "observationDateTime": "2016-07-25T10:00:00+05:30",
                "speed": 30,
            },
        }
        for n in range(3)
    ]
    odd: list[Any] = [
        {"type": "Feature", "geometry": None, "properties": None},
        {"type": "Feature", "properties": [1], "geometry": {"coordinates": "x"}},
        {"license_plate": "q", "observationDateTime": "2016-07-25T10:00:00+05:30", "speed": 1},
    ]
    lines = [json.dumps(feature) for feature in (odd[0], records[0], odd[1], *records[1:], odd[2])]
    content = (f"[{','.join(lines)}]" if form.startswith("array") else "\n".join(lines)).encode()
    zones.deliver(WEEK, {form: gzip.compress(content) if form.endswith(".gz") else content})
    positions = rows_of(zones.ingest(programme_of("itms"), WEEK), "vehicle_id, latitude, longitude")
    assert positions == [(f"p{n}", 21.2, 72.8 + n / 100) for n in range(3)]
    columns = (("latitude", "geometry.latitude"), ("longitude", "geometry.longitude"))
    programme = programme_of("itms", columns=columns)
    assert rows_of(zones.ingest(programme, WEEK), "vehicle_id, latitude, longitude") == positions


@pytest.mark.parametrize(
    "number", ["99999999999999999999", "9223372036854775807", "-5", "1e5", "x"]
)
def test_a_number_that_is_no_instant_costs_its_own_record(rows: Any, number: str) -> None:
    at = int(datetime(2016, 7, 24, 22, 0, 10, tzinfo=UTC).timestamp())
    content = f"card_id,mode,tapped_at,place\nz,bus,{number},A\nc,bus,{at},A\n".encode()
    taps = rows("taps.csv", content, file=FileSpec(times=TimeForm.EPOCH_S))
    assert taps == [("c", 480, "A", None, "UNKNOWN")]


def test_instants_of_another_clock_than_the_agencys(rows: Any) -> None:
    content = b"card_id,mode,tapped_at,place\nc,bus,2016-07-24 22:00:10,A\n"
    spec = FileSpec(zone=ZoneInfo("UTC"))
    assert rows("taps.csv", content, file=spec) == [("c", 480, "A", None, "UNKNOWN")]
    stamped = content.replace(b"10,A", b"10+00:00,A")
    assert rows("taps.csv", stamped, file=spec) == [("c", 480, "A", None, "UNKNOWN")]
    assert rows("taps.csv", content) == []  # negative control: a day before the week


def test_damaged_parquet_is_refused_with_its_row_group_and_column(rows: Any) -> None:
    columns = zip(HEADER.split(","), zip(*RECORDS, strict=True), strict=True)
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink, row_group_size=2, compression="zstd")
    content = bytearray(sink.getvalue())
    chunk = pq.read_metadata(io.BytesIO(content)).row_group(1).column(5)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin : begin + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    with pytest.raises(InputError, match="cut off or damaged") as error:
        rows("taps.parquet", bytes(content))
    assert "taps.parquet: file" in str(error.value)
    assert "(row group 1, column 'place')" in str(error.value)
    assert "hara" not in str(error.value).lower()
    assert rows("taps.parquet", sink.getvalue()) == WANTED  # as it was written


# how eight o'clock of the agency's clock is written, and the keys without which nobody reads it
DAYS_FIRST, MONTHS_FIRST = {"date_form": DateForm.DAY_FIRST}, {"date_form": DateForm.MONTH_FIRST}
OF_UTC = {"file": FileSpec(zone=ZoneInfo("UTC"))}
OF_SYDNEY = {"file": FileSpec(zone=ZoneInfo("Australia/Sydney"))}
OF_SECONDS, OF_MS = ({"file": FileSpec(times=TimeForm(one))} for one in ("epoch_s", "epoch_ms"))


@pytest.mark.parametrize("others", [RECORDS[:1], RECORDS])
def test_a_shared_text_before_the_first_one_is_none(rows: Any, others: list[list[str]]) -> None:
    """It was the last one: whoever's that was."""
    cells = ["9", "x", "bus", "enter", "2016-07-25 08:00:00", "here"]
    content = workbook([HEADER.split(","), *others, cells])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    row = f'<row r="{len(others) + 2}">'
    before, own = sheet.split(row)
    edited = re.sub(r'<c r="F\d+".*?</c>', '<c t="s" r="F9"><v>-1</v></c>', own)
    assert edited != own
    parts = {"xl__worksheets__sheet1": before + row + edited}
    content = workbook([HEADER.split(","), *others, cells], **parts)
    assert [tap for tap in rows("taps.xlsx", content) if tap[0] == "x"] == []


def test_the_number_of_a_shared_text_may_have_margins(rows: Any) -> None:
    """XML that was laid out for people."""
    content = workbook([HEADER.split(","), *RECORDS])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    laid_out = re.sub(r'(t="s"[^>]*><v>)([0-9]+)(</v>)', r"\1\n  \2\n\3", sheet)
    assert laid_out != sheet
    parts = {"xl__worksheets__sheet1": laid_out}
    content = workbook([HEADER.split(","), *RECORDS], **parts)
    assert {tap[0] for tap in rows("taps.xlsx", content)} == {"c", "d", "e"}


WRITTEN: dict[str, dict[str, Any]] = {
    "25/07/2016 08:00": DAYS_FIRST,
    "25/7/2016 8:00:10": DAYS_FIRST,
    "25.07.2016 08:00:10": DAYS_FIRST,
    "25-07-2016T08:00": DAYS_FIRST,
    "25/07/2016 08:00:10 a. m.": DAYS_FIRST,
    "25/07/2016 08:00:10+10:00": DAYS_FIRST,
    "07/25/2016 08:00": MONTHS_FIRST,
    "7/25/2016, 8:00:10\u202fAM": MONTHS_FIRST,
    "07/25/2016 08:00 AM": MONTHS_FIRST,
    "2016-07-25 08:00 AM": {},
    "2016-07-25 8:00:10 AM": {},
    "2016/07/25 08:00": {},
    "2016.7.25 8:00": {},
    "20160725T080010": {},
    "20160725080010": {},
    "20160724T220010Z": {},
    "20160724T220010.250Z": {},
    "20160725 08:00:10": {},
    "2016-07-24 22:00:10 UTC": {},
    "2016-07-24T22:00:10.999Z": {},
    "2016-07-25T08:00:10,5": {},
    "2016-07-24 22:00:10": OF_UTC,
    "20160724220010": OF_UTC,
    "2016-07-25 08:00:10 AEST": OF_SYDNEY,
    "1469397610.123": OF_SECONDS,
    "1469397659.999": OF_SECONDS,
    "1469397610": OF_SECONDS,
    "1469397610999.5": OF_MS,
}


@pytest.mark.some(10)
@pytest.mark.parametrize("written", WRITTEN)
def test_an_instant_of_every_form_is_read_right_or_not_at_all(rows: Any, written: str) -> None:
    content = f"card_id;mode;tapped_at;place\nc;bus;{written};A\n".encode()
    right = [("c", 480, "A", None, "UNKNOWN")]
    would_do = WRITTEN[written]
    assert rows("taps.csv", content, **would_do) == right
    for keys in ({}, DAYS_FIRST, MONTHS_FIRST, OF_SYDNEY, OF_SECONDS, OF_MS):
        test_an_instant = rows("taps.csv", content, **keys)
        assert test_an_instant in ([], right), keys  # never wrong
        if "date_form" in would_do or would_do in (OF_SECONDS, OF_MS):
            assert test_an_instant == (right if keys == would_do else [])


@pytest.mark.parametrize(
    "written",
    [
        *(
            "2016-07-25 08:00 PDT",
            "25/07/16 08:00",
            "2016-07-25",
            "13:00 PM",
            "2016-07-25 13:00 PM",
        ),
        *(
            "2016-07-25 00:10 AM",
            "201607250800",
            "2016-07-25 08",
            "25 Jul 2016 08:00",
            "2016-25-07",
        ),
        *("2016-07-25 08:00 GMT", "2016-07-25 08:00 AEST", "20161301080010", "1469397610.123"),
    ],
)
def test_what_is_no_instant_is_read_under_no_form_of_dates(rows: Any, written: str) -> None:
    content = f"card_id;mode;tapped_at;place\nc;bus;{written};A\n".encode()
    for form in DateForm:
        assert rows("taps.csv", content, date_form=form) == []


def test_a_date_and_a_time_apart_are_read_by_the_same_rule(rows: Any) -> None:
    for date_text, form in (("25.7.2016", DateForm.DAY_FIRST), ("20160725", DateForm.ISO)):
        for time_text in ("8:00 am", "08:00:10", "8", "8:00"):
            content = f"card_id;mode;tap_date;tap_time;place\nc;bus;{date_text};{time_text};A\n"
            test_a_date_and_a_time_apart_are_read = rows(
                "taps.csv", content.encode(), date_form=form
            )
            assert test_a_date_and_a_time_apart_are_read == [("c", 480, "A", None, "UNKNOWN")]


def test_no_date_decides_how_another_one_is_read(rows: Any) -> None:
    """A record that only one order of day and month allows changes nobody else's reading."""
    read = b"card_id;mode;tapped_at;place\nc;bus;25/07/2016 08:00;A\n"
    for other in ("13/25/2016 08:00", "07/25/2016 08:00", "2016-07-25 08:00 PM", "x", "31/12/9999"):
        content = read + f"z;bus;{other};A\n".encode()
        found = rows("taps.csv", content, date_form=DateForm.DAY_FIRST)
        assert [one for one in found if one[0] == "c"] == [("c", 480, "A", None, "UNKNOWN")]


@pytest.mark.parametrize("levels", [12, 13])
def test_a_column_of_too_many_levels_is_refused_by_name(rows: Any, levels: int) -> None:
    """The engine takes minutes for sixty; a column that no feed reads may have twelve."""
    columns = zip(HEADER.split(","), zip(*RECORDS, strict=True), strict=True)
    kind = pa.string()
    for _ in range(levels):
        kind = pa.list_(kind)
    table = pa.table(dict(columns)).append_column("extra", pa.nulls(len(RECORDS), kind))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    if levels <= 12:
        assert rows("taps.parquet", sink.getvalue()) == WANTED
    else:
        with pytest.raises(InputError, match="'extra' is more than 12 levels deep; deliver plain"):
            rows("taps.parquet", sink.getvalue())


@pytest.mark.parametrize(
    ("formats", "shown"),
    [
        (range(14, 18), "2016-07-25"),
        (range(18, 22), "06:00:00"),
        ((22,), "2016-07-25 06:00:00"),
        ((0, 1, 2, 49), "42576.25"),
    ],
)
def test_numbers_of_a_workbook_are_what_their_usual_format_shows(
    formats: Sequence[int], shown: str, tmp_path: Path
) -> None:
    for number in formats:
        style = f"<styleSheet><cellXfs><xf numFmtId='{number}'/></cellXfs></styleSheet>"
        book = tmp_path / f"{number}.xlsx"
        book.write_bytes(workbook([["at"], [42576.25]], xl__styles=style))
        table = as_parquet(RawFile(book.name, book, form_of(book.name)), tmp_path / "rows", 1)
        assert pq.read_table(table).column("at").to_pylist() == [shown]
