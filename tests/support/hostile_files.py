"""Whole files that try to crash a reader, to fill its memory, or to reach other files.

Hostile *lines* are in `hostile_lines.py`. Every file is made from scratch: nothing of the size that
it claims lies in the repository.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

Content = Callable[[], bytes]
MIB = 1 << 20
_RANDOM = random.Random(1).randbytes(MIB)  # noqa: S311 - a test's
HEADER = (
    b"card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    b"tap_off_date,tap_off_time,tap_off_location\n"
)
GOOD = b"3085000000000001,train,2016-07-25,08:01,A Station,2016-07-25,08:59,B Station\n"


def _gzip_of(piece: bytes, times: int) -> bytes:
    """Compress one piece many times over, without holding them all."""
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1, mtime=0) as stream:
        for _ in range(times):
            stream.write(piece)
    return target.getvalue()


def _zip_of(members: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 1)
    return target.getvalue()


def _flagged(content: bytes, flag: int) -> bytes:
    """Set a flag in every header of an archive: 1 is `encrypted`."""
    for magic, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = content.find(magic)
        while at >= 0:
            content = content[: at + offset] + struct.pack("<H", flag) + content[at + offset + 2 :]
            at = content.find(magic, at + 4)
    return content


def _wrong_sum(content: bytes) -> bytes:
    """Change one byte of the first member's content."""
    at = content.find(b"PK\1\2") - 3
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


def _changed_amid(content: bytes) -> bytes:
    """Change the middle of what is compressed."""
    middle = len(content) // 3
    return (
        content[:middle]
        + bytes(byte ^ 0xFF for byte in content[middle:][:8])
        + content[middle + 8 :]
    )


def _table(columns: Mapping[str, pa.Array] | None = None, rows: int = 3) -> bytes:
    names = HEADER.decode().strip().split(",")
    values = GOOD.decode().strip().split(",")
    if columns is None:
        columns = {n: pa.array([v] * rows) for n, v in zip(names, values, strict=True)}
    target = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), target)
    return target.getvalue()


def _long_table() -> bytes:
    """Four million equal rows in a few kilobytes: runs of one dictionary entry."""
    names = HEADER.decode().strip().split(",")
    values = GOOD.decode().strip().split(",")
    piece = pa.table(
        {
            n: pa.DictionaryArray.from_arrays(pa.array([0] * MIB, pa.int32()), pa.array([v]))
            for n, v in zip(names, values, strict=True)
        }
    )
    target = io.BytesIO()
    with pq.ParquetWriter(target, piece.schema, compression="zstd") as writer:
        for _ in range(4):
            writer.write_table(piece)
    return target.getvalue()


def _nested(depth: int) -> pa.Array:
    kind: pa.DataType = pa.string()
    value: object = "x"
    for _ in range(depth):
        kind, value = pa.list_(kind), [value]
    return pa.array([value], kind)


def _footer_of(length: int) -> bytes:
    """Claim another length of the footer."""
    content = _table()
    return content[:-8] + struct.pack("<I", length) + b"PAR1"


def _with_column(name: str, array: pa.Array) -> bytes:
    names = HEADER.decode().strip().split(",")
    return _table({n: pa.array(["x"] * len(array)) for n in names} | {name: array})


def _flipped(seed: int) -> bytes:
    """Change a few bytes of a good Parquet file."""
    chance, content = random.Random(seed), bytearray(_table())  # noqa: S311 - a test's
    for _ in range(chance.randint(1, 6)):
        content[chance.randrange(4, len(content))] = chance.randrange(256)
    return bytes(content)


def _record(**more: object) -> bytes:
    names = HEADER.decode().strip().split(",")
    values = GOOD.decode().strip().split(",")
    return json.dumps(dict(zip(names, values, strict=True)) | more).encode()


_ZIPPED = HEADER + GOOD
GOOD_FILES: dict[str, Content] = {
    "a.csv": lambda: HEADER + GOOD * 20,
    "a.csv.gz": lambda: gzip.compress(HEADER + GOOD * 20),
    "a.json": lambda: b"\n".join([_record()] * 20),
    "a.ndjson": lambda: b"\n".join([_record()] * 20),
    "a.parquet": lambda: _table(rows=20),
    "a.zip": lambda: _zip_of({"a.csv": HEADER + GOOD * 20}),
}
_TABLE = b"mode,date,tap,time,loc,count\n" + b"train,20160725,on,07:15,Town,20\n" * 20
GOOD_TABLES: dict[str, Content] = {  # of somebody else's release
    "a.csv": lambda: _TABLE,
    "a.csv.gz": lambda: gzip.compress(_TABLE),
    "a.zip": lambda: _zip_of({"a.csv": _TABLE}),
}
LANDING: dict[str, tuple[str, Content]] = {
    # compressed: what unpacks to far more, or to nothing
    "gzip: 300 MiB of zeros": ("a.csv.gz", lambda: _gzip_of(bytes(MIB), 300)),
    "gzip: 300 MiB of one letter": ("a.csv.gz", lambda: HEADER and _gzip_of(b"x" * MIB, 300)),
    "gzip: 32 MiB of line ends": ("a.csv.gz", lambda: _gzip_of(b"\n" * MIB, 32)),
    "gzip: 300 MiB of JSON zeros": ("a.json.gz", lambda: _gzip_of(b"0" * MIB, 300)),
    "gzip: 64 MiB of open brackets": ("a.json.gz", lambda: _gzip_of(b"[" * MIB, 64)),
    "gzip in gzip": ("a.csv.gz", lambda: gzip.compress(gzip.compress(_ZIPPED))),
    "gzip cut off": ("a.csv.gz", lambda: gzip.compress(_ZIPPED * 99)[:-20]),
    "gzip of nothing": ("a.csv.gz", lambda: gzip.compress(b"")),
    "gzip with rubbish behind": ("a.csv.gz", lambda: gzip.compress(_ZIPPED) + b"rubbish" * 9),
    "gzip that is text": ("a.csv.gz", lambda: _ZIPPED),
    "gzip with a changed byte": ("a.csv.gz", lambda: _changed_amid(gzip.compress(_ZIPPED * 99))),
    "zip with a changed byte": ("a.zip", lambda: _changed_amid(_zip_of({"a.csv": _ZIPPED * 99}))),
    "gzip with a wrong sum": ("a.csv.gz", lambda: gzip.compress(_ZIPPED)[:-8] + bytes(8)),
    "text that is gzip": ("a.csv", lambda: gzip.compress(_ZIPPED)),
    # archives: paths that lead away, and the same bombs
    "zip: a path upwards": ("a.zip", lambda: _zip_of({"../../../escaped.csv": _ZIPPED})),
    "zip: an absolute path": ("a.zip", lambda: _zip_of({"/tmp/escaped.csv": _ZIPPED})),  # noqa: S108 - must not be written
    "zip: a drive": ("a.zip", lambda: _zip_of({"C:\\escaped.csv": _ZIPPED})),
    "zip: a name of line ends": ("a.zip", lambda: _zip_of({"a\nb\r.csv": _ZIPPED})),
    "zip: a name of 60,000 letters": ("a.zip", lambda: _zip_of({"x" * 60_000 + ".csv": _ZIPPED})),
    "zip: an escape sequence": ("a.zip", lambda: _zip_of({"\x1b[2J.csv": _ZIPPED})),
    "zip: an unknown ending": ("a.zip", lambda: _zip_of({"a.exe": b"MZ"})),
    "zip in zip": ("a.zip", lambda: _zip_of({"b.zip": _zip_of({"a.csv": _ZIPPED})})),
    "zip: 300 MiB of zeros": ("a.zip", lambda: _zip_of({"a.csv": bytes(300 * MIB)})),
    "zip: gzip of 300 MiB": ("a.zip", lambda: _zip_of({"a.csv.gz": _gzip_of(bytes(MIB), 300)})),
    "zip: 3,000 members": ("a.zip", lambda: _zip_of({f"{n}.csv": b"x" for n in range(3000)})),
    "zip: encrypted": ("a.zip", lambda: _flagged(_zip_of({"a.csv": _ZIPPED}), 1)),
    "zip: wrong sum": ("a.zip", lambda: _wrong_sum(_zip_of({"a.csv": _ZIPPED * 99}))),
    "zip: a place before its beginning": (
        "a.zip",
        lambda: _zip_of({"a.csv": _ZIPPED})[:-6] + struct.pack("<IH", 0xFFFFFFF0, 0),
    ),
    "zip cut off": ("a.zip", lambda: _zip_of({"a.csv": _ZIPPED * 99})[:-30]),
    "zip without members": ("a.zip", lambda: _zip_of({})),
    "zip: only a folder": ("a.zip", lambda: _zip_of({"folder/": b""})),
    "zip that is text": ("a.zip", lambda: _ZIPPED),
    # text: headers and lines of absurd shape
    "nothing": ("a.csv", lambda: b""),
    "one byte": ("a.csv", lambda: b"\0"),
    "only a byte order mark": ("a.csv", lambda: b"\xef\xbb\xbf"),
    "UTF-16": ("a.csv", lambda: _ZIPPED.decode().encode("utf-16")),
    "UTF-32": ("a.csv", lambda: _ZIPPED.decode().encode("utf-32")),
    "header of 100,000 columns": ("a.csv", lambda: b",".join([b"x"] * 100_000) + b"\n" + GOOD),
    "header of equal names": ("a.csv", lambda: b",".join([b"mode"] * 8) + b"\n" + GOOD),
    "header with a NUL": ("a.csv", lambda: HEADER.replace(b"mode", b"mo\0de") + GOOD),
    "header that is SQL": ("a.csv", lambda: HEADER.replace(b"mode", b"mode; DROP TABLE x") + GOOD),
    "header of quotes": ("a.csv", lambda: b'"' * 99_999 + b"\n" + GOOD),
    "one line of 64 MiB": ("a.csv", lambda: HEADER + b"x" * (64 * MIB)),
    "one field of 2 MiB": ("a.csv", lambda: HEADER + b'"' + b"x" * (2 * MIB) + b'"\n' + GOOD),
    "a million commas": ("a.csv", lambda: HEADER + b"," * 1_000_000 + b"\n" + GOOD),
    "random bytes": ("a.csv", lambda: _RANDOM[:MIB]),
    "HTML": ("a.csv", lambda: b"<!doctype html><script>alert(1)</script>"),
    # JSON
    "JSON: 100,000 brackets": ("a.json", lambda: b"[" * 100_000 + b"]" * 100_000),
    "JSON: 100,000 objects in objects": (
        "a.json",
        lambda: b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ),
    "JSON: deep within a field": (
        "a.json",
        lambda: _record().replace(b'"train"', b"[" * 9999 + b"]" * 9999),
    ),
    "JSON: 200,000 keys": ("a.json", lambda: _record(**{f"k{n}": n for n in range(200_000)})),
    "JSON: a number of a million digits": (
        "a.json",
        lambda: _record().replace(b'"train"', b"9" * 1_000_000),
    ),
    "JSON: 1e999999999": ("a.json", lambda: _record().replace(b'"train"', b"1e999999999")),
    "JSON: NaN": ("a.json", lambda: _record().replace(b'"train"', b"NaN")),
    "JSON: equal keys": ("a.json", lambda: b'{"mode":"bus",' + _record()[1:]),
    "JSON: keys that differ in case": ("a.json", lambda: _record(MODE="bus")),
    "JSON: half a surrogate": ("a.json", lambda: _record().replace(b"train", b"\\ud800")),
    "JSON: a NUL escaped": ("a.json", lambda: _record().replace(b"train", b"\\u0000")),
    "JSON cut off": ("a.json", lambda: _record()[:-7]),
    "JSON: a text": ("a.json", lambda: b'"text"'),
    "JSON: null": ("a.json", lambda: b"null"),
    "JSON: an empty list": ("a.json", lambda: b"[]"),
    "JSON: a list of lists": ("a.json", lambda: b"[[[]]]"),
    "JSON: a string of 64 MiB": ("a.json", lambda: b'"' + b"x" * (64 * MIB) + b'"'),
    "JSON: __proto__ and __class__": ("a.json", lambda: _record(__class__={"__init__": 1})),
    # Parquet
    "Parquet: only its mark": ("a.parquet", lambda: b"PAR1"),
    "Parquet: two marks": ("a.parquet", lambda: b"PAR1PAR1"),
    "Parquet: encrypted": ("a.parquet", lambda: _table()[:-4] + b"PARE"),
    "Parquet: a footer of 4 GiB": ("a.parquet", lambda: _footer_of(0xFFFFFFFF)),
    "Parquet: a footer of 2 GiB": ("a.parquet", lambda: _footer_of(0x7FFFFFFF)),
    "Parquet: a footer of nothing": ("a.parquet", lambda: _footer_of(0)),
    "Parquet: a footer one byte short": ("a.parquet", lambda: _footer_of(len(_table()) - 9)),
    "Parquet cut off": ("a.parquet", lambda: _table()[:-20]),
    "Parquet: no columns": ("a.parquet", lambda: _table({})),
    "Parquet: no rows": ("a.parquet", lambda: _table(rows=0)),
    "Parquet: lists, 60 deep": ("a.parquet", lambda: _with_column("mode", _nested(60))),
    "Parquet: an object for a text": (
        "a.parquet",
        lambda: _with_column("mode", pa.array([{"a": 1}])),
    ),
    "Parquet: binary for a text": (
        "a.parquet",
        lambda: _with_column("mode", pa.array([b"\xff\0"])),
    ),
    "Parquet: nothing but nulls": ("a.parquet", lambda: _with_column("mode", pa.nulls(1))),
    "Parquet: numbers for texts": (
        "a.parquet",
        lambda: _with_column("mode", pa.array([2**63 - 1])),
    ),
    "Parquet: not a number": ("a.parquet", lambda: _with_column("mode", pa.array([float("nan")]))),
    "Parquet: 3,000 columns": (
        "a.parquet",
        lambda: _table({f"c{n}": pa.array(["x"]) for n in range(3000)}),
    ),
    "Parquet: 4 million equal rows": ("a.parquet", _long_table),
    "Parquet that is text": ("a.parquet", lambda: _ZIPPED),
    **{f"Parquet: flipped {n}": ("a.parquet", lambda n=n: _flipped(n)) for n in range(12)},  # type: ignore[misc]
    # names
    "an unknown ending": ("a.xlsx", lambda: _ZIPPED),
    "two endings": ("a.csv.exe", lambda: _ZIPPED),
    "a name that is an option": ("-rf.csv", lambda: _ZIPPED),
    "a name that is a glob": ("[a-z]*?.csv", lambda: _ZIPPED),
    "a name with quotes": ("a'; DROP TABLE x; --.csv", lambda: _ZIPPED),
    "a name with a line end": ("a\nb.csv", lambda: _ZIPPED),
    "a name with an escape sequence": ("\x1b[2J.csv", lambda: _ZIPPED),
    "a name of 250 letters": ("x" * 246 + ".csv", lambda: _ZIPPED),
    "a name from right to left": ("\u202evsc.a.csv", lambda: _ZIPPED),
}


def _laughs(levels: int) -> str:
    """Aliases of aliases: each level holds ten times the one before."""
    lines = ['a0: &a0 ["lol"]']
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def programmes(good: str) -> Iterator[tuple[str, bytes]]:
    """Yield hostile programme files, made from a good one.

    Args:
        good: text of `opal.yaml`.
    """
    title = next(line for line in good.splitlines() if line.startswith("title:"))

    def instead(value: str) -> bytes:
        return good.replace(title, f"title: {value}").encode()

    yield "a billion laughs", (_laughs(12) + "\n" + good).encode()
    yield (
        "a billion laughs as a title",
        (good.replace(title, _laughs(10) + "\ntitle: *a9")).encode(),
    )
    yield "an alias of itself", instead("&a [*a]")
    yield "a mapping that holds itself", instead("&a {b: *a}")
    yield "an alias of nothing", instead("*nobody")
    yield "a merge", (good + "\n<<: {name: other}\n").encode()
    yield "a call of the system", instead("!!python/object/apply:os.system ['touch escaped']")
    yield "an object", instead("!!python/object:turnstile.errors.InputError {}")
    yield "a module", instead("!!python/module:os")
    yield "a tag of its own", instead("!run 'x'")
    yield "binary", instead("!!binary AAAA")
    yield "a set", instead("!!set {a, b}")
    yield "a date", instead("2016-01-01")
    yield "a list", instead("[a]")
    yield "nothing", b""
    yield "only a comment", b"# nothing\n"
    yield "two documents", (good + "\n---\n" + good).encode()
    yield "a NUL", instead('"a\0b"')
    yield "UTF-16", good.encode("utf-16")
    yield "UTF-8 that is none", good.encode() + b"\n# \xff\xfe\n"
    yield "a byte order mark", b"\xef\xbb\xbf" + good.encode()
    yield "a tab", (good + "\nx:\n\t- y\n").encode()
    yield "another YAML", b"%YAML 9.9\n---\n" + good.encode()
    yield "10,000 brackets", instead("[" * 10_000 + "]" * 10_000)
    yield "2,000 levels of keys", instead("\n" + "\n".join(" " * n + "a:" for n in range(1, 2000)))
    yield "100,000 keys", (good + "\n" + "\n".join(f"k{n}: 1" for n in range(100_000))).encode()
    yield "a key twice", (good + "\nname: opal\n").encode()
    yield "a key that is a list", (good + "\n? [a, b]\n: c\n").encode()
    yield "a list in braces as a key", (good + "\nx: {[a, b]}\n").encode()
    yield "a key that says it is a list", (good + "\n? !!seq [a, b]\n: c\n").encode()
    yield "a key with a name that is a list", (good + "\n? &k [a, b]\n: c\n").encode()
    yield (
        "a number of 10,000 digits",
        good.replace("final_after_days: 0", f"final_after_days: {'9' * 10_000}").encode(),
    )
    yield (
        "an amount of 10,000 digits",
        good.replace('rho: "1/12"', f'rho: "1/{"9" * 10_000}"').encode(),
    )
    yield "an amount of a huge power", good.replace('rho: "1/12"', 'rho: "1e-999999999"').encode()
    yield "a landing path upwards", good.replace('"opal/{week}/*"', '"../{week}/*"').encode()
    yield "an absolute landing path", good.replace('"opal/{week}/*"', '"/{week}/*"').encode()
    yield (
        "a domain upwards",
        good.replace("domains/opal_locations.csv", "../../etc/passwd").encode(),
    )
    yield "a name upwards", good.replace("name: opal", "name: ../opal").encode()
    yield "a programme in a programme", good.replace("{week}", "{week.__class__}").encode()
    yield "random bytes", _RANDOM[:50_000]
