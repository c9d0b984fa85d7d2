"""Made-up raw records of any feed, as its files hold them: what ingest reads, written.

For the canaries of a release and for tests; what a record looks like is said by its feed's module.
A record is written as a line of CSV or of JSON.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from turnstile.programme.source_spec import DecimalMark, Encoding, FileSpec
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.layout import INSTANTS, NUMBERS, names_in_source
from turnstile.sources.feeds.made_records import MadeReading, MadeTrip, Record
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.ingest.lines import AS_IT_STANDS
from turnstile.sources.ingest.plain_text import exchange

_NUMBERED = "tap_id"


def records_of(programme: Programme, rows: Sequence[MadeTrip | MadeReading]) -> list[Record]:
    """Return the records of trips or observations, numbered in their order where a feed does."""
    layout = layout_of(programme.source.feed)
    names = names_in_source(layout, programme)
    records = [
        {column: _written(value, column, names, programme) for column, value in record.items()}
        for row in rows
        for record in layout.made(row, programme, names)
    ]
    if _NUMBERED not in dict(layout.names):
        return records
    return [{names[_NUMBERED]: f"{number}"} | record for number, record in enumerate(records)]


def _written(value: object, column: str, names: Mapping[str, str], programme: Programme) -> object:
    """Return a value of a made-up record as files of a programme write it."""
    spec = programme.source.written
    if column in {names.get(field) for field in NUMBERS} and spec.decimal is DecimalMark.COMMA:
        return str(value).replace(".", ",")
    if column in {names.get(field) for field in INSTANTS} and (spec.times.of_second or spec.zone):
        local = datetime.fromisoformat(str(value)).replace(tzinfo=programme.time.zone)
        if spec.times.of_second:
            return round(local.timestamp()) * spec.times.of_second
        return f"{local.astimezone(spec.zone):%Y-%m-%dT%H:%M:%S}"
    return value


def csv_lines(records: list[Record], spec: FileSpec = AS_IT_STANDS) -> tuple[str, list[str]]:
    """Return the header of all columns that occur, and a line for each record.

    They are lines as `plain_text` hands them to the reader; `as_delivered` makes files of them.
    """
    columns = list(dict.fromkeys(column for record in records for column in record))
    return _line(columns, spec), [
        _line([record.get(column, "") for column in columns], spec) for record in records
    ]


def as_delivered(lines: bytes, spec: FileSpec) -> bytes:
    """Return lines as they are handed to the reader, a header first, as a file has them.

    A line with a character that the encoding does not have is in no such file, and left out: in
    an encoding that has every byte, what is no UTF-8 would be somebody else's name.
    """
    exchanged, instead = exchange(spec, ",")
    content = b"title\n" * (spec.header_row - 1)
    content += lines.translate(bytes.maketrans(exchanged.encode(), instead.encode()))
    if spec.encoding is Encoding.UTF_8:
        return content
    errors, mark, codec = "strict", b"", str(spec.encoding)
    if spec.encoding is Encoding.UTF_16:
        errors, mark, codec = "surrogatepass", codecs.BOM_UTF16_LE, "utf-16-le"
    chunks = [mark]
    for line in content.removesuffix(b"\n").split(b"\n"):
        with suppress(UnicodeEncodeError):
            text = line.decode(errors="surrogateescape") + "\n"
            chunks.append(text.encode(codec, errors))
    return b"".join(chunks)


def json_lines(records: list[Record]) -> list[str]:
    """Return a line of JSON for each record."""
    return [json.dumps(record) for record in records]


def _line(values: list[str] | list[object], spec: FileSpec) -> str:
    """One line of CSV, without its end; nested values are JSON."""
    texts = (json.dumps(value) if isinstance(value, dict | list) else value for value in values)
    written = io.StringIO()
    translation = str.maketrans(*exchange(spec, ","))
    shown = ("" if cell is None else str(cell).translate(translation) for cell in texts)
    csv.writer(written, lineterminator="").writerow(shown)
    return written.getvalue()
