"""A hostile line costs its own physical line, never another: hundreds of files, and a fuzzer."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hostile_lines import CSV, JSON_LINES, ODD, READABLE, Spoil
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lines_compared import Reader, check_a_file, opened_reader

from turnstile.cli import main
from turnstile.errors import InputError
from turnstile.programme.spec import Programme
from turnstile.sources.ingest import lines as physical
from turnstile.sources.ingest import plain_text
from turnstile.sources.ingest.landing import RawFile, form_of
from turnstile.sources.ingest.plain_text import BLOCK_BYTES
from turnstile.sources.ingest.snapshot import Snapshot, counts_of

WEEK = "2016-W30"
FIELDS = (
    "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    "tap_off_date,tap_off_time,tap_off_location"
)
HEADER = FIELDS.encode()
GOOD = [
    f"{3085000000000000 + n},train,2016-07-{25 + n % 7},08:{n % 60:02d},A Station,"
    f"2016-07-{25 + n % 7},08:59,B Station".encode()
    for n in range(9)
]
RECORDS = [json.dumps(dict(zip(FIELDS.split(","), line.decode().split(","), strict=True)))
           for line in GOOD]  # fmt: skip
PLACES = {"first": 0, "amid": 5, "last": 9}
Ingest = Callable[[str, bytes], Snapshot]


@pytest.fixture
def ingested(zones: Any, programme_of: Callable[..., Programme]) -> Ingest:
    """Ingest one file of the Opal feed."""

    def ingest(name: str, content: bytes) -> Snapshot:
        zones.deliver(WEEK, {name: content})
        snapshot: Snapshot = zones.ingest(programme_of("opal"), WEEK)
        return snapshot

    return ingest


def with_line(good: list[bytes], line: bytes, place: str) -> list[bytes]:
    """Put a line among good ones."""
    return [*good[: PLACES[place]], line, *good[PLACES[place] :]]


def seen(snapshot: Snapshot) -> dict[str, int]:
    """What was counted, and was not zero."""
    return {name: count for name, count in counts_of(snapshot).items() if count}


@pytest.mark.parametrize("spoil", CSV.values(), ids=CSV.keys())
def test_a_hostile_line_costs_its_own_line(ingested: Ingest, spoil: Spoil) -> None:
    line = spoil(b"c,train,2016-07-25,08:00,A Station,2016-07-25,08:30,B Station")
    content = b"\n".join([HEADER, *with_line(GOOD, line, "amid")]) + b"\n"
    line_count = line.count(b"\n") + 1
    snapshot = ingested("trips.csv", content)
    assert seen(snapshot) == {
        "rows_in": 9 + line_count,
        "rows_out": 9,
        "malformed_line": line_count,
    }


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("spoil", CSV.values(), ids=CSV.keys())
def test_a_hostile_line_costs_its_own_line_at_either_end(
    reader: Reader, spoil: Spoil, place: str
) -> None:
    content = b"\n".join([HEADER, *with_line(GOOD, spoil(GOOD[0]), place)]) + b"\n"
    records, rejected = reader(content)
    assert sorted(str(record[0]).encode() for record in records) == [g[:16] for g in GOOD]
    assert rejected == content.count(b"\n") - 1 - len(GOOD)


def test_many_hostile_lines_cost_no_other_in_a_compressed_file(ingested: Ingest) -> None:
    bad = [spoil(GOOD[0]) for spoil in (*CSV.values(), *ODD.values())]
    content = b"\r\n".join([HEADER, *GOOD[:4], *bad, *GOOD[4:]]) + b"\r\n"
    snapshot = ingested("trips.csv.gz", gzip.compress(content))
    counts = seen(snapshot)
    assert counts["rows_in"] == content.count(b"\n") - 1
    assert counts["malformed_line"] == sum(
        spoil(GOOD[0]).count(b"\n") + 1 for spoil in CSV.values()
    )
    assert counts["rows_out"] - counts["malformed_line"] < len(GOOD) + len(ODD)
    assert len(snapshot.days) == 7


@pytest.mark.parametrize("spoil", [*READABLE.values()], ids=READABLE.keys())
def test_standard_quoting_within_a_line_is_read(ingested: Ingest, spoil: Spoil) -> None:
    line = spoil(b"c,train,2016-07-25,08:00,A Station,2016-07-25,08:30,B Station")
    content = b"\n".join([HEADER, *with_line(GOOD, line, "amid")])
    assert seen(ingested("trips.csv", content)) == {"rows_in": 10, "rows_out": 10}


@pytest.mark.parametrize("spoil", CSV.values(), ids=CSV.keys())
def test_under_a_hostile_header_nothing_is_read(reader: Reader, spoil: Spoil) -> None:
    """It stops the week, or no line has as many fields as it."""
    try:
        records, rejected = reader(b"\n".join([spoil(HEADER), *GOOD]) + b"\n")
    except InputError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - either way is right
    else:
        assert not records
        assert rejected >= len(GOOD)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n", b"\xef\xbb\xbf\n", b" ", b"\0"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_file_without_a_header_is_refused(ingested: Ingest, content: bytes, ending: str) -> None:
    content = gzip.compress(content) if ending == "csv.gz" else content
    with pytest.raises(InputError, match="trips.csv"):
        ingested(f"trips.{ending}", content)


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("spoil", JSON_LINES.values(), ids=JSON_LINES.keys())
def test_a_hostile_line_of_json_costs_its_own_line(
    ingested: Ingest, spoil: Spoil, place: str
) -> None:
    good = [record.encode() for record in RECORDS]
    line = spoil(good[0].replace(b"000,", b"999,"))
    snapshot = ingested("trips.ndjson", b"\n".join(with_line(good, line, place)) + b"\n")
    line_count = line.count(b"\n") + 1
    assert seen(snapshot) == {
        "rows_in": 9 + line_count,
        "rows_out": 9,
        "malformed_line": line_count,
    }


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    "place",
    [
        *(rb"\ud83d", rb"\uDE00\ud83d", rb"\ud83d\u0041", rb"\x41", rb"\u12", b"\x01", b"\0"),
        *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"t" * BLOCK_BYTES + b"\xff"),
        *(b"a\tb", b"\n", b"\r\n", b'\\"\n', b"\\\n", b"t" * BLOCK_BYTES + b"\t", b'\n\\"' * 9),
    ],
    ids=lambda value: value[:12],
)
def test_what_is_no_character_costs_its_own_record_of_an_array(
    ingested: Ingest, place: bytes, pack: Callable[[bytes], bytes]
) -> None:
    """Half of a picture, where somebody cut a text, had the whole array refused."""
    fine = RECORDS[0].encode().replace(b"A Station", rb"\\ud83d \ud83d\ude00 \\\"\u00e5/\/")
    spoiled = RECORDS[1].encode().replace(b"A Station", place)
    records = [fine, spoiled, *(record.encode() for record in RECORDS[2:])]
    name = "a.json" if pack is bytes else "a.json.gz"
    snapshot = ingested(name, pack(b"[" + b",\n".join(records) + b"]"))
    assert seen(snapshot) == {"rows_in": 9, "rows_out": 8, "malformed_line": 1}
    read = f"SELECT tap_on_location FROM '{snapshot.rows_glob}'"
    assert ('\\ud83d \U0001f600 \\"å//',) in duckdb.execute(read).fetchall()


def test_an_array_without_a_text_takes_a_few_times_its_bytes_of_memory(tmp_path: Path) -> None:
    """It is one block, and each end of a line in it took five numbers of eight bytes."""
    (tmp_path / "a.json").write_bytes(b"[\n" + b"1,\n" * (1 << 20) + b"1]")
    file = RawFile("a.json", tmp_path / "a.json", form_of("a.json"))
    tracemalloc.start()
    assert physical.with_marks(file, tmp_path / "scratch") == file.path
    assert tracemalloc.get_traced_memory()[1] < 7 * file.path.stat().st_size
    tracemalloc.stop()


def test_a_quarantined_line_is_kept_as_it_came(ingested: Ingest) -> None:
    line = b'c,"train,2016-07-25,\xff'
    snapshot = ingested("trips.csv", b"\n".join([HEADER, *GOOD, line, b""]))
    kept = snapshot.folder / "quarantine/malformed_line.parquet"
    rows = duckdb.execute(f"SELECT file, fields FROM '{kept}'").fetchall()
    assert rows == [(f"{WEEK}/trips.csv", 'c,"train,2016-07-25,\\xff')]


def test_lines_are_looked_at_block_by_block(
    ingested: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks shorter than a line, so that every kind of line is cut by one."""
    monkeypatch.setattr(plain_text, "BLOCK_BYTES", 16)
    monkeypatch.setattr(physical, "LONGEST_LINE", 500)
    monkeypatch.setattr(physical, "_LONGEST_KEPT", 1000)
    bad = [spoil(GOOD[0]) for name, spoil in CSV.items() if "M" not in name]
    line_count = sum(line.count(b"\n") + 1 for line in bad)
    lines = [HEADER, *GOOD[:4], *bad, b"x" * 5000, *GOOD[4:]]
    counts = seen(ingested("trips.csv", b"\r\n".join(lines) + b"\r\n"))
    assert counts == {
        "rows_in": 9 + line_count + 1,
        "rows_out": 9,
        "malformed_line": line_count + 1,
    }


def test_lines_and_records_that_disagree_stop_the_week(
    ingested: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault put back: with no line taken out, a quote swallows what follows, and it is seen."""
    monkeypatch.setattr(physical, "_mark_unbalanced", lambda *_: None)
    line = b'c,"train,2016-07-25,08:00,A Station,2016-07-25,08:30,B Station'
    closing = b'c,train",2016-07-25,08:00,A Station,2016-07-25,08:30,B Station'
    content = b"\n".join([HEADER, *GOOD[:3], line, *GOOD[3:6], closing, *GOOD[6:], b""])
    with pytest.raises(InputError, match="trips.csv") as refused:
        ingested("trips.csv", content)
    assert refused.value.field in ("lines", "file")


# ---------------------------------------------------------------------------- by property


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with opened_reader() as read:
        yield read


LINE = st.binary(max_size=12) | st.lists(
    st.sampled_from(
        [b'"', b'""', b",", b"x", b"\r", b"\0", b" ", b"\xc3\xa9", b"\xff", b"\\", b"'"]
    ),
    max_size=14,
).map(b"".join)


@settings(max_examples=150)
@given(lines=st.lists(LINE, max_size=8), ending=st.sampled_from([b"\n", b"\r\n"]))
@example(lines=[b'"', b'x,"', b'",,'], ending=b"\n")
@example(lines=[b'""",', b',"x""', b'"x"","'], ending=b"\r\n")
def test_the_engine_reads_each_line_as_if_it_were_alone(
    reader: Reader, lines: list[bytes], ending: bytes
) -> None:
    check_a_file(reader, lines, ending)


@pytest.mark.long
@settings(max_examples=20_000)
@given(lines=st.lists(LINE, max_size=12), ending=st.sampled_from([b"\n", b"\r\n"]))
def test_the_engine_reads_each_line_as_if_it_were_alone_for_long(
    reader: Reader, lines: list[bytes], ending: bytes
) -> None:
    check_a_file(reader, lines, ending)


@pytest.mark.long
def test_a_fuzzer_that_looks_for_new_ways_through_the_code_finds_none() -> None:
    """Atheris, where it is installed; it is not in the lock."""
    pytest.importorskip("atheris")
    script = Path(__file__).parents[1] / "support/fuzz_lines.py"
    ran = subprocess.run([sys.executable, script, "-max_total_time=300"], check=False)  # noqa: S603
    assert ran.returncode == 0


def test_the_comparison_finds_a_reader_that_does_not(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(physical, "_mark_unbalanced", lambda *_: None)
    with pytest.raises((AssertionError, InputError, duckdb.Error)):
        check_a_file(reader, [b'1,"2', b'3",4', b"5,6,7"], b"\n")


@pytest.mark.parametrize("programme", ["opal", "itms"])
@pytest.mark.parametrize("form", ["csv", "csv.gz"])
def test_a_bad_quote_in_a_generated_week_costs_one_line(
    tmp_path: Path, zones: Any, programme_of: Callable[..., Programme], programme: str, form: str
) -> None:
    """The week that was once published with half of its Monday."""
    asked = ["sample", programme, "--weeks", WEEK, "--rows", "3000", "--format", form]
    shape = ["--shape", "string"] if programme == "itms" else []
    assert main([*asked, *shape, "--out", str(tmp_path / "made")]) == 0
    files = {path.name: path.read_bytes() for path in (tmp_path / "made").rglob("*.csv*")}
    zones.deliver(WEEK, files)
    before = dict(counts_of(zones.ingest(programme_of(programme), WEEK)))
    monday = min(files)
    unpack, pack = (gzip.decompress, gzip.compress) if form == "csv.gz" else (bytes, bytes)
    delivered = unpack(files[monday]).split(b"\n")
    middle = len(delivered) // 2
    bad = delivered[middle].replace(b",", b',"', 1)
    spoiled = b"\n".join([*delivered[:middle], bad, *delivered[middle:]])
    zones.deliver(WEEK, {monday: pack(spoiled)})
    after = dict(counts_of(zones.ingest(programme_of(programme), WEEK)))
    one_more = {"rows_in": before["rows_in"] + 1, "malformed_line": 1}
    assert after == before | one_more
