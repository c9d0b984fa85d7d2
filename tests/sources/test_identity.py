"""One card is one card in every spelling, file and type; so is one bus (PRIVACY 1.2)."""

from __future__ import annotations

import io
import json
import shutil
import unicodedata
from collections.abc import Callable
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import Any

import h3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested_weeks import Zones
from quarantined import quarantine_counts
from raw_lab import CENTER, WEEK, Lab, lab
from raw_neighbours import counts_of

from turnstile.cli import main
from turnstile.duckdb_engine import connect
from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.id_form import IdForm, IdKind, LetterCase
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed, RowShape, SourceSpec, WithoutCard
from turnstile.programme.spec import Programme
from turnstile.programme.terms import binding_terms
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.feeds.made_ids import spelt
from turnstile.sources.feeds.made_records import MadeReading, MadeTrip
from turnstile.sources.feeds.raw_records import (
    csv_lines,
    json_lines,
    records_of,
)
from turnstile.sources.ingest.identity import in_form
from turnstile.sources.ingest.week import snapshot_digest

DAY = date(2016, 7, 25)
DIGITS = IdForm(IdKind.DIGITS, length=9)
TEXT = IdForm(IdKind.TEXT, case=LetterCase.UPPER)
KEPT = IdForm(IdKind.TEXT, case=LetterCase.KEEP)
FEEDS_WITH_IDS = [feed for feed in Feed if not feed.names_nobody]
SHIPPED = Path(__file__).resolve().parents[2] / "include/programmes"
SNAPSHOT_BEFORE = "26042ded202f63735fe0ef88f0a812d65f724764fe11cad077865343d9bba1fb"
STATED = "  missing_day: refuse\n"
CARD_FORM = "  card_form: {kind: text, case: lower}\n"
VEHICLE_FORM = "  vehicle_form: {kind: text, case: keep}\n"
Column = tuple[pa.DataType | None, list[object]]


def parquet(columns: dict[str, Column]) -> bytes:
    """A Parquet file of typed columns."""
    written = io.BytesIO()
    table = {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    pq.write_table(pa.table(table), written)
    return written.getvalue()


def trips_of(ids: list[object], first: int) -> list[dict[str, object]]:
    """A trip of each id, each in a slot and at a place of its own."""
    return [
        {
            "card_id": card,
            "mode": ("bus", "ferry", "train")[n // 18],
            "tap_on_date": "2016-07-25",
            "tap_on_time": f"{n % 18 // 3 * 4:02d}:00",
            "tap_on_location": "ABC"[n % 3],
            "tap_off_date": "2016-07-25",
            "tap_off_time": f"{n % 18 // 3 * 4:02d}:30",
            "tap_off_location": "ABC"[n % 3],
        }
        for n, card in enumerate(ids, start=first)
    ]


def typed(ids: list[object], kind: pa.DataType, first: int) -> bytes:
    """Trips as Parquet, whose ids are of a type."""
    trips = trips_of(ids, first)
    return parquet(
        {name: (kind if name == "card_id" else None, [t[name] for t in trips]) for name in trips[0]}
    )


def spelt_in_every_file(ids: list[str], whole: list[object]) -> dict[str, bytes]:
    """One card's trips in files of every form, none of which is another's."""
    header, lines = csv_lines(trips_of([*ids], 0))
    first = len(ids)
    files = {
        "a.csv": "\n".join([header, *lines]).encode() + b"\n",
        "b.json": json.dumps(trips_of([*ids], first)).encode(),
        "c.ndjson": "\n".join(json_lines(trips_of([*ids], 2 * first))).encode(),
        "d.parquet": typed([*ids], pa.string(), 3 * first),
    }
    if whole:
        files["e.json"] = json.dumps(trips_of(whole, 4 * first)).encode()
        files["f.parquet"] = typed(whole, pa.int64(), 4 * first + len(whole))
        files["g.parquet"] = typed(whole, pa.uint16(), 4 * first + 2 * len(whole))
    return files


def opal_lab(folder: Path, form: str | None) -> Lab:
    """A programme of at most six trips of a card and day."""
    stated = "" if form is None else f"  card_form: {form}\n"
    return lab("opal", Feed.OPAL_TRIPS, folder, (CARD_FORM, stated))


def counted_of_day(feed_lab: Lab, files: dict[str, bytes]) -> int:
    """How many tap-ons are in the table of slots and places."""
    return int(counts_of(feed_lab, files)["on_time_location/count", DAY].sum())


NUMBERS = ["7", "007", "7\t", "\u200b7", " 000000007", "\u00a07", "0000000007", "7.0"]
TEXTS = [" b\u00e9", "be\u0301", "B\u00c9\t", "b\u00ad\u00e9", "\ufeffb\u00e9", "BE\u200d\u0301"]


@pytest.mark.parametrize(
    ("form", "ids", "whole"),
    [
        ("{kind: digits, length: 9}", NUMBERS, [7, 7]),
        ("{kind: text, case: lower}", TEXTS, []),
    ],
)
def test_one_card_in_all_its_spellings_is_one_card(
    form: str, ids: list[str], whole: list[object], tmp_path: Path
) -> None:
    files = spelt_in_every_file(ids, whole)
    assert counted_of_day(opal_lab(tmp_path / "stated", form), files) == 6
    assert counted_of_day(opal_lab(tmp_path / "unstated", None), files) > 2 * 6  # as 0.1.0 did


def buses_lab(folder: Path, form: str | None) -> Lab:
    """A programme of at most four pairs of slot and cell of a bus and day."""
    stated = "" if form is None else f"  vehicle_form: {form}\n"
    return lab("itms", Feed.GTFS_VEHICLE_POSITIONS, folder, (VEHICLE_FORM, stated))


def positions(feed_lab: Lab, ids: list[str]) -> bytes:
    """A position of each id in each shape of a record, in a slot and cell of its own."""
    cells = sorted(h3.grid_disk(CENTER, 1))
    readings = [
        MadeReading(
            bus,
            DAY,
            (9 + 4 * (n % 3)) * 3600,
            *h3.cell_to_latlng(cells[n // 3]),
            20_000,
            n // len(ids),
        )
        for n, bus in enumerate(ids * 3)
    ]
    return "\n".join(json_lines(records_of(feed_lab.programme, readings))).encode()


def test_one_bus_is_one_bus_flat_and_nested(tmp_path: Path) -> None:
    stated = buses_lab(tmp_path / "stated", "{kind: text, case: upper}")
    unstated = buses_lab(tmp_path / "unstated", None)
    content = {"a.ndjson": positions(unstated, ["B", " B", "B ", "B\t", "b", "\u00a0B"])}
    counts = {
        name: int(counts_of(feed_lab, content)["speed/buses", DAY].sum())
        for name, feed_lab in (("stated", stated), ("unstated", unstated))
    }
    assert counts["stated"] == 4
    assert counts["unstated"] > 2 * 4  # as 0.1.0 did


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(12, 2), pa.binary()])
def test_ids_of_a_type_with_several_spellings_are_refused_by_a_sentence(
    zones: Zones, programme_of: Callable[..., Programme], kind: pa.DataType
) -> None:
    ids: list[object] = [b"77123"] if pa.types.is_binary(kind) else [77123]
    zones.deliver(str(WEEK), {"a.parquet": typed(ids, kind, 0)})
    for form in (DIGITS, TEXT):
        with pytest.raises(InputError) as error:
            zones.ingest(programme_of("opal", card_form=form), str(WEEK))
        assert error.value.field == "card_id"
        assert "text or as whole numbers" in str(error.value)
        assert "77123" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "is_read"),
    [
        *((kind, False) for kind in (pa.float32(), pa.float64(), pa.decimal128(12, 2))),
        *((kind, True) for kind in (pa.int64(), pa.string())),
    ],
)
def test_ids_within_a_struct_are_of_the_types_that_ids_may_have(
    zones: Zones,
    programme_of: Callable[..., Programme],
    rows_of: Callable[..., Any],
    kind: pa.DataType,
    *,
    is_read: bool,
) -> None:
    ids = pa.array(["16777216" if pa.types.is_string(kind) else 16_777_216], kind)
    bus = pa.StructArray.from_arrays([ids], ["id"])
    place = pa.array([{"latitude": 21.2, "longitude": 72.8, "speed": 8.5}])
    parts = [bus, pa.array([1_469_421_000]), place]
    written = io.BytesIO()
    vehicle = pa.StructArray.from_arrays(parts, ["vehicle", "timestamp", "position"])
    pq.write_table(pa.table({"vehicle": vehicle}), written)
    zones.deliver(str(WEEK), {"a.parquet": written.getvalue()})
    programme = programme_of("itms", feed=Feed.GTFS_VEHICLE_POSITIONS, vehicle_form=DIGITS)
    if is_read:
        snapshot = zones.ingest(programme, str(WEEK))
        assert rows_of(snapshot, "vehicle_id") == [("016777216",)]
        return
    with pytest.raises(InputError, match="text or as whole numbers"):
        zones.ingest(programme, str(WEEK))


def test_ids_of_such_types_are_read_where_no_form_is_stated(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    zones.deliver(str(WEEK), {"a.parquet": typed([7], pa.float64(), 0)})
    assert rows_of(zones.ingest(programme_of("opal", card_form=None), str(WEEK)), "card_id") == [
        ("7.0",)
    ]


@pytest.mark.parametrize(
    ("one", "form"),
    [
        *((spelling, TEXT) for spelling in ("7.0", "7.", "7.00")),
        *(
            (spelling, form)
            for spelling in ("3.08e17", "3e+17", "[7]", '{"id": 7}')
            for form in (DIGITS, TEXT)
        ),
        *((spelling, DIGITS) for spelling in ("7.1", "-7", "+7", "7.0.0", "\u0667")),
        ("7.0", IdForm(IdKind.DIGITS, length=16)),  # the last of sixteen digits may be lost
    ],
)
def test_what_a_float_or_a_list_left_behind_is_set_aside(
    zones: Zones, programme_of: Callable[..., Programme], one: str, form: IdForm
) -> None:
    zones.deliver(str(WEEK), {"a.json": json.dumps(trips_of([one, "7"], 0))})
    snapshot = zones.ingest(programme_of("opal", card_form=form), str(WEEK))
    assert quarantine_counts(snapshot)["card_id_of_another_form"] == 1


@pytest.mark.parametrize("feed", FEEDS_WITH_IDS)
def test_every_feed_sets_ids_of_another_form_aside(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Callable[..., Any], feed: Feed
) -> None:
    is_trip = feed.shape is RowShape.TRIPS
    plain = programme_of("opal" if is_trip else "itms", feed=feed, card_form=None)
    if is_trip:
        trips = [MadeTrip(card, "bus", DAY, 9 * 3600, "A") for card in ("x7", "1234567890", "7")]
        records = records_of(plain, trips)
    else:
        ids = ("x7", "1234567890", "7")
        readings = [MadeReading(bus, DAY, 36_000, 21.1, 72.8, 9, n) for n, bus in enumerate(ids)]
        records = records_of(plain, readings)
    zones.deliver(str(WEEK), {"a.ndjson": "\n".join(json_lines(records))})
    field = plain.source.id_field
    form = {"card_form" if is_trip else "vehicle_form": DIGITS}
    snapshot = zones.ingest(programme_of(plain.name, feed=feed, **form), str(WEEK))
    assert quarantine_counts(snapshot)[f"{field}_of_another_form"] == 2
    of_operator = "1/" if feed is Feed.HFP else ""  # which numbers its own vehicles
    assert rows_of(snapshot, field) == [(f"{of_operator}000000007",)]


def test_an_id_of_another_form_is_no_row_without_a_card(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    """Else whoever misspells a card is no longer bounded."""
    zones.deliver(str(WEEK), {"a.json": json.dumps(trips_of(["x", "\u200b", "", None], 0))})
    programme = programme_of("opal", card_form=DIGITS, without_card=WithoutCard.OWN_UNIT)
    snapshot = zones.ingest(programme, str(WEEK))
    assert quarantine_counts(snapshot)["card_id_of_another_form"] == 1
    assert len({unit for (unit,) in rows_of(snapshot, "card_id")}) == 3


def formed(ids: list[str], form: IdForm, work: Path) -> list[str | None]:
    """The ids in their form."""
    with_form = SourceSpec(Feed.OPAL_TRIPS, "{week}", ("bus",), card_form=form)
    with connect(work) as connection:
        connection.register("taken", pa.table({"n": range(len(ids)), "card_id": ids}))
        rows = connection.execute(
            f"SELECT card_id FROM ({in_form('taken', with_form)}) ORDER BY n"
        ).fetchall()
    return [row[0] for row in rows]


@pytest.mark.some(1)
@pytest.mark.parametrize("case", LetterCase)
def test_a_form_hides_nothing_and_is_its_own_form_for_every_character(
    case: LetterCase, tmp_path: Path
) -> None:
    form = IdForm(IdKind.TEXT, case=case)
    characters = [chr(n) for n in range(1, 0x110000) if not 0xD800 <= n < 0xE000]
    given = [f"x{c}y" for c in characters]
    once = [str(formed_id) for formed_id in formed(given, form, tmp_path)]
    changed = [after for after, before in zip(once, given, strict=True) if after != before]
    assert formed(changed, form, tmp_path) == changed  # what came in its form stays in it
    assert all(unicodedata.is_normalized("NFC", formed_id) for formed_id in once)
    for character, spelling in zip(characters, once, strict=True):
        if unicodedata.category(character) in {"Cc", "Cf", "Zs", "Zl", "Zp"}:
            assert spelling in {form_of("xy", case), form_of("x y", case)}


def form_of(text: str, case: LetterCase) -> str:
    return text.upper() if case is LetterCase.UPPER else text


def test_made_up_names_are_different_numbers_and_each_has_one_form(tmp_path: Path) -> None:
    names = ["canary", *(f"canary {n}" for n in range(2)), *(f"other {n}" for n in range(24))]
    for form in (IdForm(IdKind.DIGITS, length=2), DIGITS, TEXT, KEPT):
        spelt_as = [[str(spelt(name, form, turn)) for turn in range(8)] for name in names]
        read = iter(formed([*chain(*spelt_as)], form, tmp_path))
        forms = [set(islice(read, len(ids))) for ids in spelt_as]
        assert all(len(of_name) == 1 for of_name in forms)
        assert len(set.union(*forms)) == len(names)
        assert all(len(set(ids)) >= 3 for ids in spelt_as)


def test_a_form_that_is_not_stated_leaves_terms_and_digests_alone() -> None:
    """What 0.1.0 bound its keys to, and named its snapshots by."""
    text = (SHIPPED / "opal.yaml").read_text()
    without = parse_programme("".join(_lines_without_form(text)), "opal.yaml")
    assert without.source.id_form is None
    assert not [key for key in binding_terms(without, ServiceWeek(2016, 30)) if "_form." in key]
    assert snapshot_digest(without, ServiceWeek(2016, 30), (), parser=3) == SNAPSHOT_BEFORE


def test_a_form_that_is_stated_binds_and_makes_other_rows() -> None:
    text = (SHIPPED / "opal.yaml").read_text()
    without = "".join(_lines_without_form(text))
    programmes = [
        parse_programme(without.replace(STATED, f"{STATED}  card_form: {form}\n"), "opal.yaml")
        for form in ("{kind: text}", "{kind: digits, length: 9}", "{kind: digits, length: 8}")
    ]
    terms = [binding_terms(programme, ServiceWeek(2016, 30)) for programme in programmes]
    assert terms[0]["source.card_form.case"] == "keep"
    assert terms[1]["source.card_form.length"] == "9"
    digests = {snapshot_digest(programme, ServiceWeek(2016, 30), ()) for programme in programmes}
    assert len(digests | {SNAPSHOT_BEFORE}) == 4


def test_check_warns_of_a_form_that_is_not_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(
        SHIPPED.parent, tmp_path / "include", ignore=shutil.ignore_patterns("turnstile")
    )
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(tmp_path / "include"))
    file = tmp_path / "include/programmes/opal.yaml"
    without = "".join(_lines_without_form(file.read_text()))
    file.write_text(without)
    assert main(["check", "opal"]) == 0
    assert "warning: opal.yaml: source.card_form" in capsys.readouterr().err
    file.write_text(without.replace(STATED, f"{STATED}  card_form: {{kind: text}}\n"))
    assert main(["check", "opal"]) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "form", "field"),
    [
        ("opal", "card_form: {kind: digits}", "source.card_form.length"),
        ("opal", "card_form: {kind: digits, length: 1}", "source.card_form.length"),
        ("opal", "card_form: {kind: digits, length: 65}", "source.card_form.length"),
        ("opal", "card_form: {kind: digits, length: 9, case: upper}", "source.card_form.case"),
        ("opal", "card_form: {kind: text, length: 9}", "source.card_form.length"),
        ("opal", "card_form: {kind: text, case: title}", "source.card_form.case"),
        ("opal", "card_form: {kind: number}", "source.card_form.kind"),
        ("opal", "vehicle_form: {kind: text}", "source.vehicle_form"),
        ("itms", "card_form: {kind: text}", "source.card_form"),
    ],
)
def test_a_form_that_cannot_be_is_reported_with_its_field(name: str, form: str, field: str) -> None:
    text = "".join(_lines_without_form((SHIPPED / f"{name}.yaml").read_text()))
    with pytest.raises(ProgrammeError) as error:
        parse_programme(text.replace(STATED, f"{STATED}  {form}\n"), f"{name}.yaml")
    assert error.value.field == field


def _lines_without_form(text: str) -> list[str]:
    return [
        line for line in text.splitlines(keepends=True) if "_form:" not in line or "date" in line
    ]
