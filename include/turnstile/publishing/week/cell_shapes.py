"""`cells.geojson`: the shapes that the tables' labels stand for."""

from __future__ import annotations

from math import isnan
from typing import Any

from turnstile.publishing.contents import Contents, label_of, period_word
from turnstile.publishing.week import numbers as week_numbers
from turnstile.publishing.week.geography import Numbers, geojson
from turnstile.publishing.week.pictures import what_of


def write_geojson(contents: Contents) -> bytes | None:
    """Return the shapes as GeoJSON, each with the estimate of its week and the 95 % interval.

    None where the public domain has no coordinates.
    """
    if not contents.features:
        return None
    return geojson(contents.features, label_of(contents), _estimates(contents))


def _estimates(contents: Contents) -> Numbers:
    """Return the estimate of each place's week by mode and label; none without estimates."""
    if not week_numbers.has_estimates(contents):
        return {}
    rows: list[dict[Any, Any]] = week_numbers.by_location(contents).to_dict("records")
    return {
        (str(row.get("mode", "")), str(row["label"])): {
            "value": round(row["value"], 1),
            "low_95": None if isnan(row["low"]) else round(row["low"], 1),
            "high_95": None if isnan(row["high"]) else round(row["high"], 1),
            "of": f"{what_of(contents)} in the {period_word(contents)}",
        }
        for row in rows
    }
