"""Trips of a few cards in two modes, for properties of counting: known and unknown places."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import strategies as st

MONDAY = date(2016, 7, 25)
STOPS = {"bus": ("b1", "b2", "b3", "nowhere"), "train": ("t1", "t2", "b1")}
Row = tuple[object, ...]


@st.composite
def trips(draw: st.DrawFn, cards: str = "abc") -> Row:
    mode = draw(st.sampled_from(["bus", "train"]))
    off_minute = draw(st.none() | st.integers(0, 1439))
    return (
        draw(st.sampled_from(cards)),
        mode,
        MONDAY,
        draw(st.integers(0, 1439)),
        draw(st.sampled_from(STOPS[mode])),
        None if off_minute is None else MONDAY + timedelta(days=draw(st.integers(0, 1))),
        off_minute,
        draw(st.sampled_from((*STOPS[mode], "UNKNOWN"))),
        "b0",
    )


BOUNDS = st.tuples(st.integers(1, 4), st.booleans())
RULES = st.sampled_from([(False, False), (True, False), (False, True)])
TRIPS = st.lists(trips(), max_size=16)
