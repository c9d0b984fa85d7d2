"""Rows in the pages of an SQLite file, where its schema, its trees or its length are damaged.

SQLite, "Database File Format": 1.6 pages of a table and what overflows them, 2.1 records, 4.2 the
log beside the file. Read are all pages that hold rows, whatever table they are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Value = int | str | bytes | None
Row = tuple[Value, ...]

_MAGIC = b"SQLite format 3\0"
_SIZE = 4096
"""Bytes of a page, where the head of the file does not say it."""
_SIZES = {2**power for power in range(9, 17)}
_FILE_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24
_OF_ROWS = 13
"""First byte of a page that holds rows."""
_NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
"""Bytes of a number, by its kind."""
_REAL, _ZERO, _ONE, _TEXT = 7, 8, 9, 13
_MORE = 0x80
"""Of the bytes of an integer those have it that another follows."""
_AGAIN = 4
"""How often all bytes are read at most: rows that share them would fill any memory."""


def rows_in(file: Path) -> Iterator[Row]:
    """Yield the rows that are whole, page by page; a real number as None.

    Rows that an older page still holds are among them.

    Args:
        file: of a database of which nobody writes. What lies beside it counts as far as it was
            committed.
    """
    log = file.with_name(f"{file.name}-wal")
    content, logged = (part.read_bytes() if part.is_file() else b"" for part in (file, log))
    size, usable = _sizes(content)
    pages = {1 + at // size: content[at : at + size] for at in range(0, len(content), size)}
    committed = _committed(logged, size)
    overflows = _Overflows(pages | committed, usable, _AGAIN * (len(pages) + len(committed)))
    for number, page in (*pages.items(), *committed.items()):
        head = _FILE_HEADER if number == 1 else 0
        if page[head : head + 1] != bytes([_OF_ROWS]):
            continue
        end, room = head + 8 + 2 * _integer(page, head + 3), _AGAIN * size
        for place in range(head + 8, min(end, size - 1), 2):
            with suppress(IndexError, LookupError, ValueError):
                length, content, following = _cell(page, _integer(page, place), usable)
                room -= len(content)
                if room < 0:
                    break
                yield _columns(content + overflows.read(length - len(content), following))


def _sizes(content: bytes) -> tuple[int, int]:
    """Return the bytes of a page, and how many of them SQLite uses."""
    stated = int.from_bytes(content[16:18], "big")
    size = max(_SIZES) if stated == 1 else stated
    is_said = content.startswith(_MAGIC) and size in _SIZES
    return (size, size - content[20]) if is_said else (_SIZE, _SIZE)


def _integer(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 2], "big")


def _committed(log: bytes, size: int) -> dict[int, bytes]:
    """Return the pages of a write-ahead log as its last commit left them, by number."""
    written: dict[int, bytes] = {}
    committed: dict[int, bytes] = {}
    for at in range(_LOG_HEADER, len(log), _FRAME_HEADER + size):
        header = log[at : at + _FRAME_HEADER]
        if header[8:16] != log[16:24]:  # of an earlier use of the file
            break
        place = at + _FRAME_HEADER
        written[int.from_bytes(header[:4], "big")] = log[place : place + size]
        if any(header[4:8]):  # the last one of a commit
            committed |= written
            written.clear()
    return committed


def _cell(page: bytes, at: int, usable: int) -> tuple[int, bytes, int]:
    """Return how long a row is, what its page holds of it, and the page where it goes on.

    Raises:
        IndexError: it is none.
    """
    length, at = _varint(page, at)
    _, at = _varint(page, at)
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    local = length
    if length > most:
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
    end = at + local
    return length, page[at:end], int.from_bytes(page[end : end + 4], "big")


@dataclass(slots=True)
class _Overflows:
    """What pages do not hold of their rows.

    Args:
        pages: of the database, by number.
        usable: bytes of a page that SQLite uses.
        left: how many pages are still read; a row in a circle ends, too.
    """

    pages: Mapping[int, bytes]
    usable: int
    left: int

    def read(self, length: int, number: int) -> bytes:
        """Return the rest of a row.

        Raises:
            LookupError: or ValueError: it is not all there.
        """
        parts = list[bytes]()
        while length > 0:
            page, self.left = self.pages[number], self.left - 1
            if self.left < 0:
                raise ValueError("rows share their pages")
            parts.append(page[4 : min(self.usable, 4 + length)])
            length -= self.usable - 4
            number = int.from_bytes(page[:4], "big")
        return b"".join(parts)


def _columns(payload: bytes) -> Row:
    """Return what a row holds.

    Raises:
        IndexError: or ValueError: it is none.
    """
    end, at = _varint(payload, 0)
    kinds, columns, place = [], list[Value](), end
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    for kind in kinds:
        length = (kind - _TEXT + 1) // 2 if kind > _ONE else _NUMBERS.get(kind, 0)
        if not 0 <= length <= len(payload) - place:
            raise ValueError("a row that ends before its columns do")
        written, place = payload[place : place + length], place + length
        columns.append(_value(kind, written))
    return tuple(columns)


def _value(kind: int, written: bytes) -> Value:
    if kind > _ONE:
        return written.decode() if kind % 2 else written
    if kind in {_ZERO, _ONE}:
        return kind - _ZERO
    return int.from_bytes(written, "big", signed=True) if kind and kind != _REAL else None


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes, and where it ends.

    Raises:
        IndexError: it does not.
    """
    value = 0
    for place in range(at, at + 8):
        value = value * _MORE + content[place] % _MORE
        if content[place] < _MORE:
            return value, place + 1
    return value << 8 | content[at + 8], at + 9
