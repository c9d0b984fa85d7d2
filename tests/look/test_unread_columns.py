"""A column that names the mode, and that nobody reads, is asked about; no train counts as a bus."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from city_week import BUS_COLUMNS, WEEK, ZONE, Form, readings, taps, written

from turnstile.look.fields_found import is_named_as_mode

GIVEN = ("--mode", "bus", "--protect", "day", "--zone", ZONE.key, "--accept-no-gain", "made")
TAPS = ("card_id=id_tarjeta", "place=parada", "tapped_at=momento", "action=tipo")


def _half_are_trains() -> bytes:
    """Taps of buses and of trains, which a column says that has any name."""
    records = [replace(tap, mode="tren" if int(tap.card) % 2 else "colectivo") for tap in taps()]
    return written(records, Form())


def _new(city: Any, file: Path, columns: tuple[str, ...], feed: str, *more: str) -> str:
    pairs = [f"--column={column}" for column in columns]
    given = ("new", "city", "--from", file, "--feed", feed, "--gtfs", city.stops, *GIVEN)
    code, said = city.tells(*given, *pairs, *more)
    assert code == 0, said
    return str(said)


def _as_ndjson(content: bytes) -> bytes:
    header, *lines = [line.split(",") for line in content.decode().splitlines()]
    return "\n".join(json.dumps(dict(zip(header, one, strict=True))) for one in lines).encode()


def _as_parquet(content: bytes) -> bytes:
    """The same as a table of texts, whose last one of each column that nobody reads is no UTF-8."""
    header, *lines = [line.split(b",") for line in content.splitlines()]
    lines.append(
        [b"\xff" if name == b"ramo" else cell for name, cell in zip(header, lines[0], strict=True)]
    )
    table = {
        name.decode(): pa.array(cells, pa.binary()).view(pa.string())
        for name, *cells in zip(header, *lines, strict=True)
    }
    written_bytes = io.BytesIO()
    pq.write_table(pa.table(table), written_bytes)
    return written_bytes.getvalue()


def test_new_asks_for_a_column_that_is_called_as_modes_are(city: Any) -> None:
    said = _new(city, city.put("a.csv", _half_are_trains()), TAPS, "taps")
    assert "to decide: source.columns.mode" in said
    code, said = city.tells("check", "city")
    assert code == 2
    assert "source.columns.mode" in said
    code, said, record = city.look()
    assert code == 2
    (line,) = [one["line"] for one in record["decisions"] if one["key"] == "source.columns.mode"]
    assert line.startswith('columns: {mode: "modo"}')
    assert "tren" not in said


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["a.csv", "a.ndjson"])
def test_words_of_modes_are_found_in_a_column_of_any_name_and_no_week_is_charged(
    city: Any, name: str
) -> None:
    content = _half_are_trains().replace(b"modo", b"ramo")
    content = content if name == "a.csv" else _as_ndjson(content)
    said = _new(city, city.put(name, content), TAPS, "taps")
    assert "source.columns.mode" not in said  # its name says nothing
    assert city.tells("check", "city")[0] == 0
    code, said, _ = city.look()
    assert code == 2
    assert "to decide: source.columns.mode: " in said
    city.run_stops("source.columns.mode")
    city.edit("\nsource:\n", "\nsource:\n  without_mode: bus\n")  # a decision that states it
    assert "source.columns.mode" not in city.look()[1]
    city.goes_on()


def test_one_cell_that_cannot_be_read_hides_no_column_that_nobody_reads(city: Any) -> None:
    content = _half_are_trains().replace(b"modo", b"ramo")
    _new(city, city.put("a.csv", content), TAPS, "taps")
    city.put("a.parquet", _as_parquet(content))
    (city.home / f"landing/city/{WEEK}/a.csv").unlink()
    said = city.look()[1]
    assert "cannot be read" not in said
    assert "to decide: source.columns.mode: " in said


def test_vehicles_of_several_modes_are_asked_about(city: Any) -> None:
    lines = written(readings(), Form()).decode().splitlines()
    kinds = ["vehicle_type", *(("bus", "tram")[n % 2] for n in range(len(lines) - 1))]
    content = "\n".join(f"{a},{b}" for a, b in zip(lines, kinds, strict=True)).encode()
    columns = tuple(f"{field}={own}" for field, own in BUS_COLUMNS.items())
    file = city.put("a.csv", content)
    said = _new(city, file, columns, "tides_vehicle_locations", "--speed-unit", "km/h")
    assert "to decide: source.without_mode" in said
    code, _, record = city.look()
    assert code == 2
    (line,) = [one["line"] for one in record["decisions"] if one["key"] == "source.without_mode"]
    city.adopt(line)
    city.edit("\nsource:", '\nsource:\n  set_aside_at_most: {unknown_place: "1"}')
    code, said, _ = city.look()
    assert code == 0, said
    assert city.tells("check", "city")[0] == 0


def test_a_mode_that_is_no_mode_is_no_decision(city: Any) -> None:
    _new(city, city.put("a.csv", _half_are_trains().replace(b"modo", b"ramo")), TAPS, "taps")
    city.edit("\nsource:\n", "\nsource:\n  without_mode: tram\n")
    code, said = city.tells("check", "city")
    assert code == 2
    assert "source.without_mode: 'tram' is none of the modes" in said


def test_columns_that_are_read_or_say_something_else_are_not_asked_about(city: Any) -> None:
    """Negative control."""
    content = _half_are_trains().replace(b"tren", b"red").replace(b"colectivo", b"up")
    _new(city, city.put("a.csv", content.replace(b"modo", b"ramo")), TAPS, "taps")
    assert city.look()[0] == 0
    assert not any(map(is_named_as_mode, ("model", "modem_id", "moderate", "tipo", "commode")))


def test_a_programme_that_says_nothing_of_actions_is_refused_whatever_its_files_have(
    city: Any,
) -> None:
    """No column of the files says it; later ones may have one, and would count tap-offs."""
    city.new(taps(), Form(words=()), "--all-tap-on")
    city.edit("\n  without_action: .*", "")
    code, said = city.tells("check", "city")
    assert code == 2
    assert "source.columns.action: nobody has decided it" in said
    city.run_stops("source.columns.action", "source.without_action")
    city.edit("\nsource:\n", "\nsource:\n  without_action: enter\n")
    assert city.tells("check", "city")[0] == 0
    city.goes_on()


def test_a_column_that_is_called_action_is_named_by_new_and_a_file_without_it_is_refused(
    city: Any,
) -> None:
    content = written(taps(), Form()).replace(b",tipo", b",action")
    columns = (*TAPS[:-1], "mode=modo")
    file = city.put("a.csv", content)
    _new(city, file, columns, "taps")
    assert '\n    action: "action"\n' in city.yaml.read_text()
    assert city.tells("check", "city")[0] == 0
    assert city.look()[0] == 0
    file.write_bytes(content.replace(b",action", b",other"))
    city.run_stops("action: the column is missing")


def test_a_file_that_lacks_the_named_column_of_modes_is_refused(city: Any) -> None:
    city.new(taps(), Form())
    city.put("a.csv", written(taps(), Form()).replace(b"modo", b"ramo"))
    city.run_stops("modo: the column is missing")
    city.edit("\nsource:\n", "\nsource:\n  without_mode: bus\n")
    city.goes_on()
