"""`cells.geojson` and `cells.parquet`: the shapes that the tables' labels stand for."""

from __future__ import annotations

from turnstile.programme.source_spec import RowShape
from turnstile.publishing.contents import Contents
from turnstile.publishing.geography import geojson, geoparquet


def write_geojson(contents: Contents) -> bytes | None:
    """Return the shapes as GeoJSON; None where the public domain has no coordinates."""
    return geojson(contents.features, label_of(contents)) if contents.features else None


def write_geoparquet(contents: Contents) -> bytes | None:
    """Return the shapes as GeoParquet; None where the public domain has no coordinates."""
    return geoparquet(contents.features, label_of(contents)) if contents.features else None


def label_of(contents: Contents) -> str:
    """Return the name of the column of labels; tables of trips say tap_on_ or tap_off_ before."""
    is_trips = contents.drawn.programme.source.feed.shape is RowShape.TRIPS
    return "location" if is_trips else "cell"
