"""Records in files without lines: SIRI as XML, GTFS-realtime as protobuf, workbooks, Arrow.

Each record is bytes of its own, so that a hostile one can stand in its place.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

import pyarrow as pa
from hostile_lines import Spoil
from pyarrow import feather

from turnstile.sources.feeds.made_records import Record
from turnstile.sources.ingest.gtfs_realtime import message_of

# No document of XML has these characters, not even escaped.
_NO_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# ---------------------------------------------------------------- SIRI

NOT_WELL_FORMED = (
    *("A & B", "a\x01b", "&#0;", "&#x1f;", "&nbsp;", "a < b", "]]>", "\ufffe", "\udcff", "<!--"),
    *("<!-- a -- b -->", "<e>", "</e>", '<e a="1" a="2"/>', "<?xml version='1.0'?>"),
    *("<!DOCTYPE s>", "<e></VehicleRef>", "<![CDATA["),
    *("<VehicleActivity>", "</VehicleActivity>", "<VehicleActivity/>"),
)
"""What software that puts documents together by hand writes in a name, and what else is no XML."""
_BEGIN, _END = b"<VehicleActivity>", b"</VehicleActivity>"


def document(activities: Sequence[bytes]) -> bytes:
    """A document; what its first and last activities lack it lacks not."""
    begin = b'<Siri xmlns="http://www.siri.org.uk/siri"><VehicleMonitoringDelivery>'
    return b"".join([begin, *activities, b"</VehicleMonitoringDelivery></Siri>"])


def activity(record: Record) -> bytes:
    """A record, whose columns are paths of elements."""
    nested: dict[str, Any] = {}
    for path, value in record.items():
        *outer, last = path.split(".")
        inner = nested
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return _BEGIN + _elements(nested).encode() + _END


def _elements(nested: Mapping[str, Any]) -> str:
    def inside(value: object) -> str:
        return _elements(value) if isinstance(value, dict) else _escaped(value)

    return "".join(f"<{name}>{inside(value)}</{name}>" for name, value in nested.items())


def _escaped(value: object) -> str:
    return escape(_NO_XML.sub("", str(value)))


def _with_text(text: str) -> Spoil:
    more = text.encode(errors="surrogateescape")
    return lambda activity: activity.removesuffix(_END) + more + _END


XML: list[Spoil] = [
    *map(_with_text, (*NOT_WELL_FORMED, '<a:b a:nil="true"/>', "<a>" * 40 + "</a>" * 40)),
    lambda activity: activity[: len(activity) // 2],
    lambda activity: activity[: len(_BEGIN)] + activity,
    lambda activity: activity.replace(b"VehicleRef>", b"VehicleRef >", 1),
    lambda _: b"stray" + _END,
]

# ---------------------------------------------------------------- GTFS-realtime


def message(entities: Sequence[bytes]) -> bytes:
    """A message of entities."""
    return bytes(message_of("FeedMessage")(entity=entities).SerializeToString())


def entity(record: Record, zone: ZoneInfo) -> bytes:
    """A record, whose columns are paths of fields; what a field cannot hold is left out."""
    made = message_of("FeedEntity")(id=b"x")
    for path, value in record.items():
        *outer, last = path.split(".")
        inner = made
        for name in outer:
            inner = getattr(inner, name)
            if not hasattr(inner, "DESCRIPTOR"):  # one of several
                inner = inner[0] if len(inner) else inner.add()
        kind = type(getattr(inner, last))
        with suppress(ValueError):
            setattr(inner, last, str(value).encode() if kind is bytes else kind(_at(value, zone)))
    return bytes(made.SerializeToString())


def _at(value: object, zone: ZoneInfo) -> Any:
    """Seconds since 1970 of a written time."""
    if isinstance(value, str) and "T" in value:
        return datetime.fromisoformat(value).replace(tzinfo=zone).timestamp()
    return value


PROTOBUF: list[Spoil] = [
    lambda entity: entity[: len(entity) // 2],
    lambda entity: entity + entity,
    lambda entity: entity + b"\x10\x01",  # is deleted
    lambda entity: entity + b"\xfa\x3f\x03abc",  # a field of tomorrow
    lambda entity: entity + b"\x2b",  # a group without an end
    lambda entity: entity + b"\x22\x02\x28\xff",  # a number without an end
    lambda entity: entity.replace(b"unit", b"\xff\xfe\0\n"),
    lambda _: b"",
    lambda _: b"\0",
    lambda _: b"\x22\x7f" * 200,
]

# ---------------------------------------------------------------- workbooks and Arrow

CELLS = (
    *(b'<c t="s"><v>-1</v></c>', b'<c t="s"><v>99999999</v></c>', b'<c t="e"><v>#N/A</v></c>'),
    *(b'<c s="1"><v>1e300</v></c>', b'<c s="1"><v>nan</v></c>', b'<c s="99"><v>1</v></c>'),
    *(b'<c t="b"><v>1</v></c>', b"<c/>", b"<c><v>1</v><v>2</v></c>", b"<c><f>A1</f></c>"),
    *(b'<c t="str"><v>a\x01</v></c>', b'<c t="str"><v>&#xD83D;</v></c>'),
    *(b'<c t="str"><v>\xff</v></c>', b'<c x:y="1"><v>1</v></c>'),
    *(b'<c r="XFD1"><v>1</v></c>', b'<c t="inlineStr"><is><t>a&#10;b</t></is></c>'),
)
"""Cells that hold nothing that can be read, or something else than their column's others."""
BYTES = (b"\xff", b"\xed\xa0\x80", b"a\0b", b"", b"t" * 9999)
"""Texts that are none, or odd ones."""
Write = Callable[[list[Record], Sequence[str]], bytes]


def workbook(records: list[Record], columns: Sequence[str]) -> bytes:
    """A workbook of one sheet: texts in turn shared and within; bytes stand as a cell."""
    shared: list[str] = []
    cells = [[_cell(n, name, shared) for n, name in enumerate(columns)]]
    cells += [[_cell(n, r.get(name), shared) for n, name in enumerate(columns)] for r in records]
    rows = b"".join(b"<row>%s</row>" % b"".join(row) for row in cells)
    parts = {
        "xl/workbook.xml": b"<workbook/>",
        "xl/styles.xml": b'<a><cellXfs><xf/><xf numFmtId="22"/></cellXfs></a>',
        "xl/sharedStrings.xml": f"<sst>{''.join(shared)}</sst>".encode(),
        "xl/worksheets/sheet1.xml": b"<worksheet><sheetData>%s</sheetData></worksheet>" % rows,
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def _cell(column: int, value: object, shared: list[str]) -> bytes:
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    place = f'r="{chr(65 + column)}1"'  # of whichever row: it is the element's
    if isinstance(value, int | float):
        return f"<c {place}><v>{value}</v></c>".encode()
    text = _escaped(value if isinstance(value, str) else json.dumps(value))
    if len(text) % 2:
        return f'<c {place} t="inlineStr"><is><t>{text}</t></is></c>'.encode()
    shared.append(f"<si><t>{text}</t></si>")
    return f'<c {place} t="s"><v>{len(shared) - 1}</v></c>'.encode()


def arrow(records: list[Record], columns: Sequence[str]) -> bytes:
    """A table of texts, of any bytes."""
    written = io.BytesIO()
    cells = {
        name: pa.array([_bytes(record.get(name)) for record in records], pa.binary())
        for name in columns
    }
    table = pa.table({name: column.view(pa.string()) for name, column in cells.items()})
    feather.write_feather(table, written, compression="uncompressed")
    return written.getvalue()


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="surrogateescape")
