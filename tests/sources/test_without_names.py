"""Gates that count, trips without a card: what a record becomes, and what one ride can move."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import pairwise

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested_weeks import Read, Zones

from turnstile.programme.source_spec import (
    DateForm,
    DecimalMark,
    Delimiter,
    Feed,
    FileSpec,
    WithoutCard,
)
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.gate_counts import MOST_OF_RECORD
from turnstile.sources.ingest.snapshot import NUMBERS_FILE, counts_of, unnamed_of

MONDAY = date(2016, 7, 25)
READ = "service_date, tap_on_minute, tap_on_location, tap_off_minute, tap_off_location"
GATES = {"read": READ, "modes": ("train",), "card_form": None}
COUNTERS = "C/A,UNIT,SCP,STATION,DATE,TIME,DESC,ENTRIES,EXITS"
TRIPS = "ride_id,started_at,ended_at,start_station_id,end_station_id"
TRIPS += ",start_lat,start_lng,end_lat,end_lng"


@pytest.fixture
def gates(ingested: Read) -> Read:
    header = "gate_id,station_id,interval_start,entries,exits"
    return partial(ingested, header=header, feed=Feed.GATE_COUNTS, **GATES)


@pytest.fixture
def counters(ingested: Read) -> Read:
    form = DateForm.MONTH_FIRST
    return partial(ingested, header=COUNTERS, feed=Feed.GATE_COUNTERS, date_form=form, **GATES)


@pytest.fixture
def trips(ingested: Read) -> Read:
    own_unit = WithoutCard.OWN_UNIT
    hired = Feed.HIRED_TRIPS
    return partial(
        ingested, header=TRIPS, read=READ, feed=hired, modes=("bike",), without_card=own_unit
    )


def test_entries_and_exits_are_rows_of_one_end(gates: Read) -> None:
    rows, counts = gates("g,A,2016-07-25T08:00:00,1,2", "g,B,2016-07-25T08:00:00,0,0")
    off = (MONDAY, None, None, 480, "A")
    assert rows == [(MONDAY, 480, "A", None, None), off, off]
    assert (counts["rows_in"], counts["rows_out"]) == (3, 3)


def test_numbers_that_are_none_are_set_aside_and_a_flood_is_a_full_gate(gates: Read) -> None:
    bad = ["x,1", "1,", "-1,1", "1.5,1", "1e9,0"]
    lines = [f"g{n},A,2016-07-25T08:00:00,{pair}" for n, pair in enumerate(bad)]
    flood, twice = "f,A,2016-07-25T08:00:00,99999999,0", "t,A,2016-07-25T08:00:00"
    rows, counts = gates(*lines, flood, f"{twice},3,0", f"{twice},3,0", f"{twice},2,0")
    assert len(rows) == MOST_OF_RECORD + 3
    assert (counts["no_riders"], counts["duplicates"]) == (len(bad), 2)


@pytest.mark.parametrize("number", [10**15 - 1, 2**63 - 1, 10**30, 10**60])
def test_one_ride_more_makes_no_number_none(gates: Read, number: int) -> None:
    lines = [f"g,A,2016-07-25T08:00:00,{n},0" for n in (number, number + 1)]
    assert {len(gates(line)[0]) for line in lines} == {MOST_OF_RECORD}


def test_one_ride_more_makes_no_float_none(
    zones: Zones, programme_of: Callable[..., Programme]
) -> None:
    """From 10^16 on the engine prints the digits of a float apart."""
    numbers = [9_999_999_999_999_998.0, 1e16, 1.5e16, 1.25e22, 1e38, 1e300]
    gates = [f"g{n}" for n in range(len(numbers))]
    begin = ["2016-07-25T08:00:00"] * len(numbers)
    columns = {"gate_id": gates, "station_id": gates, "interval_start": begin, "entries": numbers}
    written = io.BytesIO()
    pq.write_table(pa.table(columns | {"exits": [0.0] * len(numbers)}), written)
    zones.deliver("2016-W30", {"a.parquet": written.getvalue()})
    programme = programme_of("opal", feed=Feed.GATE_COUNTS, modes=("train",), card_form=None)
    counts = counts_of(zones.ingest(programme, "2016-W30"))
    assert counts["rows_out"] == MOST_OF_RECORD * len(numbers)


def test_one_ride_more_makes_no_number_of_json_none(
    zones: Zones, programme_of: Callable[..., Programme]
) -> None:
    """From 10^21 on the digits of a number with a point stand apart there, without a sign."""
    record = '{{"gate_id": "{}", "station_id": "A", "interval_start": "2016-07-25T08:00:00", '
    numbers = ["999999999999999868928.0", "1000000000000000000000.0", "1.25e+22"]
    lines = [
        record.format(gate) + f'"entries": {number}, "exits": 0}}'
        for gate, number in enumerate(numbers)
    ]
    zones.deliver("2016-W30", {"a.json": f"[{','.join(lines)}]".encode()})
    programme = programme_of("opal", feed=Feed.GATE_COUNTS, modes=("train",), card_form=None)
    counts = counts_of(zones.ingest(programme, "2016-W30"))
    assert counts["rows_out"] == MOST_OF_RECORD * len(numbers)


def reading(
    gate: str, clock: str, entries: object, exits: object = 0, day: str = "07/25/2016"
) -> str:
    return f"A,R1,{gate},S,{day},{clock},REGULAR,{entries},{exits}"


@pytest.mark.parametrize("more", [0, 1])
def test_one_ride_moves_one_difference_though_the_clock_passes_an_hour_twice(
    counters: Read, more: int
) -> None:
    """Sorted by the clock its readings would not be in the order of their making."""
    night = [("01:30:00", 10), ("02:20:05", 11 + more), ("02:20:01", 14 + more)]
    lines = [reading("g", clock, n, day="04/03/2016") for clock, n in night]
    last = reading("g", "03:20:00", 15 + more, day="04/03/2016")
    rows, counts = counters(*lines, last, week="2016-W13")
    assert [row[1] for row in rows] == [90] * (5 + more)
    assert counts["unparsable_timestamp"] == 2


def test_gates_whose_names_end_alike_are_two_counters(counters: Read) -> None:
    """`R1`, `A/B` and `R1/A`, `B` would be one whose readings go up and down."""
    lines = []
    for place, booth, begin in (("R1", "A/B", 100), ("R1/A", "B", 5000)):
        lines += [
            f"{booth},{place},00,S,07/25/2016,{clock},REGULAR,{begin + n},0"
            for n, clock in enumerate(("00:00:00", "04:00:00", "08:00:00"))
        ]
    rows, _ = counters(*lines)
    assert sorted(row[2] for row in rows) == ["R1", "R1", "R1/A", "R1/A"]


def test_what_lies_between_two_readings_counts_where_it_begins(counters: Read) -> None:
    rows, counts = counters(
        reading("a", "00:00:00", 10, 5),
        reading("a", "04:00:00", 12, 5),
        reading("a", "08:00:00", 12, 6),
        reading("b", "03:00:00", 500),
        reading("b", "07:00:00", 0),  # set back
        reading("b", "11:00:00", 1),
        reading("c", "00:00:00", 1),
        reading("c", "01:00:00", 9, day="07/27/2016"),  # nobody knows when
    )
    on, off = (lambda m: (MONDAY, m, "R1", None, None)), (MONDAY, None, None, 240, "R1")
    assert Counter(rows) == Counter([on(0), on(0), off, on(420)])
    assert counts["rows_out"] == 4


def test_the_next_weeks_first_reading_ends_the_weeks_last_interval(counters: Read) -> None:
    last = reading("a", "20:00:00", 1, day="07/31/2016")
    first = reading("a", "00:00:00", 3, day="08/01/2016")
    rows, counts = counters(last, first)
    assert rows == [(date(2016, 7, 31), 1200, "R1", None, None)] * 2
    assert counts["outside_week"] == 1
    assert counters(last)[0] == []


def test_a_gate_at_rest_neither_falls_nor_changes(counters: Read, zones: Zones) -> None:
    clocks = {"00:00:00": 7, "04:00:00": 7, "08:00:00": 9, "12:00:00": 9, "16:00:00": 3}
    counters(*(reading("a", clock, entries) for clock, entries in clocks.items()))
    (kept,) = zones.private.rglob(NUMBERS_FILE)
    asked = "changes, falls, changes_of_day, falls_of_day, filled"
    sides = duckdb.sql(f"SELECT {asked} FROM read_parquet('{kept}') ORDER BY ALL").fetchall()
    assert sides == [(0, 0, 0, 0, 0), (2, 1, 2, 1, 5)]


@pytest.mark.parametrize("seed", range(8))
def test_one_ride_more_is_one_row_more_or_none(counters: Read, seed: int) -> None:
    """Each reading up to the next fall is one more; set back, flooded, anything (rides, R1)."""
    chance = random.Random(seed)  # noqa: S311 - made-up readings
    total, before = 0, []
    for hour in range(0, 24, 2):
        total = chance.choice(
            [total, total + 3, 0, 40_000, total + MOST_OF_RECORD, 10**15 - 1, 2**63 - 1]
        )
        before.append((hour, total))
    ride = chance.randrange(24)
    falls = [hour for (_, last), (hour, count) in pairwise(before) if count < last]
    first_after = next((hour for hour, _ in before if hour > ride), 24)
    fall = next((hour for hour in falls if hour > first_after), 24)
    after = [(hour, count + (first_after <= hour < fall)) for hour, count in before]
    first, second = (
        Counter(counters(*(reading("a", f"{hour:02}:00:00", n) for hour, n in readings))[0])
        for readings in (before, after)
    )
    moved = (second - first) + (first - second)
    assert moved.total() <= 1


@pytest.mark.parametrize(("named_then", "moved"), [("a", 2), ("b", 1)])
def test_a_counter_that_was_set_back_out_of_sight_is_named_otherwise_from_then_on(
    counters: Read, named_then: str, moved: int
) -> None:
    """What the bound leaves out (rides, R1), and what FEEDS asks for."""
    first, second = (
        Counter(
            counters(
                reading("a", "00:00:00", 10),
                reading("a", "04:00:00", count),
                reading(named_then, "08:00:00", 20),
            )[0]
        )
        for count in (12, 13)
    )
    assert ((second - first) + (first - second)).total() == moved


def test_a_trip_begins_and_ends_where_and_when_it_says(trips: Read) -> None:
    rows, counts = trips(
        "1,2016-07-25 23:50:00,2016-07-26 00:10:00.5,A,B,,,,",
        "2,2016-07-25 08:00:00,2016-07-25 08:20:00,,,-33.866,151.206,-33.94,151.2",
        "3,2016-07-25 08:00:00,,A,,,,,",
        "4,2016-07-25 08:00:00,2016-07-25 07:59:00,A,B,,,,",
        "5,2016-07-25 08:00:00,soon,A,B,,,,",
        "6,2016-07-25 08:00:00,2016-07-25 08:10:00,,B,,,,",
        "6,2016-07-25 08:00:00,2016-07-25 08:10:00,A,B,,,,",
        "6,2016-07-25 08:00:00,2016-07-25 08:10:00,A,B,,,,",
    )
    assert Counter(rows) == Counter(
        [
            (MONDAY, 1430, "A", 10, "B"),
            (MONDAY, 480, "-33.9 151.2", 500, "-33.9 151.2"),
            (MONDAY, 480, "A", None, "UNKNOWN"),
            (MONDAY, 480, "A", 490, "B"),
        ]
    )
    rules = {"tap_off_before_tap_on": 1, "unparsable_timestamp": 1, "null_location": 1}
    assert counts == {"rows_in": 8, "rows_out": 4, "duplicates": 1} | rules


@pytest.mark.parametrize(("account", "units"), [("a,a", 1), ("a,b", 2), (",", 2)])
def test_an_account_is_a_card_and_a_trip_without_one_a_unit(
    ingested: Read, account: str, units: int
) -> None:
    lines = [
        f"{n},2016-07-25 08:0{n}:00,2016-07-25 08:20:00,A,B,{card}"
        for n, card in enumerate(account.split(","))
    ]
    header = "ride_id,started_at,ended_at,start_station_id,end_station_id,account_id"
    options = {"feed": Feed.HIRED_TRIPS, "modes": ("bike",), "without_card": WithoutCard.OWN_UNIT}
    rows, _ = ingested(*lines, header=header, read="card_id", **options)
    assert (len(rows), len(set(rows))) == (2, units)


@pytest.mark.parametrize(
    ("rides", "rows", "unnamed"),
    [
        (["r1", "r2"], 2, 0),  # two of one account at once
        (["r1", "r2", "r1"], 2, 0),
        (["r1", "", ""], 2, 1),
    ],
)
def test_a_trip_of_an_account_is_told_from_others_by_its_own_id(
    zones: Zones, programme_of: Callable[..., Programme], rides: list[str], rows: int, unnamed: int
) -> None:
    header = "ride_id,started_at,ended_at,start_station_id,end_station_id,account_id"
    at = "2016-07-25 08:00:00,2016-07-25 08:20:00,A,B,7"
    zones.deliver("2016-W30", {"a.csv": "\n".join([header, *(f"{r},{at}" for r in rides)]) + "\n"})
    programme = programme_of("opal", feed=Feed.HIRED_TRIPS, modes=("bike",))
    snapshot = zones.ingest(programme, "2016-W30")
    counts = counts_of(snapshot)
    assert (counts["rows_out"], counts["duplicates"]) == (rows, len(rides) - rows)
    assert unnamed_of(snapshot) == unnamed


def test_decimals_of_both_ends_may_stand_behind_a_comma(trips: Read) -> None:
    line = "1;2016-07-25 08:00:00;2016-07-25 08:20:00;;;-33,866;151,206;-33,94;151,2"
    spec = FileSpec(delimiter=Delimiter.SEMICOLON, decimal=DecimalMark.COMMA)
    rows, _ = trips(line, header=TRIPS.replace(",", ";"), file=spec)
    assert rows == [(MONDAY, 480, "-33.9 151.2", 500, "-33.9 151.2")]
