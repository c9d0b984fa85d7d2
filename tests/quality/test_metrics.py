"""Figures of a snapshot beside those that arrays give."""

from __future__ import annotations

from datetime import date

import duckdb
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.programme.source_spec import Feed
from turnstile.quality import metrics
from turnstile.sources.ingest.canonical import SPEED_SCALE, columns_of

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
        found = metrics._days(connection, DAYS, Feed.ITMS)
    for day, median in zip(DAYS, found["moving_speed_kmh_median"], strict=True):
        moving = [speed for own, speed in rows if own == day and speed]
        assert (np.isnan(median) and not moving) or median == np.median(moving) / SPEED_SCALE
