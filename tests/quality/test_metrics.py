"""Figures of a snapshot beside those that arrays give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.measures.registry import Measure
from turnstile.programme.domain.public_domain import public_domain
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.quality import metrics, plausible
from turnstile.sources.ingest.canonical import SPEED_SCALE, columns_of
from turnstile.sources.ingest.snapshot import counts_of

MONDAY, TUESDAY = DAYS = (date(2022, 1, 3), date(2022, 1, 4))
ROWS = st.lists(
    st.tuples(st.sampled_from(DAYS), st.none() | st.integers(0, 9).map(lambda kmh: kmh * 500)),
    max_size=30,
)


@settings(max_examples=15, deadline=None)
@given(rows=ROWS)
def test_the_typical_speed_of_a_day_is_the_median_of_what_moves(
    rows: list[tuple[date, int | None]],
) -> None:
    with duckdb.connect(":memory:") as connection:
        declared = ", ".join(f"{name} {kind}" for name, kind in columns_of(Feed.ITMS.shape, ()))
        connection.execute(f"CREATE TABLE rows_read ({declared})")
        for day, speed in rows:
            values = [day, speed]
            insert = "INSERT INTO rows_read (service_date, speed_milli_kmh) VALUES (?, ?)"
            connection.execute(insert, values)
        figures = metrics._days(connection, DAYS, Feed.ITMS)
    for day, median in zip(DAYS, figures["moving_speed_kmh_median"], strict=True):
        moving = [speed for service_date, speed in rows if service_date == day and speed]
        assert (np.isnan(median) and not moving) or median == np.median(moving) / SPEED_SCALE


def test_words_that_no_list_has_are_a_share_of_those_that_say_something() -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE rows_read (direction VARCHAR, route VARCHAR)")
        rows = [("0", "a"), ("1", "b"), ("I", None), (None, None)]
        connection.executemany("INSERT INTO rows_read VALUES (?, ?)", rows)
        known = [("direction", "0"), ("direction", "1"), ("route", "a"), ("route", "b")]
        listed = public_domain("v", (), (), tuple((*pair, "label") for pair in known))
        shares = plausible.unlisted(connection, listed, ["direction", "route"])
        assert shares == {"direction": 1 / 3, "route": 0.0}
        assert plausible.unlisted(connection, public_domain("v", ()), ["route"]) == {"route": 1.0}


@pytest.mark.parametrize("words", [["FULL", "2", "", "NO_DATA_AVAILABLE", "7"], ["PACKED"]])
def test_a_word_of_how_full_a_vehicle_is_is_one_of_the_standards_or_set_aside(
    zones: Any, programme_of: Callable[..., Programme], words: list[str]
) -> None:
    made = programme_of("itms", feed=Feed.GTFS_VEHICLE_POSITIONS)
    full = replace(made.tables[0], measure=Measure.OCCUPANCY, classes=(5,))
    asked = replace(made, tables=(full,))
    header = "position.latitude,position.longitude,position.speed,vehicle.id,timestamp,"
    lines = [f"21.2,72.8,8.5,b{n},{1469421000 + n},{word}" for n, word in enumerate(words)]
    zones.deliver("2016-W30", {"a.csv": "\n".join([header + "occupancy_status", *lines]) + "\n"})
    for programme, aside in ((asked, int(words == ["PACKED"])), (made, 0)):
        counts = counts_of(zones.ingest(programme, "2016-W30"))
        assert (counts["unknown_status"], counts["rows_out"]) == (aside, len(words) - aside)
