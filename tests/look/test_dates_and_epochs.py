"""How dates and instants are written is found, asked and read, whatever the container."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from city_week import BUS_COLUMNS, EPOCHS, ZONE, Form, readings, taps, written

from turnstile.programme.source_spec import Feed
from turnstile.sources.feeds.registry import LAYOUTS

TAPS = ("card_id=id_tarjeta", "place=parada", "tapped_at=momento", "mode=modo", "action=tipo")
FORMS = {
    "day first": ("%d/%m/%Y %H:%M:%S", "DD/MM/YYYY"),
    "day first, points": ("%d.%m.%Y %H:%M:%S", "DD/MM/YYYY"),
    "month first, half days": ("%m/%d/%Y, %I:%M:%S %p", "MM/DD/YYYY"),
}


def _columns(records: Any, form: Form) -> dict[str, list[str]]:
    header, *lines = [line.split(",") for line in written(records, form).decode().splitlines()]
    return dict(zip(header, map(list, zip(*lines, strict=True)), strict=True))


def _deliver(city: Any, name: str, columns: dict[str, list[Any]]) -> Path:
    file: Path = city.put(name, b"")
    if name.endswith(".parquet"):
        pq.write_table(pa.table(columns), file)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(pa.table(columns), file)
    else:
        records = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        lines = [json.dumps(record) for record in records]
        file.write_text(f"[{', '.join(lines)}]" if name.endswith(".json") else "\n".join(lines))
        if name.endswith(".csv"):
            rows = [columns, *(record.values() for record in records)]
            file.write_text("\n".join(";".join(map(str, row)) for row in rows))
    return file


def _new(city: Any, file: Path, feed: str, columns: tuple[str, ...], *more: str) -> str:
    pairs = [f"--column={column}" for column in columns]
    given = ("--feed", feed, "--gtfs", city.stops, "--mode", "bus", "--protect", "day")
    code, said = city.tells(
        "new",
        "city",
        "--from",
        file,
        *given,
        "--zone",
        ZONE.key,
        "--accept-no-gain",
        "made",
        *pairs,
        *more,
    )
    assert code == 0, said
    return str(said)


@pytest.mark.some(1)
@pytest.mark.parametrize("form", FORMS)
def test_dates_in_one_column_with_times_are_asked_proposed_and_read(city: Any, form: str) -> None:
    pattern, right = FORMS[form]
    columns = _columns(taps(), Form())
    columns["momento"] = [
        datetime.fromisoformat(column).strftime(pattern) for column in columns["momento"]
    ]
    said = _new(city, _deliver(city, "a.csv", columns), "taps", TAPS)
    assert "to decide: source.date_form" in said
    (line,) = [line for key, line in city.lines().items() if key == "source.date_form"]
    assert line == f"date_form: {right}"
    other = {"DD/MM/YYYY": "MM/DD/YYYY", "MM/DD/YYYY": "DD/MM/YYYY"}[right]
    city.edit(r"date_form: \S+", f"date_form: {other}")
    assert city.lines()["source.date_form"] == line  # a wrong answer is found too
    city.run_stops("source.date_form")
    city.adopt(line)
    code, said, _ = city.look()
    assert code == 0, said
    city.goes_on()


def test_a_form_of_dates_that_is_given_is_stated_and_one_without_effect_is_refused(
    city: Any,
) -> None:
    columns = _columns(readings(2), Form())
    columns["momento"] = [
        f"{datetime.fromisoformat(one):%d/%m/%Y %H:%M:%S}" for one in columns["momento"]
    ]
    test_a_form = tuple(f"{field}={column}" for field, column in BUS_COLUMNS.items())
    file = _deliver(city, "a.csv", columns)
    given = ("--date-form", "DD/MM/YYYY", "--speed-unit", "km/h")
    _new(city, file, "tides_vehicle_locations", test_a_form, *given)
    assert "\n  date_form: DD/MM/YYYY" in city.yaml.read_text()
    code, said, record = city.look()
    assert "Time" not in said
    assert not [one for one in record["decisions"] if one["key"] == "source.date_form"]
    assert "unparsable_timestamp`: 0 " in "\n".join(record["sections"]["Rules"])
    (city.home / "calls.csv").write_text(";".join(dict(LAYOUTS[Feed.IST_DATEN].names).values()))
    given = ("--from", city.home / "calls.csv", "--gtfs", city.stops, "--mode", "bus")
    code, said = city.tells("new", "calls", *given, "--date-form", "DD/MM/YYYY")
    assert code == 2
    assert "--date-form: ist_daten has dates of its own standard" in said
    city.edit(r"feed: \S+", "feed: ist_daten")
    assert "source.date_form: ist_daten has dates of its own" in city.tells("check", "city")[1]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        *zip(("a.parquet", "a.feather", "a.ndjson", "a.json"), EPOCHS, strict=True),
        *zip(("a.ndjson", "a.json", "a.parquet", "a.feather"), EPOCHS, strict=True),
    ],
)
def test_epochs_in_typed_columns_are_found_by_new_and_by_look(
    city: Any, name: str, unit: str
) -> None:
    columns: dict[str, list[Any]] = dict(_columns(taps(20), Form(times=unit)))
    columns["momento"] = [int(column) for column in columns["momento"]]
    _new(city, _deliver(city, name, columns), "taps", TAPS)
    line = f"  file: {{times: {unit}}}"
    assert line in city.yaml.read_text()
    rules = "\n".join(city.look()[2]["sections"]["Rules"])
    assert "`unparsable_timestamp`: 0 set aside" in rules
    city.edit(r"\n  file: \{.*", "")
    code, _, record = city.look()
    assert code == 2
    lines = {one["key"]: one["line"] for one in record["decisions"]}
    assert lines["source.file"] == line.strip()


@pytest.mark.parametrize("kind", ["float", "text"])
def test_epochs_with_decimals_are_found_and_their_fractions_dropped(city: Any, kind: str) -> None:
    columns: dict[str, list[Any]] = dict(_columns(taps(20), Form(times="epoch_s")))
    columns["momento"] = [f"{column}.750" for column in columns["momento"]]
    name = "a.csv" if kind == "text" else "a.parquet"
    if kind == "float":
        columns["momento"] = [float(column) for column in columns["momento"]]
    _new(city, _deliver(city, name, columns), "taps", TAPS)
    assert "times: epoch_s" in city.yaml.read_text()
    assert "`unparsable_timestamp`: 0 set aside" in "\n".join(city.look()[2]["sections"]["Rules"])


def test_typed_instants_and_texts_of_iso_need_no_key(city: Any) -> None:
    """Negative control."""
    columns: dict[str, list[Any]] = dict(_columns(taps(20), Form()))
    columns["momento"] = [datetime.fromisoformat(column) for column in columns["momento"]]
    said = _new(city, _deliver(city, "a.parquet", columns), "taps", TAPS)
    assert "date_form" not in said
    assert "\n  file:" not in city.yaml.read_text()
    assert "source.file" not in {look["key"] for look in city.look()[2]["decisions"]}


def test_times_with_a_zones_short_name_have_the_line_that_reads_them(city: Any) -> None:
    columns = _columns(taps(), Form())
    columns["momento"] = [f"{column} CDT" for column in columns["momento"]]
    _new(city, _deliver(city, "a.csv", columns), "taps", TAPS)
    city.run_stops("source.file.zone")
    line = city.lines()["source.file"]
    assert line == f"file: {{zone: {ZONE.key}}}"
    city.adopt(line)
    assert city.look()[0] == 0
    columns["momento"] = [column.replace("CDT", "PDT") for column in columns["momento"]]
    _deliver(city, "a.csv", columns)
    assert city.look()[0] == 2  # no name of that zone's: nobody guesses which


@pytest.mark.parametrize("form", ["YYYY-MM-DD", "DD/MM/YYYY", "MM/DD/YYYY"])
def test_a_form_that_nobody_decided_is_proposed_as_dates_are_written(city: Any, form: str) -> None:
    columns = _columns(taps(), Form())
    stamps = [datetime.fromisoformat(stamp) for stamp in columns.pop("momento")]
    pattern = form.replace("YYYY", "%Y").replace("MM", "%m").replace("DD", "%d")
    columns["fecha"] = [f"{stamp:{pattern}}" for stamp in stamps]
    columns["hora"] = [f"{stamp:%H:%M:%S}" for stamp in stamps]
    pairs = tuple(pair for pair in TAPS if not pair.startswith("tapped_at"))
    file = _deliver(city, "a.csv", columns)
    said = _new(city, file, "taps", (*pairs, "tap_date=fecha", "tap_time=hora"))
    assert "to decide: source.date_form" in said
    said = city.look()[1]
    assert "source.date_form: nobody has decided how dates are written" in said
    assert "in another form" not in said
    line = city.lines()["source.date_form"]
    assert line == f"date_form: {form}"
    city.adopt(line)
    assert city.look()[0] == 0
