"""A look names what files ask, with the line that mends it; nothing leaves the private zone."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from city_week import WEEK, Form, Tap, readings, taps, written

SPANISH = ("CHECK IN", "CHECK OUT")
DATED = Form(dates="DD/MM/YYYY")


def _decided(record: dict[str, Any]) -> set[str]:
    return {one["key"] for one in record["decisions"] if one["must"]}


def test_files_without_a_question_are_ready_and_the_week_is_published(city: Any) -> None:
    city.new(taps(), Form())
    code, said, record = city.look()
    assert (code, record["ready"], record["decisions"]) == (0, True, [])
    assert said.splitlines()[-1] == "ready"
    assert list(record["sections"]) == ["Files", "Fields", "Rules", "Days", "Judgement"]
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
    lines = {one["key"]: one["line"] for one in record["decisions"]}
    assert lines[key].startswith(line)
    city.tells("run", "city", "--week", WEEK)
    assert not city.is_published
    assert not _charged(city)


def _charged(city: Any) -> bool:
    code, said = city.tells("ledger", "entries")
    return code == 0 and "sealed" in said


def test_a_line_that_is_adopted_mends_the_week(city: Any) -> None:
    city.new(readings(), Form(unit="mph"), "--speed-unit", "km/h")
    (line,) = city.lines().values()
    city.adopt(line)
    assert city.look()[0] == 0
    assert city.tells("run", "city", "--week", WEEK)[0] == 0
    assert city.is_published


@pytest.mark.parametrize("cards", [19, 20])
def test_a_line_names_no_word_that_fewer_than_twenty_cards_have(city: Any, cards: int) -> None:
    records = [
        replace(tap, mode="tren") if int(tap.card) < 30850000 + cards else tap for tap in taps()
    ]
    city.new(records, Form())
    record = city.look()[2]
    lines = "".join(one["line"] for one in record["decisions"])
    assert ("tren" in lines) is (cards == 20)
    assert "'tren'" in "\n".join(record["sections"]["Fields"])  # a person in the zone sees it
    assert "source.mode_names" in _decided(record)


def test_what_a_terminal_shows_holds_no_value_and_nothing_but_the_private_zone_changes(
    city: Any,
) -> None:
    records = [
        *taps(20),
        *[Tap("SECRET9", tap.at, 0, enters=True, mode="SECRET8") for tap in taps(1)],
    ]
    city.new(records, Form(words=SPANISH))
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


def test_a_first_week_stops_at_what_nobody_decided_and_a_later_one_does_not(city: Any) -> None:
    chance = random.Random(3)  # noqa: S311 - made-up spellings
    plain = taps()
    city.new(plain, Form())
    spelt = [replace(tap, card=f"{chance.choice(['', '00'])}{tap.card}") for tap in plain]
    city.deliver(spelt, Form())
    code, said = city.tells("run", "city", "--week", WEEK)
    assert code == 2
    assert "source.card_form" in said
    assert f"private/city/{WEEK}/snapshots/look/look.md" in said
    assert not _charged(city)
    city.deliver(plain, Form())
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
    said = city.tells("run", "city", "--week", WEEK)[1]
    assert "source.columns.action" in said
    assert not _charged(city)
    city.edit("\nsource:\n", "\nsource:\n  without_action: enter\n")  # a decision that states it
    assert city.tells("run", "city", "--week", WEEK)[0] == 0


def test_files_alone_are_looked_at_too(city: Any) -> None:
    file = city.deliver(taps(), DATED)
    columns = ("card_id=id_tarjeta", "place=parada", "mode=modo", "tap_date=fecha", "tap_time=hora")
    given = [f"--column={one}" for one in columns]
    code, said = city.tells(
        "look", "--from", file, "--feed", "taps", *given, "--zone", "America/Chicago"
    )
    assert code == 2
    record = json.loads((city.home / "private/looks/a/look.json").read_text())
    lines = {one["key"]: one["line"] for one in record["decisions"]}
    assert lines["source.modes"] == 'modes: ["bus"]'
    assert lines["source.date_form"] == "date_form: DD/MM/YYYY"
    assert lines["source.columns.action"].startswith('columns: {action: "tipo"}')
    assert "2016-07-31: " in "\n".join(record["sections"]["Days"])
    assert "source.date_form" in said


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
