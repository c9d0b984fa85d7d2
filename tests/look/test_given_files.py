"""Files that are given to `new` and `look` as they come: what is missing is named, and where."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from city_week import WEEK, ZONE, Form, taps, written

TAPS = ("card_id=id_tarjeta", "place=parada", "tapped_at=momento", "mode=modo", "action=tipo")


def _zip(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__DOT__", "."), content)
    return packed.getvalue()


def _new(city: Any, file: Path) -> tuple[int, str]:
    given = ("--gtfs", city.stops, "--mode", "bus", "--feed", "taps", "--zone", ZONE.key)
    pairs = [f"--column={one}" for one in TAPS]
    tells: tuple[int, str] = city.tells("new", "city", "--from", file, *given, *pairs)
    return tells


OF_TAPS = "As taps it lacks card_id, tapped_at (or tap_date and tap_time), place"


@pytest.mark.parametrize(
    ("feed", "told"),
    [
        ((), (OF_TAPS, "As tides_vehicle_locations it lacks")),
        (("--feed", "taps"), (OF_TAPS, "place (or latitude and longitude)")),
        (("--feed", "itms"), ("As itms it lacks vehicle_id (license_plate)",)),
    ],
)
def test_a_look_at_unknown_columns_names_the_fields_that_are_missing(
    city: Any, feed: tuple[str, ...], told: tuple[str, ...]
) -> None:
    file = city.deliver(taps(1), Form())
    code, said = city.tells("look", "--from", file, *feed)
    assert code == 2
    for part in told:
        assert part in said
    assert ("As itms" in said) is ("itms" in feed)


def test_hidden_members_of_an_archive_are_passed_over(city: Any) -> None:
    beside = {"__MACOSX/in/._a.csv": b"\0\5\x16\7Mac OS X", "in/.DS_Store": b"\0", "._b": b"x"}
    content = written(taps(), Form())
    file = city.home / f"landing/city/{WEEK}/a.zip"
    file.parent.mkdir(parents=True)
    file.write_bytes(_zip(**beside, **{"./in/a.csv": content}))
    code, said = _new(city, file)
    assert code == 0, said
    city.edit("unit: decide", "unit: card_day")
    city.edit("typical_volume: decide", "accept_no_gain: a made city")
    code, said, record = city.look()
    assert code == 0, said
    assert f"records read {len(taps())}" in "\n".join(record["sections"]["Rules"])
    file.write_bytes(_zip(**beside))
    assert "holds no file" in city.look()[1]


@pytest.mark.parametrize("name", ["README.md", "Readme.txt", "LICENSE"])
def test_a_member_that_is_no_feed_is_named(city: Any, name: str) -> None:
    file = city.home / "x.zip"
    file.write_bytes(_zip(**{name: b"what this is\n", "a.csv": written(taps(1), Form())}))
    code, said = _new(city, file)
    assert code == 2
    assert f"x.zip/{name}: " in said
    assert "what this is" not in said


def _week_by_day(city: Any, encodings: list[str], *, read: bool = True) -> None:
    """Deliver a file a day, each with names in an encoding of its own."""
    records = taps()
    for number, day in enumerate(WEEK.days):
        week = [tap for tap in records if tap.at.astimezone(ZONE).date() == day]
        if encodings[number] == "ascii":
            city.deliver(week, Form(), f"{day}.csv")
            continue
        text = written(week, Form()).decode()
        if read:
            text = text.replace(",s3,", ",Bø,")
        else:
            header, *lines = text.splitlines()
            text = "\n".join([f"{header},x", *(f"{line},Ål" for line in lines)])
        city.deliver(week, Form(), f"{day}.csv").write_bytes(text.encode(encodings[number]))


def _look(city: Any, encodings: list[str], *, read: bool = True) -> tuple[int, str, dict[str, str]]:
    city.stops.write_text(city.stops.read_text() + "Bø,30.215,-97.79\n")
    city.new(taps(1), Form())
    _week_by_day(city, encodings, read=read)
    (city.home / f"landing/city/{WEEK}/a.csv").unlink()
    code, said, record = city.look()
    return code, said, {one["key"]: one["line"] for one in record["decisions"]}


def test_one_latin_1_file_among_ascii_ones_has_its_line(city: Any) -> None:
    code, _, lines = _look(city, ["ascii"] * 3 + ["latin-1"] + ["ascii"] * 3)
    assert code == 2  # a release that is not told would set its records aside
    assert lines["source.file"] == "file: {encoding: latin-1}"
    city.adopt(lines["source.file"])
    assert city.look()[0] == 0
    city.goes_on()


def test_one_latin_1_file_among_utf_8_ones_is_named_with_its_column(city: Any) -> None:
    code, said, _ = _look(city, ["utf-8"] * 3 + ["latin-1"] + ["utf-8"] * 3)
    assert code == 2
    (line,) = [one for one in said.splitlines() if "source.file.encoding" in one]
    assert f"city/{WEEK}/2016-07-28.csv is written in latin-1" in line
    assert "column parada" in line
    assert "deliver that file again in utf-8" in line
    assert "Bø" not in said


def test_utf_8_under_a_stated_latin_1_is_no_silent_other_name(city: Any) -> None:
    _look(city, ["utf-8"] * 7)
    city.edit("\nsource:\n", "\nsource:\n  file: {encoding: latin-1}\n")
    code, said, _ = city.look()
    assert code == 2
    assert "to decide: source.file: " in said


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("stated", "named", "reads"),
    [
        ("latin-1", "2016-07-25", "latin-1"),
        ("windows-1252", "2016-07-25", "windows-1252"),
        ("utf-8", "2016-07-28", "utf-8"),
        ("utf-16", "2016-07-28", "utf-8"),  # of none of them
    ],
)
def test_of_two_files_the_one_is_named_that_is_not_as_the_programme_says(
    city: Any, stated: str, named: str, reads: str
) -> None:
    _look(city, ["utf-8", "ascii", "ascii", "latin-1", "ascii", "ascii", "ascii"])
    city.edit("\nsource:\n", f"\nsource:\n  file: {{encoding: {stated}}}\n")
    said = city.look()[1]
    (line,) = [one for one in said.splitlines() if "source.file.encoding" in one]
    assert f"city/{WEEK}/{named}.csv is written in " in line
    assert f"deliver that file again in {reads}" in line
    assert "most others" not in line


def test_lines_are_promised_only_where_there_are_some(city: Any) -> None:
    encodings = ["utf-8", *["ascii"] * 5, "latin-1"]
    said = _look(city, encodings)[1]
    assert "not ready: figures and examples stand in " in said
    assert "the lines that would do" not in city.tells("run", "city", "--week", WEEK)[1]
    _week_by_day(city, ["latin-1"] * 7)
    said = city.look()[1]
    assert "not ready: the lines that would do stand in " in said


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_characters_of_a_column_that_nobody_reads_ask_nothing(city: Any, encoding: str) -> None:
    """Negative control."""
    others = [encoding] * 3 + ["latin-1"] + ["utf-8"] * 3
    assert _look(city, others, read=False)[0] == 0
