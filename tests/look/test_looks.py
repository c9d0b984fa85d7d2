"""A look names what files ask, with the line that mends it; nothing leaves the private zone."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from city_week import BUS_COLUMNS, WEEK, ZONE, Form, Tap, readings, taps, written

from turnstile.cli import main
from turnstile.durable_files import sha256_of
from turnstile.look import looking
from turnstile.look.file_form import has_records
from turnstile.pipeline import steps
from turnstile.programme.source_spec import FileSpec
from turnstile.sources.ingest.landing import RawFile, form_of

TYPED = ("id_tarjeta", "momento", "parada", "modo", "tipo")
SPANISH = ("CHECK IN", "CHECK OUT")
DATED = Form(dates="DD/MM/YYYY")


def _decided(record: dict[str, Any]) -> set[str]:
    return {decision["key"] for decision in record["decisions"] if decision["must"]}


@pytest.mark.parametrize("feed", ["gate_counts", "gate_counters"])
def test_files_that_name_nobody_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feed: str
) -> None:
    """Gates have no event's id to count by, and the look ended in a traceback."""
    pytest.importorskip("turnstile_design")
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path / "var"))
    made = ["sample", feed, "--weeks", str(WEEK), "--rows", "300", "--out", str(tmp_path)]
    assert main(made) == 0
    files = [str(path) for path in sorted((tmp_path / feed / str(WEEK)).iterdir())]
    main(["look", "--from", *files, "--feed", feed, "--zone", str(ZONE)])
    (page,) = (tmp_path / "var/private/looks").rglob("look.md")
    assert "## Fields" in page.read_text()


@pytest.mark.long
def test_files_without_a_question_are_ready_and_the_week_is_published(city: Any) -> None:
    said = city.new(taps(), Form())
    assert f"put the files of a week into {city.home}/landing/city/WEEK/" in said
    code, said, record = city.look()
    assert (code, record["ready"], record["decisions"]) == (0, True, [])
    assert said.splitlines()[-1] == "ready"
    read = ["Files", "Fields", "Rules", "Days", "Judgement"]
    assert list(record["sections"]) == [*read, "What the bounds leave out"]
    assert city.tells("run", "city", "--week", WEEK)[0] == 0
    assert city.is_published


# records, form, what an edit makes wrong, the key, what the line says
FAULTS: dict[str, tuple[Any, Form, tuple[str, str] | None, str, str]] = {
    "miles an hour under km/h": (
        readings,
        Form(unit="mph"),
        ("speed_unit: .*", "speed_unit: km/h"),
        "source.speed_unit",
        "speed_unit: mph",
    ),
    "knots under miles an hour": (
        readings,
        Form(unit="knots"),
        ("speed_unit: .*", "speed_unit: mph"),
        "source.speed_unit",
        "speed_unit: knots",
    ),
    "a unit that nobody decided": (
        readings,
        Form(unit="m/s"),
        ("speed_unit: .*", "speed_unit: decide"),
        "source.speed_unit",
        "speed_unit: m/s",
    ),
    "instants of another clock": (
        taps,
        Form(zone=ZoneInfo("UTC")),
        None,
        "source.file.zone",
        "file: {zone: UTC}",
    ),
    "dates the other way": (
        taps,
        DATED,
        ("date_form: .*", "date_form: MM/DD/YYYY"),
        "source.date_form",
        "date_form: DD/MM/YYYY",
    ),
    "words that nobody explains": (
        taps,
        Form(words=SPANISH),
        None,
        "source.action_names",
        'action_names: {"CHECK IN": decide, "CHECK OUT": decide}   # enter, exit or no_tap; CHECK',
    ),
    "a column that nobody reads": (
        taps,
        Form(words=SPANISH),
        ("\n    action: .*", ""),
        "source.columns.action",
        'columns: {action: "tipo"}   # and action_names',
    ),
    "semicolons, commas, titles, Latin-1, epoch": (
        readings,
        Form(
            delimiter=";", decimal=",", titles=2, encoding="latin-1", times="epoch_ms", unit="m/s"
        ),
        ("\n  file: .*", "\n  speed_unit: m/s"),
        "source.file",
        "file: {encoding: latin-1, header_row: 3, decimal: comma, times: epoch_ms}",
    ),
    "times in microseconds": (
        taps,
        Form(times="epoch_us"),
        ("\n  file: .*", ""),
        "source.file",
        "file: {times: epoch_us}",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_key_and_its_line_and_no_week_with_it_is_published(
    city: Any, fault: str
) -> None:
    records, form, edit, key, line = FAULTS[fault]
    vehicles = records is readings
    unit = () if not vehicles or (edit and "file" in edit[0]) else ("--speed-unit", form.unit)
    dates = ("--date-form", form.dates) if form.dates else ()
    city.new(records(), form, *unit, *dates)
    if edit:
        if vehicles and "file" in edit[0]:
            city.edit("\n  speed_unit: .*", "")
        city.edit(*edit)
    code, said, record = city.look()
    assert code == 2
    assert key in _decided(record)
    assert f"to decide: {key}: " in said
    lines = {decision["key"]: decision["line"] for decision in record["decisions"]}
    assert lines[key].startswith(line)
    city.run_stops()


def test_a_line_that_is_adopted_mends_the_week(city: Any) -> None:
    city.new(readings(), Form(unit="mph"), "--speed-unit", "km/h")
    (line,) = city.lines().values()
    city.adopt(line)
    assert city.look()[0] == 0
    assert city.tells("run", "city", "--week", WEEK)[0] == 0
    assert city.is_published
    assert city.is_charged  # negative control of all that stop


@pytest.mark.parametrize("cards", [19, 20])
def test_a_line_names_no_word_that_fewer_than_twenty_cards_have(city: Any, cards: int) -> None:
    records = [
        replace(tap, mode="tren") if int(tap.card) < 30850000 + cards else tap for tap in taps()
    ]
    city.new(records, Form())
    record = city.look()[2]
    lines = "".join(decision["line"] for decision in record["decisions"])
    assert ("tren" in lines) is (cards == 20)
    assert "'tren'" in "\n".join(record["sections"]["Fields"])  # a person in the zone sees it
    assert "source.mode_names" in _decided(record)


def test_a_line_for_new_words_keeps_those_that_are_explained(city: Any) -> None:
    city.new(taps(), Form(words=SPANISH))
    city.edit("\nsource:\n", '\nsource:\n  action_names: {"CHECK IN": enter}\n')
    lines = city.lines()
    assert lines["source.action_names"].startswith(
        'action_names: {"CHECK IN": enter, "CHECK OUT": decide}'
    )
    assert "quarantine_small" not in lines


def test_what_a_terminal_shows_holds_no_value_and_nothing_but_the_private_zone_changes(
    city: Any,
) -> None:
    records = [
        *taps(20),
        *[Tap("SECRET9", tap.at, 0, enters=True, mode="SECRET8") for tap in taps(1)],
    ]
    city.new(records, Form(words=SPANISH))
    city.tells("check", "city")  # keeps what it found of programmes beside the zones
    before = {p for p in city.home.rglob("*") if "private" not in p.parts}
    code, said, record = city.look()
    assert code == 2
    for secret in ("SECRET", "30850", "CHECK IN", f"{len(records)}"):
        assert secret not in said
        assert secret in json.dumps(record)
    after = {p for p in city.home.rglob("*") if "private" not in p.parts}
    assert before == after
    page = city.home / f"private/city/{WEEK}/snapshots/look/look.md"
    assert page.stat().st_mode & 0o077 == 0
    assert str(page) in said
    assert not list((city.home / "private").rglob(".look-*"))


def test_a_first_week_stops_at_what_nobody_decided_and_a_later_one_does_not(
    city: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(3)  # noqa: S311 - made-up spellings
    plain = taps()
    city.new(plain, Form())
    spelt = [replace(tap, card=f"{chance.choice(['', '00'])}{tap.card}") for tap in plain]
    city.deliver(spelt, Form())
    city.run_stops("source.card_form", f"private/city/{WEEK}/snapshots/look/look.md")
    page = (city.home / f"private/city/{WEEK}/snapshots/look/look.md").read_text()
    assert all(f"- `{field}`: " in page for field in ("card_id", "tapped_at", "action"))
    city.deliver(plain, Form())
    with monkeypatch.context() as nobody_reads:  # lines of a page that nobody is shown are not made
        nobody_reads.setattr(looking, "lines_of_fields", pytest.fail)
        nobody_reads.setattr(looking, "_lines_of_rules", pytest.fail)
        city.goes_on()
    assert city.tells("run", "city", "--week", WEEK)[0] == 0  # and a week is sealed
    after = [replace(tap, at=tap.at.replace(day=1, month=8)) for tap in spelt if tap.at.day == 25]
    folder = city.home / "landing/city/2016-W31"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_bytes(written(after, Form()))
    said = city.tells("run", "city", "--week", "2016-W31")[1]
    assert "nobody has decided" not in said
    assert "days_present" in said  # it came as far as validation


def test_a_first_week_stops_where_a_column_that_nobody_reads_says_enter_or_leave(
    city: Any,
) -> None:
    city.new(taps(), Form(words=SPANISH))
    city.edit("\n    action: .*", "")
    city.run_stops("source.columns.action")
    city.edit("\nsource:\n", "\nsource:\n  without_action: enter\n")  # a decision that states it
    city.goes_on()


def test_files_alone_are_looked_at_too(city: Any) -> None:
    file = city.deliver(taps(), DATED)
    columns = ("card_id=id_tarjeta", "place=parada", "mode=modo", "tap_date=fecha", "tap_time=hora")
    given = [f"--column={column}" for column in columns]
    code, said = city.tells(
        "look", "--from", file, "--feed", "taps", *given, "--zone", "America/Chicago"
    )
    assert code == 2
    record = json.loads((city.home / "private/looks/a/look.json").read_text())
    lines = {decision["key"]: decision["line"] for decision in record["decisions"]}
    assert lines["source.modes"] == 'modes: ["bus"]'
    assert lines["source.date_form"] == "date_form: DD/MM/YYYY"
    assert lines["source.columns.action"].startswith('columns: {action: "tipo"}')
    assert "2016-07-31: " in "\n".join(record["sections"]["Days"])
    assert "source.date_form" in said


def test_what_follows_from_a_decision_is_not_listed_before_it(city: Any) -> None:
    modes = ("bus", "tren", "subte")
    records = [
        replace(tap, mode="lancha" if tap.card.endswith("07") else modes[int(tap.card) % 3])
        for tap in taps(100)
    ]
    file = city.deliver(records, Form(words=SPANISH))
    columns = ("card_id=id_tarjeta", "place=parada", "mode=modo", "tapped_at=momento")
    given = [f"--column={column}" for column in (*columns, "action=tipo")]
    given += ["--feed", "taps", "--zone", "America/Chicago"]
    said = city.tells("look", "--from", file, *given)[1]
    listed = [line.split(":")[1].strip() for line in said.splitlines() if "decide" in line]
    assert listed == ["source.action_names", "source.modes"]
    record = json.loads((city.home / "private/looks/a/look.json").read_text())
    judged = "\n".join(record["sections"]["Judgement"])
    assert "rows_present" in judged  # a person in the private zone still reads what follows
    few = [tap for tap in taps(100) if tap.at.astimezone(ZONE).day != 27]  # follows from nothing
    file = city.deliver(few, Form())
    said = city.tells("look", "--from", file, *given)[1]
    assert "to decide: source.missing_day" in said


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((), "name a programme, or files"),
        (("city", "--from", "x.csv"), "name a programme, or files"),
        (("nowhere",), "is no programme"),
        (("--from", "none.csv"), "is not there"),
    ],
)
def test_what_cannot_be_looked_at_says_so(city: Any, arguments: tuple[str, ...], rule: str) -> None:
    code, said = city.tells("look", *arguments)
    assert code == 2
    assert rule in said


def test_a_programme_without_files_names_the_folder(city: Any) -> None:
    city.new(taps(1), Form())
    for path in (city.home / "landing/city").rglob("*.csv"):
        path.unlink()
    code, said = city.tells("look", "city")
    assert code == 2
    assert f"{city.home}/landing/city/" in said


# name of a file, what it holds, whether that is a record
HELD = {
    "a.csv": (b"a,b\n", False),
    "b.csv": (b"a,b\n\n \n", False),
    "c.csv": (b"a,b\n1,2", True),
    "d.csv.gz": (gzip.compress(b"a,b\n"), False),
    "e.csv": ("a,b\n".encode("utf-16"), False),
    "f.json": (b" [ ] ", False),
    "g.json": (b'[{"a": 1}]', True),
    "h.ndjson": (b"", False),
    "i.zip": (b"any", True),
}


@pytest.mark.parametrize("name", HELD)
def test_a_file_of_a_header_alone_holds_no_record(tmp_path: Path, name: str) -> None:
    content, holds = HELD[name]
    (tmp_path / name).write_bytes(content)
    assert has_records(RawFile(name, tmp_path / name, form_of(name)), FileSpec()) is holds


def test_a_file_of_a_header_alone_is_no_common_budget(city: Any) -> None:
    city.new(taps(), Form())
    file = city.deliver(taps(), Form())
    header = file.parent / "b.csv"
    header.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    steps.step_named("ingest")("city", str(WEEK), 0)
    whole, of_header = (city.home / f"private/city/{WEEK}/r0/files").read_text().split()
    assert whole == sha256_of(file)
    assert of_header != sha256_of(header)  # a group that reads the same one has another name of it


def test_a_refusal_names_rule_key_folder_and_look(city: Any) -> None:
    records = [
        replace(tap, place=-1) if n % 20 == 0 else tap for n, tap in enumerate(taps())
    ]  # one in twenty without a place
    city.new(records, Form())
    said = city.tells("run", "city", "--week", WEEK)[1]
    for part in (
        "null_location_many",
        "source.set_aside_at_most.null_location",
        f"turnstile look city --week {WEEK}",
        f"private/city/{WEEK}/snapshots/*/quarantine",
    ):
        assert part in said
    city.edit("\nsource:\n", '\nsource:\n  set_aside_at_most: {null_location: "1/10"}\n')
    assert "null_location_many" not in city.tells("run", "city", "--week", WEEK)[1]


def _zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/a.csv", content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.zip", _zipped),
        ("a.csv.gz", gzip.compress),
        ("a.csv.zst", lambda it: pa.compress(it, "zstd", asbytes=True)),
    ],
)
def test_new_states_what_the_bytes_of_a_packed_file_show(city: Any, name: str, pack: Any) -> None:
    form = Form(delimiter=";", decimal=",", titles=2, encoding="latin-1", times="epoch_ms")
    file = city.home / name
    file.write_bytes(pack(written(readings(1), form)))
    columns = [f"--column={field}={column}" for field, column in BUS_COLUMNS.items()]
    given = ["--gtfs", city.stops, "--mode", "bus", "--feed", "tides_vehicle_locations"]
    assert city.tells("new", "city", "--from", file, *given, *columns)[0] == 0
    file_line = "  file: {encoding: latin-1, header_row: 3, decimal: comma, times: epoch_ms}"
    text = city.yaml.read_text()
    assert file_line in text
    assert "zone: decide" in text
    code, said = city.tells("check", "city")
    assert code == 2
    for key in ("time.zone", "mechanism.unit", "source.speed_unit"):
        assert f"{key}: " in said
    assert not list((city.home / "private").iterdir())  # nothing of the look stays


def test_new_reads_the_header_of_a_workbook_under_its_titles(city: Any) -> None:
    header = ["card_id", "tapped_at", "place", "mode", "action"]
    rows = [["Consorcio"], [], header, ["c", "2016-07-25 08:00", "s1", "bus", "enter"]]
    cells = [
        "".join(
            f'<c r="{chr(65 + n)}{row}" t="str"><v>{value}</v></c>'
            for n, value in enumerate(values)
        )
        for row, values in enumerate(rows, start=1)
    ]
    sheet = "".join(f'<row r="{n}">{content}</row>' for n, content in enumerate(cells, start=1))
    file = city.home / "a.xlsx"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet>{sheet}</worksheet>")
    given = ["--gtfs", city.stops, "--mode", "bus", "--zone", "America/Chicago"]
    code, said = city.tells("new", "city", "--from", file, *given)
    assert code == 0
    assert "feed taps" in said
    assert "  file: {header_row: 3}" in city.yaml.read_text()


def _as_parquet(file: Path, rows_of_group: int) -> None:
    table = pyarrow.csv.read_csv(
        file,
        convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(TYPED, "string")),
    )
    pq.write_table(table, file.with_suffix(".parquet"), row_group_size=rows_of_group)
    file.unlink()


@pytest.mark.some(2)
@pytest.mark.parametrize("form", ["csv", "csv.gz", "csv.zst", "parquet"])
def test_a_refusal_names_file_column_and_kind_and_the_page_the_line_or_row_group(
    city: Any, form: str
) -> None:
    city.new(taps(), Form())
    late = [replace(tap, at=tap.at.replace(year=2019)) for tap in taps(1)]
    content = written([*taps(), *late], Form()).decode()
    city.deliver(taps(), Form()).write_text(content.replace("2019-", "of "))
    file = city.home / f"landing/city/{WEEK}/a.csv"
    lines = content.splitlines()
    if form == "parquet":
        _as_parquet(file, 100)
        at = f"row group {(len(lines) - 1 - len(late)) // 100}"
    else:
        packed = {"csv": bytes, "csv.gz": gzip.compress, "csv.zst": _zst}[form]
        content_now = packed(file.read_bytes())
        file.unlink()
        file.with_name(f"a.{form}").write_bytes(content_now)
        at = f"line {len(lines) - len(late) + 1}"
    said = city.tells("run", "city", "--week", WEEK)[1]
    assert "unparsable_timestamp_many: many times cannot be read; state source.file.times" in said
    assert "most are" not in said  # one card has them all: nobody is told of what kind they are
    record = city.look()[2]
    (shown, *_) = [line for line in record["sections"]["Rules"] if "set aside, city/" in line]
    assert f"a.{form}, {at[:-1]}" in shown  # of three examples the first, in the order of texts
    assert at[:-1] not in said


def _zst(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


# what makes a week wrong, and what the refusal says of it
KINDS = {
    "times in digits": (
        lambda tap: (tap, Form(times="epoch_ms")),
        "file (city/2016-W30/a.csv), column momento (whole numbers)",
    ),
    "times in words": (
        lambda tap: (replace(tap, at=tap.at), Form(times="naive")),
        "column momento (texts)",
    ),
    "no place": (lambda tap: (replace(tap, place=-1), Form()), "column parada (nothing)"),
    "modes as numbers": (lambda tap: (replace(tap, mode="700"), Form()), "(whole numbers)"),
}


@pytest.mark.parametrize("what", KINDS)
def test_a_refusal_says_of_what_kind_the_values_are_that_many_share(city: Any, what: str) -> None:
    change, told = KINDS[what]
    city.new(taps(), Form())
    changed = [change(tap) for tap in taps()]
    content = written([tap for tap, _ in changed], changed[0][1])
    if what == "times in words":
        content = content.replace(b"2016-07-", b"July ")
    city.deliver(taps(), Form()).write_bytes(content)
    code, said = city.tells("run", "city", "--week", WEEK)
    assert code in {2, 3}
    assert f"most are of file (city/{WEEK}/a.csv)" in said
    assert told in said
    assert what == "no place" or "(nothing)" not in said  # columns that the files do not have
    assert "30850" not in said


def test_a_release_that_stops_at_validation_leaves_the_page_of_the_look(city: Any) -> None:
    city.new(taps(), Form())
    city.deliver(taps(), Form(times="epoch_ms"))
    assert city.look()[0] == 2
    (page,) = city.home.rglob("look.md")
    before = page.read_text()
    assert "## To decide" in before
    assert "unparsable_timestamp_many" in city.tells("run", "city", "--week", WEEK)[1]
    assert page.read_text() == before


def test_what_is_said_of_tap_offs_without_tap_on_names_no_column(city: Any) -> None:
    city.new(taps(), Form())
    city.deliver([tap for tap in taps() if not tap.enters], Form())
    said = city.tells("run", "city", "--week", WEEK)[1]
    assert "tap_off_without_tap_on_many" in said
    assert "column" not in said.split("tap_off_without_tap_on_many")[1].split(";")[2]


def test_what_tells_nothing_at_its_volume_is_refused_by_check_and_never_charged(city: Any) -> None:
    city.new(taps(), Form())
    text = city.yaml.read_text()
    text = "\n".join(one for one in text.splitlines() if not one.startswith("accept_no_gain"))
    city.yaml.write_text(f"{text}\ntypical_volume: 840\n")
    code, said = city.tells("check", "city")
    assert code == 2
    assert "learns nothing that" in said
    looked, told, record = city.look()
    assert (looked, record["ready"]) == (2, False)
    assert "to decide: typical_volume: check refuses: " in told
    assert "\nready" not in told
    city.run_stops("accept_no_gain", code=3)  # refused at the reservation
    city.yaml.write_text(f"{text}\ntypical_volume: 840\naccept_no_gain: a first year\n")
    assert city.tells("check", "city")[0] == 0
    assert city.look()[0] == 0
    assert city.tells("run", "city", "--week", WEEK)[0] == 0
    assert city.is_published
