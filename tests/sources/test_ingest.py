"""What ingest promises of any delivery: nothing lost, nothing twice, faults reported by name."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import pickle
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quarantined import quarantine_counts

from turnstile.durable_files import sync_tree
from turnstile.errors import InputError, IntegrityError, ProgrammeError
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.ingest import week as week_of_ingest
from turnstile.sources.ingest.snapshot import counts_of, load_snapshot, require_whole
from turnstile.sources.ingest.week import ingest

WEEK = "2016-W30"
CANARY = "3085999999999999"
HEADER = (
    "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    "tap_off_date,tap_off_time,tap_off_location"
)
CLEAN = f"{HEADER}\n" + "".join(
    f"{3085000000000000 + n},train,2016-07-{25 + n % 7},08:{n % 60:02d},A Station,"
    f"2016-07-{25 + n % 7},08:59,B Station\n"
    for n in range(50)
)


def _line(**fields: str) -> str:
    """One trip, with some fields other than usual."""
    usual = {
        "card_id": "3085000000000001",
        "mode": "train",
        "tap_on_date": "2016-07-25",
        "tap_on_time": "08:00",
        "tap_on_location": "A Station",
        "tap_off_date": "2016-07-25",
        "tap_off_time": "08:30",
        "tap_off_location": "B Station",
    }
    return ",".join((usual | fields).values())


# Lines by the rule that each breaks ("" for a good one); good lines are equal only on purpose.
_KINDS = {
    "": _line(card_id="{n}"),
    "again": _line(),
    "card_id_missing": _line(card_id=""),
    "unknown_mode": _line(mode="monorail"),
    "unparsable_timestamp": _line(tap_on_time="25:00"),
    "outside_week": _line(tap_on_date="2016-07-24"),
    "future_date": _line(tap_on_date="2031-01-01"),
    "null_location": _line(tap_on_location=" "),
    "tap_off_before_tap_on": _line(tap_off_time="07:59"),
    "malformed_line": _line() + ",another field",
}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=40))
def test_rows_in_are_rows_out_and_duplicates_and_quarantine(
    programme_of: Callable[..., Programme], rows_of: Callable[..., Any], kinds: list[str]
) -> None:
    lines = [_KINDS[kind].format(n=n) for n, kind in enumerate(kinds)]
    with tempfile.TemporaryDirectory() as folder:
        landing, private = Path(folder) / "landing", Path(folder) / "private"
        (landing / WEEK).mkdir(parents=True)
        (landing / WEEK / "trips.csv").write_text("\n".join([HEADER, *lines]) + "\n")
        snapshot = ingest(
            programme_of("opal"),
            ServiceWeek.parse(WEEK),
            landing=landing,
            private=private,
            progress=lambda _: None,
        )
        counts = dict(counts_of(snapshot))
        out = len(rows_of(snapshot)) if snapshot.days else 0
    wanted = Counter(kinds)
    good, again = wanted.pop("", 0), wanted.pop("again", 0)
    assert counts["rows_in"] == len(kinds)
    assert counts["rows_out"] == out == good + min(again, 1)
    assert counts["duplicates"] == max(again - 1, 0)
    assert {rule: counts[rule] for rule in wanted} == dict(wanted)
    broken = sum(wanted.values())
    assert counts["rows_in"] == counts["rows_out"] + counts["duplicates"] + broken


def test_the_same_files_are_ingested_once(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    first = zones.ingest(programme_of("opal"), WEEK)
    written = {path: path.stat().st_mtime_ns for path in zones.private.rglob("*")}
    assert zones.ingest(programme_of("opal"), WEEK) == first
    assert {path: path.stat().st_mtime_ns for path in zones.private.rglob("*")} == written


def test_a_changed_file_makes_another_snapshot_and_both_stay(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    first = zones.ingest(programme_of("opal"), WEEK)
    zones.deliver(WEEK, {"trips.csv": CLEAN + _line() + "\n"})
    second = zones.ingest(programme_of("opal"), WEEK)
    assert second.digest != first.digest
    for snapshot in (first, second):
        assert load_snapshot(zones.private, "opal", WEEK, snapshot.digest) == snapshot


def _grow(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[-1]]))


def _deliver_again(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.with_name(".new").write_text("".join(lines[:-1]))
    file.with_name(".new").rename(file)


@pytest.mark.parametrize("change", [_grow, _deliver_again, Path.unlink])
def test_a_file_that_is_written_to_while_it_is_read_leaves_nothing(
    zones: Any, programme_of: Callable[..., Programme], change: Callable[[Path], object]
) -> None:
    """Its rows were sealed under the digest of the file of before, or called a program's fault."""
    programme = programme_of("opal")
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    path = zones.landing / WEEK / "trips.csv"

    def progress(said: str) -> None:
        if said.startswith("reading "):
            change(path)

    with pytest.raises(InputError, match=r"trips.csv: file: was written to while it was read"):
        ingest(
            programme,
            ServiceWeek.parse(WEEK),
            landing=zones.landing,
            private=zones.private,
            progress=progress,
        )
    assert not list(zones.private.rglob("*.parquet"))


def test_another_mapping_makes_another_snapshot(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    first = zones.ingest(programme_of("opal"), WEEK)
    mapped = programme_of("opal", mode_names=(("train", "bus"),))
    assert zones.ingest(mapped, WEEK).digest != first.digest


def test_two_snapshots_of_the_same_files_have_the_same_bytes(
    zones: Any, tmp_path: Path, programme_of: Callable[..., Programme]
) -> None:
    digests = []
    for private in (tmp_path / "one", tmp_path / "two"):
        zones.deliver(WEEK, {"trips.csv": CLEAN})
        snapshot = ingest(
            programme_of("opal"),
            ServiceWeek.parse(WEEK),
            landing=zones.landing,
            private=private,
            progress=lambda _: None,
        )
        files = sorted(snapshot.folder.rglob("*.parquet"))
        digests.append([path.read_bytes() for path in files])
    assert digests[0] == digests[1]


def _parquet() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.csv").write_text(CLEAN)
        path = f"{folder}/a.parquet"
        duckdb.execute(f"COPY (FROM '{folder}/a.csv') TO '{path}'")
        return Path(path).read_bytes()


def _json() -> str:
    names, *lines = CLEAN.splitlines()
    pairs = [dict(zip(names.split(","), line.split(","), strict=True)) for line in lines]
    return json.dumps(pairs, indent=1)


def _zip(name: str = "inside/trips.csv") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, CLEAN)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trips.csv.gz", gzip.compress(CLEAN.encode())),
        ("TRIPS.CSV.GZ", gzip.compress(CLEAN.encode())),
        ("trips.JSON.Gz", gzip.compress(_json().encode())),
        ("trips.parquet", _parquet()),
        ("trips.json", _json()),
        ("trips.json.gz", gzip.compress(_json().encode())),
        ("trips.ndjson", "\n".join(json.dumps(row) for row in json.loads(_json()))),
        ("trips.zip", _zip()),
        ("trips.csv", CLEAN.replace("\n", "\r\n")),
        ("trips.csv", "\ufeff" + CLEAN),
        ("trips.csv", CLEAN.rstrip("\n")),
    ],
    ids=[
        *("csv.gz", "CSV.GZ", "JSON.Gz", "parquet", "json", "json.gz", "ndjson", "zip"),
        *("CRLF", "BOM", "no last newline"),
    ],
)
def test_every_form_of_a_file_gives_the_same_rows(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Callable[..., Any],
    name: str,
    content: str | bytes,
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    plain = rows_of(zones.ingest(programme_of("opal"), WEEK))
    (zones.landing / WEEK / "trips.csv").unlink()
    zones.deliver(WEEK, {name: content})
    assert rows_of(zones.ingest(programme_of("opal"), WEEK)) == plain
    assert len(plain) == 50


_FAULTS = {
    "no file": ({}, "files"),
    "empty file": ({"trips.csv": ""}, "file"),
    "cut off in a line": ({"trips.csv": CLEAN + f"{CANARY},train,2016-"}, "file"),
    "gzip cut off": ({"trips.csv.gz": gzip.compress(CLEAN.encode())[:-30]}, "file"),
    "no gzip at all": ({"trips.csv.gz": CLEAN}, "file"),
    "parquet cut off": ({"trips.parquet": _parquet()[:-20]}, "file"),
    "json cut off": ({"trips.json": _json()[:-60]}, "file"),
    "no json at all": ({"trips.json": f"<html>{CANARY}</html>"}, "file"),
    "zip cut off": ({"trips.zip": _zip()[:-20]}, "file"),
    "zip in a zip": ({"trips.zip": _zip("inner.zip")}, "file"),
    "nothing in the zip": ({"trips.zip": b"PK\5\6" + bytes(18)}, "file"),
    "no csv at all": ({"trips.csv": b"\xff\xfe\x00\x01" * 100}, "card_id"),
    "a column named twice": ({"trips.csv": "card_id,card_id\n1,2\n"}, "header"),
    "no header": ({"trips.csv": f"{CANARY},bus,2016-07-25,08:00,A,,,\n"}, "card_id"),
    "another column": ({"trips.csv": CLEAN.replace("card_id", "kaart")}, "card_id"),
    "json without a column": (
        {"trips.json": _json().replace("tap_on_time", "tapped")},
        "tap_on_time",
    ),
    "a form that is not read": ({"trips.ods": "PK"}, "file name"),
}


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_of_a_file_is_one_sentence_and_leaves_nothing(
    zones: Any, programme_of: Callable[..., Programme], fault: str
) -> None:
    files, field = _FAULTS[fault]
    zones.deliver(WEEK, {"a-good-one.csv": CLEAN} if files else {})
    zones.deliver(WEEK, files)
    with pytest.raises(InputError) as refused:
        zones.ingest(programme_of("opal"), WEEK)
    assert refused.value.field == field
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    assert not list(zones.private.rglob("snapshot.json"))
    assert not list(zones.private.rglob(".ingest-*"))


def test_a_file_with_other_columns_in_parquet_is_named(
    zones: Any, programme_of: Callable[..., Programme], tmp_path: Path
) -> None:
    path = tmp_path / "other.parquet"
    duckdb.execute(f"COPY (SELECT 1 AS a, 2 AS b) TO '{path}'")
    zones.deliver(WEEK, {"trips.parquet": path.read_bytes()})
    with pytest.raises(InputError, match=r"2016-W30/trips.parquet: card_id: the column is missing"):
        zones.ingest(programme_of("opal"), WEEK)


def test_a_header_without_rows_is_an_empty_week_and_no_fault(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": HEADER + "\n", "more.json": "[]"})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    assert snapshot.days == ()
    assert counts_of(snapshot)["rows_in"] == 0


def test_only_files_of_the_week_are_read(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN, ".hidden": "x"})
    zones.deliver("2016-W31", {"trips.csv": CLEAN.replace("2016-07", "2016-08")})
    assert [name for name, _ in zones.ingest(programme_of("opal"), WEEK).files] == [
        "2016-W30/trips.csv"
    ]


def test_an_unreadable_line_goes_to_quarantine_under_its_name(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    lines = [_line(card_id="1"), "too,few", _line(card_id="2") + ",too,many", _line(card_id="3")]
    zones.deliver(WEEK, {"trips.csv": "\n".join([HEADER, *lines]) + "\n"})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    assert quarantine_counts(snapshot)["malformed_line"] == 2
    quarantine = snapshot.folder / "quarantine" / "malformed_line.parquet"
    quarantined_rows = duckdb.execute(
        f"SELECT DISTINCT file, broken_rule FROM '{quarantine}'"
    ).fetchall()
    assert quarantined_rows == [("2016-W30/trips.csv", "malformed_line")]


def test_malformed_lines_are_not_counted_again_with_the_next_file(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    file = f"{HEADER}\ntoo,few\n"
    zones.deliver(WEEK, {"a.csv": file, "b.csv": CLEAN, "c.csv": file})
    counts = counts_of(zones.ingest(programme_of("opal"), WEEK))
    assert (counts["malformed_line"], counts["rows_in"]) == (2, 52)


def test_exact_counts_do_not_print_and_cannot_be_pickled(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    counts = quarantine_counts(zones.ingest(programme_of("opal"), WEEK))
    assert repr(counts) == str(counts) == "<private counts>"
    with pytest.raises(TypeError):
        pickle.dumps(counts)


def test_a_snapshot_that_was_altered_or_removed_is_an_integrity_error(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    with pytest.raises(IntegrityError):
        load_snapshot(zones.private, "opal", WEEK, snapshot.digest[:12] + "0" * 52)
    with pytest.raises(IntegrityError):
        load_snapshot(zones.private, "opal", WEEK, "0" * 64)
    (snapshot.folder / "snapshot.json").write_text("{")
    with pytest.raises(IntegrityError):
        load_snapshot(zones.private, "opal", WEEK, snapshot.digest)


@pytest.mark.parametrize("torn", ["", "{", "gone"])
def test_a_snapshot_whose_record_a_loss_of_power_cut_is_made_again(
    zones: Any, programme_of: Callable[..., Programme], torn: str
) -> None:
    """Whoever read it was told to ingest the week again, which found the folder there: for ever."""
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    record = snapshot.folder / "snapshot.json"
    whole = record.read_bytes()
    record.unlink() if torn == "gone" else record.write_text(torn)
    assert zones.ingest(programme_of("opal"), WEEK) == snapshot
    assert record.read_bytes() == whole
    assert [path.name for path in snapshot.folder.parent.iterdir()] == [snapshot.folder.name]


def lose(rows: Path) -> None:
    shutil.rmtree(rows.parent)


def cut(rows: Path) -> None:
    rows.write_bytes(rows.read_bytes()[:-1])


def plant(rows: Path) -> None:
    shutil.copy(rows, rows.with_name("part-001.parquet"))


@pytest.mark.parametrize("harm", [lose, cut, plant])
def test_a_snapshot_whose_rows_are_gone_or_altered_is_refused_and_made_again(
    zones: Any, programme_of: Callable[..., Programme], harm: Callable[[Path], None]
) -> None:
    """Its record alone was read: a day of zeros, and ingesting it again did nothing."""
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    require_whole(snapshot)
    rows = min(snapshot.folder.glob("rows/*/*.parquet"))
    whole = rows.read_bytes()
    harm(rows)
    with pytest.raises(IntegrityError, match="or ingest the week again"):
        require_whole(snapshot)
    assert zones.ingest(programme_of("opal"), WEEK) == snapshot
    require_whole(snapshot)
    assert rows.read_bytes() == whole
    assert len([*rows.parent.iterdir()]) == 1


def test_of_a_snapshot_of_an_earlier_version_days_without_rows_are_told(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    record = snapshot.folder / "snapshot.json"
    earlier = json.loads(record.read_text())
    del earlier["parts"]
    record.write_text(json.dumps(earlier))
    require_whole(snapshot)
    lose(min(snapshot.folder.glob("rows/*/*.parquet")))
    with pytest.raises(IntegrityError, match="gone or altered"):
        require_whole(snapshot)


def test_a_snapshot_is_on_the_disk_before_it_is_in_its_place(
    zones: Any, programme_of: Callable[..., Programme], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[str]] = []

    def look(folder: Path) -> None:
        synced.append([path.name for path in folder.parent.parent.iterdir()])
        sync_tree(folder)

    monkeypatch.setattr(week_of_ingest, "sync_tree", look)
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    folder = zones.ingest(programme_of("opal"), WEEK).folder
    assert [folder.name in names for names in synced] == [False]


def test_progress_names_files_and_days_but_neither_cards_nor_counts(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    messages: list[str] = []
    zones.deliver(WEEK, {"trips.csv": CLEAN + _line(card_id=CANARY) + "\n"})
    week = ServiceWeek.parse(WEEK)
    places = {"landing": zones.landing, "private": zones.private}
    ingest(programme_of("opal"), week, **places, progress=messages.append)
    ingest(programme_of("opal"), week, **places, progress=messages.append)
    assert messages[0] == "reading 2016-W30/trips.csv (1 of 1 files)"
    assert messages[-1] == "opal 2016-W30: these files are ingested already"
    assert not any(CANARY in line or "51" in line for line in messages)


@pytest.mark.parametrize("feed", Feed)
def test_every_feed_that_a_programme_may_name_is_read_into_its_shape(feed: Feed) -> None:
    assert layout_of(feed).shape is feed.shape


def test_a_mapped_field_that_the_feed_does_not_have_is_reported(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    with pytest.raises(ProgrammeError, match=r"'cart' is no field of opal_trips"):
        zones.ingest(programme_of("opal", columns=(("cart", "card"),)), WEEK)


def test_records_are_named_by_what_made_them(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver(WEEK, {"trips.csv": CLEAN})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    assert snapshot.folder == zones.private / "opal" / WEEK / "snapshots" / snapshot.digest[:12]
    assert len(snapshot.days) == 7
    assert dataclasses.is_dataclass(snapshot)


def _as_csv(lines: list[str]) -> bytes:
    return "\n".join([HEADER, *lines, ""]).encode()


def _as_json_lines(lines: list[str]) -> bytes:
    records = [dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in lines]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _as_json(lines: list[str]) -> bytes:
    return b"[" + b",".join(_as_json_lines(lines).splitlines()) + b"]"


def _as_parquet(lines: list[str]) -> bytes:
    rows = [dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in lines]
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), written)
    return written.getvalue()


FORMS = {"csv": _as_csv, "ndjson": _as_json_lines, "json": _as_json, "parquet": _as_parquet}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", ["trips[1]", "trips?", "trip*"])
def test_a_name_that_would_be_a_pattern_is_that_of_one_file(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Callable[..., Any],
    form: str,
    odd: str,
) -> None:
    content, other = FORMS[form]([_line(card_id="1")]), FORMS[form]([_line(card_id="2")])
    zones.deliver(WEEK, {f"{odd}.{form}": content, f"trips1.{form}": other, f"trips.{form}": other})
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    assert rows_of(snapshot, "card_id") == [("1",), ("2",)]
    assert counts_of(snapshot)["duplicates"] == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_that_looks_like_a_partition_is_no_column(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any], form: str
) -> None:
    folder = zones.landing / WEEK / "mode=bus"
    folder.mkdir(parents=True)
    (folder / f"trips.{form}").write_bytes(FORMS[form]([_line(card_id="1")]))
    programme = programme_of("opal")
    source = dataclasses.replace(programme.source, landing="{week}/*/*")
    snapshot = zones.ingest(dataclasses.replace(programme, source=source), WEEK)
    assert rows_of(snapshot, "card_id, mode") == [("1", "train")]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "ndjson"])
def test_a_name_as_long_as_a_disk_allows_is_read(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any], ending: str
) -> None:
    content = FORMS[ending.removesuffix(".gz")]([_line(card_id="1")])
    name = "x" * (254 - len(ending)) + f".{ending}"
    zones.deliver(WEEK, {name: gzip.compress(content) if ending == "csv.gz" else content})
    assert len(rows_of(zones.ingest(programme_of("opal"), WEEK))) == 1
