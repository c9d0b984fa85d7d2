"""Delivered text as its reader takes it: UTF-8, fields between commas, double quotes, header first.

What a file is written in is stated by the programme, a byte order mark or the header's own line,
never by a record. Characters that stand for one another are exchanged in every line alike, and
back in every value, so that one reader serves them all: an exchange undoes itself.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from turnstile.programme.source_spec import Delimiter, Encoding, FileSpec, QuoteMark
from turnstile.sources.ingest.landing import RawFile, packing_of, refuse_bomb

BLOCK_BYTES = 1 << 17  # looked at together: larger arrays would be new pages each time
_LONGEST_HEADER_BYTES = 1 << 20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARED = re.compile(rb"""<\?xml[^>]*\sencoding\s*=\s*["']([\w.-]+)["']""")
# With what is more than a byte to ISO-2022-JP and its like, where one record's shift is the next's.
_EVERY_BYTE = b"\\u0041\x1b$B!!" + bytes(range(256)).replace(b"\\]", b"]")
_NO_QUOTE = "\x02"
_QUOTES = {QuoteMark.DOUBLE: '"', QuoteMark.SINGLE: "'", QuoteMark.NONE: _NO_QUOTE}


@dataclass(frozen=True, slots=True)
class PlainText:
    """The text of a file.

    Args:
        chunks: its bytes.
        exchanged: characters that were exchanged with those of `instead`, one by one.
        instead: for what each stands.
        is_as_delivered: whether the bytes are those of the file.
    """

    chunks: Iterator[bytes]
    exchanged: str
    instead: str
    is_as_delivered: bool


def opened(path: Path) -> BinaryIO:
    """Open a file, compressed or not."""
    if packing_of(path.name) == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value] # a GzipFile reads bytes too
    if packing_of(path.name) == ".zst":
        return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")  # type: ignore[no-any-return]
    return path.open("rb")


def plain_text(file: RawFile, spec: FileSpec) -> PlainText:
    """Return the text of a file as its reader takes it.

    Args:
        file: text file, compressed or not.
        spec: how it is written.

    Raises:
        OSError: the file cannot be read to its end; while the chunks are read.
        InputError: a compressed file unpacks to far more than rows do; while they are read.
    """
    delivered = unpacked(file)
    begin = next(delivered, b"")
    chunks: Iterator[bytes] = chain((begin,), delivered)
    encoding = Encoding.UTF_16 if begin.startswith(_UTF_16) else spec.encoding
    is_same = encoding is Encoding.UTF_8 and not packing_of(file.path.name)
    if encoding is not Encoding.UTF_8:
        chunks = _decoded(chunks, encoding)
    for _ in range(spec.header_row - 1):
        _, chunks = _parted(chunks)
        is_same = False
    header, rest = _parted(chunks)
    exchanged, instead = exchange(spec, header.decode(errors="replace"))
    chunks = chain((header,), rest)
    if exchanged:
        table = bytes.maketrans(exchanged.encode(), instead.encode())
        chunks = (chunk.translate(table) for chunk in chunks)
    return PlainText(chunks, exchanged, instead, is_same and not exchanged)


def exchange(spec: FileSpec, header: str) -> tuple[str, str]:
    """Return which characters are exchanged for which, by a programme or else by the header's line.

    Examples:
        >>> exchange(FileSpec(), "a;b")
        (',;', ';,')
        >>> exchange(FileSpec(), "a,b")
        ('', '')
    """
    delimiter = next(
        (candidate for candidate in Delimiter if candidate.character in header), Delimiter.COMMA
    )
    pairs = [(",", (spec.delimiter or delimiter).character), ('"', _QUOTES[spec.quote])]
    both = [(*pair, *reversed(pair)) for pair in pairs if pair[0] != pair[1]]
    return "".join(a + c for a, _, c, _ in both), "".join(b + d for _, b, _, d in both)


def unpacked(file: RawFile) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked."""
    size, taken = file.path.stat().st_size, 0
    with opened(file.path) as stream:
        while chunk := stream.read(BLOCK_BYTES):
            taken += len(chunk)
            refuse_bomb(file.name, size, taken)
            yield chunk


def xml_in_utf_8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a document of XML in UTF-8; what its encoding does not have is no UTF-8 either.

    Raises:
        EOFError: it declares what is no encoding of single bytes.
    """
    begin = next(chunks, b"")
    whole = chain((begin,), chunks)
    if begin.startswith(_UTF_16):
        return _decoded(whole, Encoding.UTF_16)
    declared = _DECLARED.match(begin.removeprefix(codecs.BOM_UTF8).lstrip())
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        letters = _EVERY_BYTE.decode(encoding, "replace")
    except (LookupError, UnicodeError):
        letters = ""
    if len(letters) != len(_EVERY_BYTE) or not _EVERY_BYTE.startswith(letters[:-128].encode()):
        raise EOFError
    return whole if codecs.lookup(encoding).name == "utf-8" else _decoded(whole, encoding)


def _decoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield text in UTF-8; a file that ends within a character is cut off."""
    # What an encoding does not have becomes what is no UTF-8 either, so that its line alone is bad.
    errors = "surrogatepass" if encoding == Encoding.UTF_16 else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", errors)
    yield decoder.decode(b"", final=True).encode("utf-8", errors)


def _parted(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first line with its end, as far as a header may reach, and what follows."""
    begun = b""
    for chunk in chunks:
        begun += chunk
        if b"\n" in chunk or len(begun) > _LONGEST_HEADER_BYTES:
            break
    end = begun.find(b"\n") + 1 or len(begun)
    return begun[:end], chain((begun[end:],) if begun[end:] else (), chunks)
