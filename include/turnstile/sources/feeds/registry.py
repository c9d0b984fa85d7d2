"""The feeds that are understood, each by the module of this room that bears its name."""

from __future__ import annotations

from importlib import import_module

from turnstile.programme.source_spec import Feed
from turnstile.sources.feeds.layout import FeedLayout

LAYOUTS: dict[Feed, FeedLayout] = {
    feed: import_module(f"turnstile.sources.feeds.{feed}").LAYOUT for feed in Feed
}


def layout_of(feed: Feed) -> FeedLayout:
    """Return the layout of a feed."""
    return LAYOUTS[feed]
