"""Dates of one depot the other way round, ends of another clock, a named pair of coordinates."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb
import pytest
from city_week import STOPS, WEEK, ZONE, Form, readings, taps, written

AUGUST = "2016-W31"  # the first seven days of a month: each of its dates can be read both ways
DEPOTS = 4


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def _depots(city: Any, *forms: str) -> None:
    """Deliver the first week of August, each depot in its form of dates, and write a programme."""
    records = [replace(tap, at=tap.at + timedelta(days=7)) for tap in taps()]
    for depot, form in enumerate(forms):
        some = [tap for tap in records if int(tap.card) % len(forms) == depot]
        city.put(f"d{depot}.csv", written(some, Form(dates=form)), AUGUST)
    city.new(taps(), Form(dates=forms[0]), "--date-form", forms[0])


@pytest.mark.long
def test_one_depot_of_four_with_the_month_first_stops_the_week(city: Any) -> None:
    _depots(city, *["DD/MM/YYYY"] * (DEPOTS - 1), "MM/DD/YYYY")
    code, said = city.tells("look", "city", "--week", AUGUST)
    assert code == 2
    assert "to decide: source.date_form: dates: " in said
    city.run_stops("source.set_aside_at_most.unknown_dates", week=AUGUST)
    city.edit("\nsource:\n", '\nsource:\n  set_aside_at_most: {unknown_dates: "1/3"}\n')
    assert city.tells("run", "city", "--week", AUGUST)[0] == 0  # a decision that states it
    assert city.is_published


def _goes_on(city: Any) -> None:
    assert city.tells("look", "city", "--week", AUGUST)[0] == 0
    city.goes_on(AUGUST)


def test_depots_of_one_form_go_on(city: Any) -> None:
    _depots(city, *["MM/DD/YYYY"] * DEPOTS)
    _goes_on(city)


@pytest.mark.long
def test_a_day_without_service_is_in_no_other_form(city: Any) -> None:
    _depots(city, *["DD/MM/YYYY"] * DEPOTS)
    closed = [replace(tap, at=tap.at + timedelta(days=7)) for tap in taps()]
    closed = [tap for tap in closed if tap.at.astimezone(ZONE).date() == date(2016, 8, 1)]
    city.put("closed.csv", written(closed, Form(dates="DD/MM/YYYY")), AUGUST)
    city.edit("\nsource:\n", "\nsource:\n  absent_days: [2016-08-01]\n")
    _goes_on(city)


@pytest.mark.long
def test_a_file_of_a_whole_year_is_in_no_other_form(city: Any) -> None:
    _depots(city, "DD/MM/YYYY")
    days = [date(2016, 1, 1) + timedelta(days=n) for n in range(240)]
    day_taps = [tap for tap in taps() if tap.at.astimezone(ZONE).day == 27]
    year = [
        replace(tap, at=tap.at + (day - date(2016, 7, 27)))
        for day in days
        for tap in day_taps[:40]
        if day.isoformat() < "2016-08-08"
    ]
    city.put("year.csv", written(year, Form(dates="DD/MM/YYYY")), AUGUST)
    (city.home / f"landing/city/{AUGUST}/d0.csv").unlink()
    _goes_on(city)


def _hired(city: Any, *, ends_in_utc: bool) -> None:
    rows = []
    for number, tap in enumerate(taps()):
        end = tap.at + timedelta(minutes=12)
        end = end if ends_in_utc else end.astimezone(ZONE)
        times = [f"{at:%Y-%m-%d %H:%M:%S}" for at in (tap.at.astimezone(ZONE), end)]
        rows.append([f"r{number}", *times, STOPS[tap.place][0], STOPS[number % 12][0]])
    header = ["ride_id", "started_at", "ended_at", "start_station_id", "end_station_id"]
    file = city.put("a.csv", _csv(header, rows))
    given = ["--gtfs", city.stops, "--mode", "bike", "--zone", ZONE.key]
    assert city.tells("new", "city", "--from", file, *given, "--accept-no-gain", "made")[0] == 0


def test_ends_of_another_clock_stop_the_week(city: Any) -> None:
    _hired(city, ends_in_utc=True)
    assert "to decide: source.file.zone: clock" in city.tells("look", "city")[1]
    city.run_stops()


def test_ends_of_the_same_clock_go_on(city: Any) -> None:
    _hired(city, ends_in_utc=False)
    assert city.tells("look", "city")[0] == 0
    city.goes_on(WEEK)


def _buses(city: Any, *named: str) -> float:
    """Return the largest latitude read of files that have a depot's coordinates too."""
    rows = [
        [
            *(
                reading.bus,
                f"{reading.at.astimezone(ZONE):%Y-%m-%d %H:%M:%S}",
                f"{reading.kmh:.3f}",
            ),
            *(f"[{reading.longitude:.6f}, {reading.latitude:.6f}]", 30.25, -97.75),
        ]
        for reading in readings()
    ]
    header = ["license_plate", "observationDateTime", "speed", "pos", "latitude", "longitude"]
    file = city.put("a.csv", _csv(header, rows))
    given = ["--gtfs", city.roads, "--feed", "itms", "--zone", ZONE.key, "--speed-unit", "km/h"]
    given += ["--protect", "day", "--accept-no-gain", "made", *named]
    assert city.tells("new", "city", "--from", file, *given)[0] == 0
    city.goes_on(WEEK)
    rows_read = f"{city.home}/private/city/{WEEK}/snapshots/*/rows/*/*.parquet"
    (most,) = duckdb.execute(f"SELECT max(latitude) FROM '{rows_read}'").fetchone() or (0,)
    return float(most)


def test_a_pair_of_coordinates_that_is_named_is_the_one_that_is_read(city: Any) -> None:
    truth = round(max(reading.latitude for reading in readings()), 6)
    assert _buses(city, "--column=coordinates=pos") == pytest.approx(truth)


def test_calls_of_switzerland_have_dates_of_their_own(city: Any) -> None:
    rows = []
    for number, tap in enumerate(taps()):
        at = tap.at.astimezone(ZONE)
        times = [f"{at:%d.%m.%Y %H:%M}", f"{at:%d.%m.%Y %H:%M:%S}"]
        rows.append([f"run{number % 200}", *times, "REAL", "false", STOPS[tap.place][0]])
    header = ["FAHRT_BEZEICHNER", "ANKUNFTSZEIT", "AN_PROGNOSE", "AN_PROGNOSE_STATUS"]
    file = city.put("a.csv", _csv([*header, "FAELLT_AUS_TF", "BPUIC"], rows, ";"))
    given = ["--gtfs", city.stops, "--mode", "bus", "--zone", ZONE.key, "--protect", "day"]
    said = city.tells("new", "city", "--from", file, *given)[1]
    assert "source.date_form" not in said  # which no option could answer
    code, said = city.tells("look", "city")
    assert (code, said.splitlines()[-1]) == (0, "ready")


@pytest.mark.parametrize("records", [[1, 2, 3], [[1]], [None]])
def test_json_that_holds_no_records_is_refused_in_one_sentence(city: Any, records: Any) -> None:
    file = city.home / "a.json"
    file.write_text(json.dumps(records))
    given = ["--from", file, "--feed", "taps"]
    assert "its columns are not those of taps" in city.tells("look", *given, "--zone", "UTC")[1]
    assert "its columns are not those of taps" in city.tells("new", "city", *given)[1]
