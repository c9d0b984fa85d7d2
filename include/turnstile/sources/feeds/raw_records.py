"""Made-up raw records of any feed, as its files hold them: what ingest reads, written.

For the canaries of a release and for tests; what a record looks like is said by its feed's module.
A record is written as a line of CSV or of JSON.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
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
Written = Callable[[object], object]


def records_of(programme: Programme, rows: Sequence[MadeTrip | MadeReading]) -> list[Record]:
    """Return the records of trips or observations, numbered in their order where a feed does."""
    layout = layout_of(programme.source.feed)
    names = names_in_source(layout, programme)
    as_written = _as_written(names, programme)
    records = [
        record
        | {column: as_written[column](record[column]) for column in as_written if column in record}
        for row in rows
        for record in layout.made(row, programme, names)
    ]
    if _NUMBERED not in dict(layout.names):
        return records
    return [{names[_NUMBERED]: f"{number}"} | record for number, record in enumerate(records)]


def _as_written(names: Mapping[str, str], programme: Programme) -> dict[str, Written]:
    """Return what makes of values what files of a programme write, by the columns that differ."""
    spec, zone = programme.source.written, programme.time.zone

    def instant(value: object) -> object:
        local = datetime.fromisoformat(str(value)).replace(tzinfo=zone)
        if spec.times.of_second:
            return round(local.timestamp()) * spec.times.of_second
        return f"{local.astimezone(spec.zone):%Y-%m-%dT%H:%M:%S}"

    as_written: dict[str, Written] = {}
    if spec.times.of_second or spec.zone:
        as_written |= {names[field]: instant for field in INSTANTS if field in names}
    if spec.decimal is DecimalMark.COMMA:
        as_written |= {names[field]: _with_comma for field in NUMBERS if field in names}
    return as_written


def _with_comma(value: object) -> object:
    return str(value).replace(".", ",")


def csv_lines(records: list[Record], spec: FileSpec = AS_IT_STANDS) -> tuple[str, list[str]]:
    """Return the header of all columns that occur, and a line for each record.

    They are lines as `plain_text` hands them to the reader; `as_delivered` makes files of them.
    """
    columns = list(dict.fromkeys(column for record in records for column in record))
    written = io.StringIO()
    line = csv.writer(written, lineterminator="")
    translation = str.maketrans(*exchange(spec, ","))
    lines = []
    cells = ([record.get(column, "") for column in columns] for record in records)
    for values in (list[object](columns), *cells):
        line.writerow([_cell(value).translate(translation) for value in values])
        lines.append(written.getvalue())
        written.seek(0)
        written.truncate()
    return lines[0], lines[1:]


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


def _cell(value: object) -> str:
    """One cell of CSV; nested values are JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return "" if value is None else str(value)
