"""SIRI Vehicle Monitoring documents (`.xml`): a record for each `VehicleActivity`.

A column is called by the path of its element below it, without namespaces:
`MonitoredVehicleJourney.VehicleLocation.Latitude`. Of an element that is there twice the first one
is read, and what lies deeper than a record is. A record ends with the next end tag, and is parsed
by itself, in a comment too: one that is not well-formed, or has no end, costs itself. Where what a
vehicle is in and when is there twice, a record without an end stands before what lacks its begin:
neither is one. What is left without the records is the frame; one that is broken or declares a type
is refused: it could be a few lines that become gigabytes. What the first record lacks of its begin
ends where its delivery begins, and what the last one lacks of its end where that ends. Between
records the frame is the tags of deliveries; else it is nothing or, not well-formed, what is left of
a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.parsers import expat

from turnstile.sources.ingest.document_record import Found
from turnstile.sources.ingest.plain_text import xml_in_utf_8

RECORD, _PREFIX = "VehicleActivity", rb"(?:[^\s<>/!?:]+:)?"
_DEEPEST, _LONGEST = 12, 1 << 16  # elements within a record; characters of a text
_JOURNEY = "MonitoredVehicleJourney"
_PLACE = f"{_JOURNEY}.VehicleLocation"
_ONCE = frozenset(
    {"RecordedAtTime", "ValidUntilTime", _JOURNEY, f"{_JOURNEY}.VehicleRef", _PLACE}
    | {f"{_PLACE}.Longitude", f"{_PLACE}.Latitude"}
)  # of SIRI's elements: a record has one of each
_TAG = _PREFIX + RECORD.encode()
_BEGIN = re.compile(rb"<%s(?=[\s/>])" % _TAG)
_END = re.compile(rb"</%s\s*>|<%s(?:\s[^<>]*)?/>" % (_TAG, _TAG))
_DELIVERY = _PREFIX + b"VehicleMonitoringDelivery"
_BORDER = re.compile(rb"</?%s(?:\s[^<>]*)?>" % _DELIVERY)
_DELIVERY_BEGIN = re.compile(rb"<%s(?:\s[^<>]*)?(?<!/)>" % _DELIVERY)
_DELIVERY_END = re.compile(rb"</%s\s*>" % _DELIVERY)


class _Texts:
    """Collects the texts of the elements of one record, and where another's begin."""

    def __init__(self, wanted: frozenset[str], parser: expat.XMLParserType) -> None:
        self._wanted, self._parser = wanted, parser
        self._begun: set[str] = set()
        self.others: list[int] = []
        self._path: list[str] = []  # the record's own name is the first
        self._text, self._size = [""], 0
        self.record: dict[str, str] = {}

    def begin(self, name: str, _: object) -> None:
        self._path.append(name.rpartition(":")[2])
        self._text, self._size = [], 0
        if len(self._path) <= _DEEPEST and (path := ".".join(self._path[1:])) in _ONCE:
            if path in self._begun:
                self.others.append(self._parser.CurrentByteIndex)
                self._begun.clear()
            self._begun.add(path)

    def characters(self, text: str) -> None:
        self._size += len(text)
        if len(self._path) <= _DEEPEST + 1 and self._size <= _LONGEST:
            self._text.append(text)

    def end(self, _: str) -> None:
        if len(self._path) <= _DEEPEST + 1 and self._size <= _LONGEST:
            path, text = ".".join(self._path[1:]), "".join(self._text).strip()
            if text and path in self._wanted:
                self.record.setdefault(path, text)
        self._text, self._size = [], 0
        self._path.pop()


def records(chunks: Iterator[bytes], wanted: tuple[str, ...]) -> Iterator[Found]:
    """Yield the records of a document, and what is none.

    Raises:
        EOFError: its frame is not well-formed, declares a type, or an encoding that is none.
    """
    frame, columns = expat.ParserCreate("utf-8"), frozenset(wanted)
    frame.StartDoctypeDeclHandler = _refuse
    try:
        for between, halves, record in _parts(xml_in_utf_8(chunks)):
            frame.Parse(between)
            yield from halves
            if record:
                yield from _read(record, columns)
        frame.Parse(b"", True)
    except expat.ExpatError:
        raise EOFError from None


def _parts(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, list[bytes], bytes]]:
    """Yield what stands before each record, what has a begin or an end alone, and the record."""
    text, searched, is_first = bytearray(), 0, True
    for chunk in chunks:
        text += chunk
        if b">" not in chunk:
            continue  # no tag ends here, and what began is not looked at again and again
        ends = [0, *(end.end() for end in _END.finditer(text, searched))]
        for part_begin, part_end in pairwise(ends):
            yield _part(bytes(text[part_begin:part_end]), is_first=is_first)
            is_first = False
        del text[: ends[-1]]
        begun = text.rfind(b"<", max(searched - ends[-1], 0))
        searched = len(text) if begun < 0 or b">" in text[begun:] else begun
    yield from _last(bytes(text), is_first=is_first)


def _part(part: bytes, *, is_first: bool) -> tuple[bytes, list[bytes], bytes]:
    """Return of what ends with a record what stands before it, what has no end, and the record."""
    begins = [begin.start() for begin in _BEGIN.finditer(part)]
    if not begins:
        delivery = _DELIVERY_BEGIN.search(part) if is_first else None
        begin = delivery.end() if delivery else 0
        return part[:begin], [part[begin:]], b""
    frame, odd = _between(part[: begins[0]], is_first=is_first)
    return frame, [*odd, *(part[a:b] for a, b in pairwise(begins))], part[begins[-1] :]


def _last(rest: bytes, *, is_first: bool) -> Iterator[tuple[bytes, list[bytes], bytes]]:
    """Yield what stands after the last record, and records without an end."""
    begins = [begin.start() for begin in _BEGIN.finditer(rest)]
    ends = [end.start() for end in _DELIVERY_END.finditer(rest, begins[0] if begins else 0)]
    if not ends or (is_first and not begins):
        yield rest, [], b""
        return
    places = [*begins, ends[-1]]
    frame, odd = _between(rest[: places[0]], is_first=is_first)
    yield frame, [*odd, *(rest[a:b] for a, b in pairwise(places))], b""
    yield rest[ends[-1] :], [], b""


def _between(text: bytes, *, is_first: bool) -> tuple[bytes, list[bytes]]:
    """Return what is of the frame where no record is, and what beside it is not well-formed."""
    borders = [*_BORDER.finditer(text)]
    end = borders[-1].end() if borders else len(text) if is_first else 0
    begin = borders[0].start() if borders and not is_first else 0
    beside = (piece for piece in (text[:begin], text[end:]) if piece.strip())
    read = ((piece, _read(b"<e>%s</e>" % piece, frozenset())) for piece in beside)
    return text[begin:end], [piece for piece, texts in read if isinstance(texts[0], bytes)]


def _read(record: bytes, wanted: frozenset[str]) -> list[Found]:
    """Return the texts of a record; itself, not well-formed; or what several have left of it."""
    parser = expat.ParserCreate("utf-8")
    texts = _Texts(wanted, parser)
    parser.StartElementHandler, parser.EndElementHandler = texts.begin, texts.end
    parser.CharacterDataHandler = texts.characters
    try:
        parser.Parse(record, True)
    except expat.ExpatError:
        return [record]
    if not texts.others:
        return [texts.record]
    return [record[a:b] for a, b in pairwise([0, *texts.others, len(record)])]


def _refuse(*_: object) -> None:
    raise EOFError
