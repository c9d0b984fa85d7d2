"""TIDES passenger events: a row for each boarding or alighting, and what one ride can move."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import partial
from itertools import combinations_with_replacement

import duckdb
import pytest
from ingested_weeks import Read

from turnstile.programme.source_spec import Feed, TapAction
from turnstile.sources.feeds import tides_passenger_events
from turnstile.sources.feeds.tides_passenger_events import MOST_OF_RECORD, one_row_a_passenger

MONDAY = date(2016, 7, 25)
HEADER = (
    "passenger_event_id,service_date,event_timestamp,event_type,stop_id,event_count,"
    "trip_id_scheduled,scheduled_stop_sequence"
)
READ = "service_date, tap_on_minute, tap_on_location, tap_off_minute, tap_off_location"
ON, OFF = "Passenger boarded", "Passenger alighted"
AT = "2016-07-25,2016-07-25T08:00:00+10:00"


@pytest.fixture
def events(ingested: Read) -> Read:
    """Rows of lines of events."""
    feed = Feed.TIDES_PASSENGER_EVENTS
    return partial(ingested, header=HEADER, read=READ, feed=feed, modes=("bus",), card_form=None)


def test_boardings_and_alightings_are_rows_of_one_end(events: Read) -> None:
    rows, counts = events(f"1,{AT},{ON},A,,t,1", f"2,{AT},{OFF},B,2,t,2")
    assert rows == [
        (MONDAY, 480, "A", None, None),
        (MONDAY, None, None, 480, "B"),
        (MONDAY, None, None, 480, "B"),
    ]
    assert counts == {"rows_in": 3, "rows_out": 3}


def test_what_is_no_passenger_and_what_is_no_count_is_set_aside(events: Read) -> None:
    rows, counts = events(
        f"1,{AT},Door opened,A,1,t,1",
        f"2,{AT},{ON},A,0,t,1",
        f"3,{AT},{ON},A,many,t,1",
        f"4,{AT},{ON},A,-2,t,1",
        f"5,{AT},{ON},NA,1,t,1",
        f",{AT},{ON},A,1,t,1",
        f"7,{AT},{ON},A,NA,t,1",
    )
    assert len(rows) == 1
    assert counts["no_riders"] == 3
    assert (counts["other_action"], counts["null_location"], counts["card_id_missing"]) == (1, 1, 1)


def test_words_of_the_source_are_what_the_programme_says(events: Read) -> None:
    rows, _ = events(f"1,{AT},ON,A,1,t,1", action_names=(("ON", TapAction.ENTER),))
    assert len(rows) == 1


def test_a_record_that_came_twice_counts_once_and_a_flood_as_a_full_vehicle(events: Read) -> None:
    line = f"1,{AT},{ON},A,3,t,1"
    rows, counts = events(line, line, f"1,{AT},{ON},A,2,t,1", f"2,{AT},{ON},A,999999999,t,1")
    assert len(rows) == 3 + MOST_OF_RECORD
    assert counts == {"rows_in": 4 + 2 + MOST_OF_RECORD - 1, "rows_out": len(rows), "duplicates": 2}


@pytest.mark.parametrize("written", ["{}", "+{}", "{}.0", "{:e}"])
@pytest.mark.parametrize("number", [2**63 - 1, 10**30])
def test_one_passenger_more_makes_no_count_none(events: Read, number: int, written: str) -> None:
    lines = [f"1,{AT},{ON},A,{written.format(n)},t,1" for n in (number, number + 1)]
    assert {len(events(line)[0]) for line in lines} == {MOST_OF_RECORD}


# ------------------------------------------------------------- privacy/rides.proof.md, R1 and R2

Records = tuple[tuple[str, int], ...]
COUNTS = (1, 2, 3)


def boardings(connection: duckdb.DuckDBPyConnection, records: Records) -> int:
    """How many rows the product makes of records of one time and stop: (id, count)."""
    connection.execute(
        "CREATE OR REPLACE TABLE staged (tap_id VARCHAR, card_id VARCHAR, riders BIGINT, "
        "broken_rule VARCHAR, fields VARCHAR, file VARCHAR)"
    )
    for card, count in records:
        connection.execute(
            "INSERT INTO staged VALUES (?, ?, ?, NULL, NULL, 'f')", [card, card, count]
        )
    one_row_a_passenger(connection)
    rows = connection.execute("SELECT count(*) FROM staged").fetchone()
    return int(rows[0]) if rows else 0


def pairs() -> Iterator[tuple[Records, Records]]:
    """All files of at most two such records, each with one boarding more."""
    every = [(card_id, count) for card_id in "ab" for count in COUNTS]
    for size in range(3):
        for records in combinations_with_replacement(every, size):
            for card in "abc":
                yield records, (*records, (card, 1))
            for place, (card, count) in enumerate(records):
                yield records, (*records[:place], (card, count + 1), *records[place + 1 :])


def farthest() -> int:
    """How far one boarding more moves the number of rows, at most."""
    rows: dict[Records, int] = {}
    with duckdb.connect(config={"threads": 1}) as connection:
        for pair in pairs():
            for records in pair:
                if records not in rows:
                    rows[records] = boardings(connection, records)
    return max(abs(rows[after] - rows[before]) for before, after in pairs())


def test_one_passenger_more_adds_one_row_at_most() -> None:
    assert farthest() == 1


def test_equal_with_their_counts_would_move_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: records are equal only if their counts are, too."""
    naive = "SELECT DISTINCT * FROM staged WHERE broken_rule IS NULL"
    monkeypatch.setattr(tides_passenger_events, "_ONCE", naive)
    assert farthest() > 1
