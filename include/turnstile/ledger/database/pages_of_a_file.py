"""Rows in the pages of an SQLite file, where its schema, its trees or its length are damaged.

SQLite, "Database File Format": 1.6 pages of a table and what overflows them, 2.1 records, 4.2 the
log beside the file. Read are all pages that hold rows, whatever table they are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

Value = int | str | bytes | None
Row = tuple[Value, ...]

_SIZE = 4096
"""Bytes of a page, unless the file says otherwise."""
_SIZES = {2**power for power in range(9, 16)}
_FILE_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24
_OF_ROWS = 13
"""First byte of a page that holds rows."""
_NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
"""Bytes of a number, by its kind."""
_REAL, _ZERO, _ONE, _TEXT = 7, 8, 9, 13
_MORE = 0x80
"""Of the bytes of an integer those have it that another follows."""


def rows_in(file: Path) -> Iterator[Row]:
    """Yield the rows that are whole, page by page; a real number as None.

    Args:
        file: of a database of which nobody writes. What lies beside it counts as far as it was
            committed.
    """
    log = file.with_name(f"{file.name}-wal")
    content, logged = (part.read_bytes() if part.is_file() else b"" for part in (file, log))
    size = int.from_bytes(content[16:18], "big")
    size = size if size in _SIZES else _SIZE
    pages = {1 + at // size: content[at : at + size] for at in range(0, len(content), size)}
    pages |= _committed(logged, size)
    for number, page in pages.items():
        head = _FILE_HEADER if number == 1 else 0
        if page[head : head + 1] != bytes([_OF_ROWS]):
            continue
        for place in range(head + 8, head + 8 + 2 * _integer(page, head + 3), 2):
            with suppress(IndexError, LookupError, ValueError):
                yield _columns(_payload(pages, page, _integer(page, place), size))


def _integer(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 2], "big")


def _committed(log: bytes, size: int) -> dict[int, bytes]:
    """Return the pages of a write-ahead log as its last commit left them, by number."""
    written: dict[int, bytes] = {}
    committed: dict[int, bytes] = {}
    for at in range(_LOG_HEADER, len(log), _FRAME_HEADER + size):
        header, page = log[at : at + _FRAME_HEADER], log[at + _FRAME_HEADER :][:size]
        if header[8:16] != log[16:24]:  # of an earlier use of the file
            break
        written[int.from_bytes(header[:4], "big")] = page
        if any(header[4:8]):  # the last one of a commit
            committed |= written
    return committed


def _payload(pages: Mapping[int, bytes], page: bytes, at: int, size: int) -> bytes:
    """Return the bytes of a row.

    Raises:
        IndexError: or KeyError or ValueError: they are not all there.
    """
    length, at = _varint(page, at)
    _, at = _varint(page, at)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    local = length
    if length > most:
        local = least + (length - least) % (size - 4)
        local = local if local <= most else least
    content, following = page[at : at + local], page[at + local : at + local + 4]
    while len(content) < length:
        overflow = pages[int.from_bytes(following, "big")]
        content, following = content + overflow[4:], overflow[:4]
    return content[:length]


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
        if place + length > len(payload):
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
