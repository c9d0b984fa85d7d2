"""SIRI Vehicle Monitoring documents (`.xml`): a record for each `VehicleActivity`.

A column is called by the path of its element below it, without namespaces:
`MonitoredVehicleJourney.VehicleLocation.Latitude`. Of an element that is there twice the first one
is read, and what lies deeper than a record is. A document with a type declaration is refused: it
could be a few lines that become gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

from turnstile.sources.ingest.document_record import Found

RECORD = "VehicleActivity"
_DEEPEST, _LONGEST = 12, 1 << 16  # elements within a record; characters of a text


class _Records:
    """Collects the texts of the elements of one record after the other."""

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self._wanted = frozenset(wanted)
        self._path: list[str] | None = None
        self._text, self._size = [""], 0
        self._record: dict[str, str] = {}
        self.records: list[Found] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = _refuse

    def _begin(self, name: str, _: object) -> None:
        tag = name.rpartition(" ")[2]
        self._text, self._size = [], 0
        if self._path is not None:
            self._path.append(tag)
        elif tag == RECORD:
            self._path, self._record = [], {}

    def _characters(self, text: str) -> None:
        self._size += len(text)
        if self._path and len(self._path) <= _DEEPEST and self._size <= _LONGEST:
            self._text.append(text)

    def _end(self, _: str) -> None:
        if self._path:
            # how the parser cuts a long text depends on what stands before it: such one is none
            if len(self._path) <= _DEEPEST and self._size <= _LONGEST:
                path, text = ".".join(self._path), "".join(self._text).strip()
                if text and path in self._wanted:
                    self._record.setdefault(path, text)
            self._text, self._size = [], 0
            self._path.pop()
        elif self._path is not None:
            self.records.append(self._record)
            self._path = None


def _refuse(*_: object) -> None:
    raise EOFError


def records(chunks: Iterator[bytes], wanted: tuple[str, ...]) -> Iterator[Found]:
    """Yield the records of a document.

    Raises:
        EOFError: it is no well-formed document, or declares a type.
    """
    reader = _Records(wanted)
    try:
        for chunk in chunks:
            reader.parser.Parse(chunk)
            yield from reader.records
            reader.records.clear()
        reader.parser.Parse(b"", True)
    except expat.ExpatError:
        raise EOFError from None
    yield from reader.records
