"""A record is a physical line: each line of a text file is judged by its own bytes, before parsing.

A line that a parser could read together with others, or not at all, is taken out and kept as it
came: quotes that do not open at a field's start and close at its end, a carriage return or NUL
within, bytes that are not UTF-8, no byte at all, more than `LONGEST_LINE` bytes. On lines that are
left every quote closes before the line's end, so that whoever reads them reads line by line.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.arrow_columns import texts
from turnstile.programme.source_spec import Delimiter, FileSpec
from turnstile.sources.ingest.landing import RawFile
from turnstile.sources.ingest.plain_text import BLOCK_BYTES, PlainText, opened, plain_text, unpacked

LONGEST_LINE = 1 << 20  # bytes; half of what the engine's reader takes
_LONGEST_KEPT = 1 << 24  # bytes of a line without an end that are kept in the quarantine
_NEWLINE, _BLANK, _QUOTE, _COMMA, _FIRST_NOT_ASCII = 0x0A, 0x20, 0x22, 0x2C, 0x80
_TAB, _RETURN = 0x09, 0x0D
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_QUARANTINE = pa.schema([("fields", pa.string())])
AS_IT_STANDS = FileSpec(delimiter=Delimiter.COMMA)
UNREADABLE = "\ufdd0"  # no character, so no text of people has it
MENDED = "turnstile_unreadable"
_MARK = UNREADABLE.encode()
# In JSON: controls, what may be no escape (half a surrogate pair, `\x`), and each escape.
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f]")
_NO_ESCAPE = re.compile(rb'\\(?:u(?:[dD][89a-fA-F]|(?![0-9a-fA-F]{4}))|[^"\\/bfnrtu])')
_ESCAPED = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    rb'|["\\/bfnrt]|(.))',
    re.DOTALL,
)
_ANY_ESCAPE = re.compile(rb"\\.", re.DOTALL)
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


def _one_of(characters: bytes) -> Flags:
    """Lookup table of bytes, shape (256,)."""
    return np.isin(np.arange(256), np.frombuffer(characters, np.uint8))


_BESIDE_A_FIELD = _one_of(b',\n"')


@dataclass(frozen=True, slots=True)
class PhysicalLines:
    """The lines of one file, sorted into clean and rejected ones.

    Args:
        clean: file with the clean lines only; the delivered one, if it has no others.
        rejected: Parquet file with the rejected lines, a column `fields`.
        first: the first line, clean or not, without its end.
        last_unfinished: the last line, if it has no end; else None.
        count: all lines, the first one and the rejected ones included.
        rejected_count: rejected lines.
        is_first_clean: True if `first` is the first line of `clean`.
        may_have_margins: False if no field of CSV, quoted or not, begins or ends with a blank.
        text: what was exchanged in it.
        is_mended: True if `UNREADABLE` stands in CSV, as it came or for what cannot be decoded.
    """

    clean: Path
    rejected: Path
    first: bytes
    last_unfinished: bytes | None
    count: int
    rejected_count: int
    is_first_clean: bool
    may_have_margins: bool
    text: PlainText
    is_mended: bool


def sort_lines(
    file: RawFile, folder: Path, *, has_quotes: bool, spec: FileSpec = AS_IT_STANDS
) -> PhysicalLines:
    """Look at every line of a file once.

    Args:
        file: text file, compressed (`.gz`) or not.
        folder: empty scratch folder, for a copy (only if there is anything to leave out or unpack)
            and the rejected lines.
        has_quotes: True if a field may be quoted, as in CSV.
        spec: how the file is written; JSON is UTF-8 as it stands.

    Raises:
        OSError: the file cannot be read to its end.
        EOFError: a compressed file ends too soon.
        InputError: a compressed file unpacks to far more than rows do.
    """
    folder.mkdir(parents=True)
    text = plain_text(file, spec)
    with _Sorter(file.path, folder, text, has_quotes=has_quotes) as sorter:
        for block in blocks(text.chunks, b"\n", _LONGEST_KEPT):
            sorter.add(block)
    return sorter.lines()


def first_character(file: RawFile) -> str:
    """Return the first character of a text file that is no space; empty if there is none."""
    with opened(file.path) as stream:
        begin = stream.read(BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK)
    return begin.lstrip()[:1].decode(errors="replace")


def with_marks(file: RawFile, folder: Path) -> Path:
    """Return a JSON text, or its copy in which what is no character stands as `UNREADABLE`.

    Each is told by its own bytes: half a surrogate pair, an escape that is none, a control, bytes
    that are no UTF-8; a tab or the end of a line by the quotes before it.

    Args:
        file: of JSON, compressed or not.
        folder: scratch folder that does not exist yet.
    """
    if all(marked is block for block, marked in _json_blocks(file)):
        return file.path
    folder.mkdir(parents=True)
    copy = folder / "marked"
    with copy.open("wb") as stream:
        stream.writelines(marked for _, marked in _json_blocks(file))
    return copy


def _json_blocks(file: RawFile) -> Iterator[tuple[bytes, bytes]]:
    """Blocks, delivered and marked, that end behind a quote: no character or escape is cut."""
    is_open = False
    for block in blocks(unpacked(file), b'"', sys.maxsize):
        quotes = _ANY_ESCAPE.sub(b"  ", block) if b"\\" in block else block
        yield block, _marked_json(_marked_breaks(block, quotes, is_open=is_open))
        is_open ^= bool(quotes.count(b'"') % 2)


def _marked_breaks(block: bytes, quotes: bytes, *, is_open: bool) -> bytes:
    """Mark tabs and ends of lines within texts; between these they may stand.

    Args:
        block: of JSON.
        quotes: the same bytes without those that are escaped.
        is_open: True if the block begins within a text.
    """
    from_tab = np.frombuffer(block, np.uint8) - np.uint8(_TAB)  # what is below it, far above
    is_break = from_tab <= _RETURN - _TAB
    if not is_break.any():
        return block
    is_text = np.bitwise_xor.accumulate(np.frombuffer(quotes, np.uint8) == _QUOTE) ^ is_open
    within = np.flatnonzero(is_break & is_text)
    ends = [0, *(within + 1)]
    marked = [block[a:b] + _MARK + b"x%02x" % block[b] for a, b in zip(ends, within, strict=False)]
    return b"".join((*marked, block[ends[-1] :])) if marked else block


def _marked_json(block: bytes) -> bytes:
    """Mark what is no character; return the block itself where nothing is, nor looks marked."""
    is_plain = _is_utf8(block) and not _CONTROL.search(block) and not _NO_ESCAPE.search(block)
    if is_plain and _MARK not in block:
        return block
    marked = _ESCAPED.sub(lambda match: _MARK + match[1] if match[1] else match[0], block)
    marked = _CONTROL.sub(lambda match: _MARK + b"x%02x" % match[0][0], marked)
    return marked.decode(errors=MENDED).encode()


def blocks(chunks: Iterator[bytes], ending: bytes, longest_kept: int) -> Iterator[bytes]:
    """Blocks that end where a line ends, or with another character; the last one as the file does.

    A line beyond so many bytes loses its rest; it is far too long to be a record.
    """
    begun: list[bytes] = []
    begun_bytes = 0
    for chunk in chunks:
        end = chunk.rfind(ending) + 1
        if end:
            yield b"".join((*begun, chunk[:end]))
            begun, begun_bytes = [], 0
        if begun_bytes < longest_kept:
            begun.append(chunk[end:])
            begun_bytes += len(begun[-1])
    if rest := b"".join(begun):
        yield rest


class _Sorter:
    """Adds up what the blocks of a file hold."""

    def __init__(self, path: Path, folder: Path, text: PlainText, *, has_quotes: bool) -> None:
        self._path, self._folder, self._has_quotes = path, folder, has_quotes
        self._text, self._is_mended = text, False
        self._copy: BinaryIO | None = None
        self._rejected: pq.ParquetWriter | None = None
        self._taken = self._count = self._rejected_count = 0
        self._first: tuple[bytes, bool] | None = None
        self._last: bytes | None = None
        self._may_have_margins = not has_quotes  # what JSON escapes may be a blank too

    def add(self, delivered: bytes) -> None:
        """Sort the lines of one block."""
        block = delivered
        if self._first is None:
            block = block.removeprefix(_BYTE_ORDER_MARK)
        if b"\r" in block:  # is found at a tenth of the cost of the pair
            block = block.replace(b"\r\n", b"\n")
        self._is_mended |= self._has_quotes and _MARK in block  # whatever others' bytes are
        if self._has_quotes and not _is_utf8(block):
            self._begin_copy()
            self._is_mended = True
            block = block.decode(errors=MENDED).encode()
        ends, quotes, bad = _sorted_lines(block, has_quotes=self._has_quotes)
        self._may_have_margins = self._may_have_margins or _may_have_margins(block, quotes, bad)
        if self._first is None:
            self._first = (block[: ends[0]], not bad[0])
        self._last = None if block.endswith(b"\n") else block  # of one line: _blocks
        self._count += len(ends)
        if len(block) < len(delivered) or bad.any():
            self._begin_copy()
        if self._copy is not None:
            self._copy.write(self._without(block, ends, bad) if bad.any() else block)
        self._taken += len(delivered)

    def __enter__(self) -> Self:
        """Begin with the copy of a file whose bytes are not read as they are."""
        if not self._text.is_as_delivered:
            self._begin_copy()
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was written."""
        for written in (self._rejected, self._copy):
            if written is not None:
                written.close()

    def lines(self) -> PhysicalLines:
        """Return what was found; call it when all is written."""
        first, is_first_clean = self._first or (b"", False)
        return PhysicalLines(
            clean=self._path if self._copy is None else self._copy_path,
            rejected=self._rejected_path,
            first=first,
            last_unfinished=self._last,
            count=self._count,
            rejected_count=self._rejected_count,
            is_first_clean=is_first_clean,
            may_have_margins=self._may_have_margins,
            text=self._text,
            is_mended=self._is_mended,
        )

    @property
    def _copy_path(self) -> Path:
        return self._folder / "clean"

    @property
    def _rejected_path(self) -> Path:
        return self._folder / "rejected.parquet"

    def _begin_copy(self) -> None:
        """Copy what was clean so far, once something must be left out."""
        if self._copy is not None:
            return
        self._copy = self._copy_path.open("wb")
        with self._path.open("rb") as stream:
            left = self._taken
            while left and (chunk := stream.read(min(left, BLOCK_BYTES))):
                self._copy.write(chunk)
                left -= len(chunk)

    def _without(self, block: bytes, ends: Places, bad: Flags) -> bytes:
        """Return a block without its bad lines, which are kept beside it."""
        begins = np.concatenate(([0], ends[:-1] + 1))
        lines = [block[a:b] for a, b in zip(begins[bad], ends[bad], strict=True)]
        self._rejected_count += len(lines)
        if self._rejected is None:
            self._rejected = pq.ParquetWriter(self._rejected_path, _QUARANTINE)
        kept = [line.decode(errors="backslashreplace").replace("\0", "\\x00") for line in lines]
        if self._is_mended:
            kept = [line.replace(UNREADABLE, "\\") for line in kept]
        self._rejected.write_table(pa.table([texts(kept)], schema=_QUARANTINE))
        keeps = np.repeat(~bad, ends - begins + 1)[: len(block)]
        return np.frombuffer(block, np.uint8)[keeps].tobytes()


def _sorted_lines(block: bytes, *, has_quotes: bool) -> tuple[Places, Places, Flags]:
    """Return the end of each line of a block, all quotes, and whether a line must be left out."""
    content = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(content == _NEWLINE)
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    lengths = ends.copy()
    lengths[1:] -= ends[:-1] + 1
    bad: Flags = (lengths == 0) | (lengths > LONGEST_LINE)
    for character in (b"\0", b"\r"):
        if character in block:
            positions = np.flatnonzero(content == character[0])
            bad[np.searchsorted(ends, positions)] = True
    if not has_quotes:  # CSV is mended before
        _mark_not_utf8(block, content, ends, bad)
    quotes = np.flatnonzero(content == _QUOTE) if has_quotes else ends[:0]
    if len(quotes):
        _mark_unbalanced(content, ends, quotes, bad)
    return ends, quotes, bad


def _is_utf8(block: bytes) -> bool:
    """Return whether bytes can be decoded."""
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _marked(error: UnicodeError) -> tuple[str, int]:
    """Mark bytes that are no character, and say which; a line's end never is among them."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(f"{UNREADABLE}x{byte:02x}" for byte in bad), error.end


codecs.register_error(MENDED, _marked)


def _may_have_margins(block: bytes, quotes: Places, bad: Flags) -> bool:
    """Return whether a field of these lines may begin or end with a blank, of any script.

    A blank beside a comma within quotes is no margin; where quotes do not balance it may be one.
    """
    if not block.isascii():
        return True
    content = np.frombuffer(block, np.uint8)
    blank = content == _BLANK
    if blank[:1].any() or blank[-1:].any():  # a block of a byte order mark alone has neither
        return True
    if blank[quotes - 1].any() or blank.take(quotes + 1, mode="clip").any():
        return True
    separator = content == _COMMA
    separator |= content == _NEWLINE
    beside = separator[2:] | separator[:-2]
    beside &= blank[1:-1]
    positions = np.flatnonzero(beside) + 1
    if not len(positions) or bad.any():
        return bool(len(positions))
    is_within = np.searchsorted(quotes, positions) & 1
    return not is_within.all()


def _mark_not_utf8(block: bytes, content: Bytes, ends: Places, bad: Flags) -> None:
    """Mark the lines that are not UTF-8."""
    if _is_utf8(block):
        return
    positions = np.flatnonzero(content >= _FIRST_NOT_ASCII)
    begins = np.concatenate(([0], ends[:-1] + 1))
    for line in np.unique(np.searchsorted(ends, positions)):
        if not _is_utf8(block[begins[line] : ends[line]]):
            bad[line] = True


def _mark_unbalanced(content: Bytes, ends: Places, quotes: Places, bad: Flags) -> None:
    """Mark the lines whose quotes do not enclose their fields (RFC 4180, 2.5 to 2.7).

    Within a line quotes open and close in turns; a doubled one closes and opens at once. So the
    first, third, ... stands at the begin of a field or right behind the one before it, the second,
    fourth, ... at the end of a field or right before the next one, and their number is even.
    """
    before_end = np.searchsorted(quotes, ends)
    opening, closing = quotes[::2], quotes[1::2]
    if (before_end & 1).any():
        of_line = np.diff(before_end, prepend=0)
        bad |= of_line % 2 == 1
        rank = np.arange(len(quotes)) - np.repeat(before_end - of_line, of_line)
        opening, closing = quotes[rank % 2 == 0], quotes[rank % 2 == 1]
    is_wrong = ~_BESIDE_A_FIELD[content[opening - 1]]
    if len(opening) and opening[0] == 0:
        is_wrong[0] = False
    is_left_open = ~_BESIDE_A_FIELD[content.take(closing + 1, mode="clip")]
    if len(closing) and closing[-1] + 1 == len(content):
        is_left_open[-1] = False
    if is_wrong.any() or is_left_open.any():
        wrong = np.concatenate((opening[is_wrong], closing[is_left_open]))
        bad[np.searchsorted(ends, wrong)] = True
