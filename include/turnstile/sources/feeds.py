"""The feeds that are understood; a further one is a module and a line here."""

from __future__ import annotations

from turnstile.errors import ProgrammeError
from turnstile.programme.spec import Feed, RowShape
from turnstile.sources import itms, opal_trips
from turnstile.sources.layout import FeedLayout

LAYOUTS: dict[Feed, FeedLayout] = {
    Feed.OPAL_TRIPS: opal_trips.LAYOUT,
    Feed.ITMS: itms.LAYOUT,
}


def layout_of(feed: Feed) -> FeedLayout:
    """Return the layout of a feed.

    Raises:
        ProgrammeError: this version has no layout for it.
    """
    if feed not in LAYOUTS:
        known = ", ".join(LAYOUTS)
        rule = f"{feed} is not read by this version; the feeds are {known}"
        raise ProgrammeError(where="programme", field="source.feed", rule=rule)
    return LAYOUTS[feed]


def shape_of(feed: Feed) -> RowShape:
    """Return the canonical shape that a feed becomes."""
    return layout_of(feed).shape
