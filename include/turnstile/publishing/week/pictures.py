"""The pictures of the report, in Vega-Lite.

Colours are of the cividis and blues scales, which readers with any colour vision distinguish; what
is within its noise is pale. Each picture has a text that says what it shows; a largest number is
named only where it is told apart from the next (`claims`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import pandas as pd

from turnstile.publishing.contents import NORMAL_95, Contents, label_of, once, period_word
from turnstile.publishing.week import numbers as week_numbers
from turnstile.publishing.week.claims import how_many, in_one_sentence, not_told_from_first
from turnstile.publishing.week.vega_lite import (
    Values,
    name,
    ordered,
    quantity,
    rows,
    svg_of,
)

NAMES = ("map", "speeds", "hours", "change", "places", "top")
_WIDTH = 720
_TOP, _ROWS = 15, 25
_PALE, _FULL = 0.15, 0.95
_COLOUR = "#2166ac"
_OUTLINE = {"stroke": "#333", "strokeWidth": 0.3}
_CERTAINTY = quantity("certainty", title="certainty", scale={"domain": [0, 1], "range": [0, 1]})
_UNBIASED = "; the numbers are unbiased, because the error of most estimates is not known"
_MIXED = "; where the error of an estimate is not known the number is unbiased"


@dataclass(frozen=True)  # without slots: what is drawn is remembered
class Picture:
    """One picture: its chart, its title and what it shows, in words."""

    name: str
    title: str
    text: str
    chart: Mapping[str, Any]

    @cached_property
    def svg(self) -> str:
        """The picture as SVG."""
        return svg_of(self.chart)


@once
def pictures(contents: Contents) -> dict[str, Picture]:
    """Return the pictures of a week by name; each is drawn once."""
    if not has_counts(contents):
        return {}
    drawn = (
        _map(contents),
        _speeds(contents),
        _hours(contents),
        _change(contents),
        _places(contents),
        _top(contents),
    )
    return {picture.name: picture for picture in drawn if picture is not None}


def has_counts(contents: Contents) -> bool:
    """Whether this release counts trips or buses, and published any."""
    measures = {draw["statistic"] for draw in contents.card["draws"]}
    return bool({"count", "buses"} & measures) and not week_numbers.by_location(contents).empty


def what_of(contents: Contents) -> str:
    """Name what is counted in the numbers of places."""
    return _what(contents, is_estimate=week_numbers.has_estimates(contents))


def _what(contents: Contents, *, is_estimate: bool, is_of_slot: bool = False) -> str:
    """Name what is counted: of buses the slots of a day are added up, unless one is shown."""
    if label_of(contents) == "location":
        return "published tap-ons" if week_numbers.is_thresholded(contents) else "tap-ons"
    if is_of_slot:
        return "buses a day" if is_estimate else "bus-days"
    return "bus-slots a day" if is_estimate else "bus-slots"


def _titled(contents: Contents, *, of_slots: bool | None = None) -> str:
    """Name what is counted, as an estimate where it is one.

    Args:
        contents: of the package.
        of_slots: whether numbers of single slots are estimates; None where slots are added up.
    """
    is_estimate = week_numbers.has_estimates(contents) if of_slots is None else of_slots
    what = _what(contents, is_estimate=is_estimate, is_of_slot=of_slots is not None)
    if week_numbers.is_thresholded(contents):
        return what
    return f"{what}, estimate" if is_estimate else f"{what}, unbiased"


def in_words(row: pd.Series[Any] | dict[Any, Any]) -> str:
    """Say a number with its 95 % interval."""
    if isnan(row["low"]):
        return f"about {row['value']:,.0f}, without an interval"
    return f"about {row['value']:,.0f} ({row['low']:,.0f} to {row['high']:,.0f})"


def _map(contents: Contents) -> Picture | None:
    """Draw each location or cell where it is, paler where its error is large."""
    numbers = week_numbers.by_location(contents)
    places = pd.DataFrame(
        {
            "label": [feature.label for feature in contents.features],
            "mode": [feature.mode for feature in contents.features],
            "x": [feature.center[0] for feature in contents.features],
            "y": [feature.center[1] for feature in contents.features],
        }
    )
    if places.empty:
        return None
    keys = ["label", "mode"] if "mode" in numbers else ["label"]
    joined = places[[*keys, "x", "y"]].merge(numbers, on=keys)
    shown = joined[joined["value"] > 0]
    certain = (1 - (shown["high"] - shown["value"]) / shown["value"]).fillna(0).clip(_PALE, _FULL)
    shown = shown.assign(certainty=certain.round(3))[["label", "x", "y", "value", "certainty"]]
    position = {"zero": False, "nice": False}
    chart = {
        "data": rows(shown.round(5)),
        "mark": {"type": "circle", "color": _COLOUR, **_OUTLINE},
        "encoding": {
            "x": quantity("x", scale=position, title="longitude"),
            "y": quantity("y", scale=position, title="latitude"),
            "size": quantity("value", title=_titled(contents), scale={"range": [4, 500]}),
            "opacity": _CERTAINTY,
        },
        "width": _WIDTH,
        "height": _WIDTH * 0.7,
    }
    text = (
        f"A map of {len(shown)} places by their {what_of(contents)} in the "
        f"{period_word(contents)}; the most are at {largest(numbers)}. Pale places are "
        "uncertain: their error may be as large as their number."
    )
    return Picture("map", f"Where: {what_of(contents)} of the {period_word(contents)}", text, chart)


def _speeds(contents: Contents) -> Picture | None:
    """Draw the mean speed of each hexagon, paler where its interval is wide."""
    speeds = week_numbers.speeds_by_cell(contents)
    if speeds.empty:
        return None
    rings = {feature.label: feature.ring for feature in contents.features}
    half = (speeds["high"] - speeds["low"]) / 2
    certain = (1 - half / speeds["value"].clip(lower=1)).clip(_PALE, _FULL)
    hexagons = [
        {
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [rings[row["label"]]]},
            "speed": row["value"],
            "certainty": round(certainty, 3),
        }
        for row, certainty in zip(speeds.to_dict("records"), certain, strict=True)
    ]
    chart = {
        "data": {"values": hexagons},
        "mark": {"type": "geoshape", **_OUTLINE},
        "encoding": {
            "color": quantity("speed", title="km/h", scale={"scheme": "cividis", "zero": False}),
            "opacity": _CERTAINTY,
        },
        "projection": {"type": "identity", "reflectY": True},
        "width": _WIDTH,
        "height": _WIDTH * 0.7,
    }
    word = period_word(contents)
    text = (
        f"Mean speed of buses in {len(speeds)} of {len(rings)} hexagons, the whole {word} "
        f"together; the slowest is {slowest(speeds)}. Pale hexagons are "
        "uncertain; where too few buses passed nothing is drawn."
    )
    return Picture("speeds", f"How fast: mean speed of buses in the {word}", text, chart)


def speed_text(row: pd.Series) -> str:
    """Say the speed of a cell with its interval."""
    return f"{row['label']} with {row['value']:,.1f} km/h ({row['low']:,.1f} to {row['high']:,.1f})"


def slowest(speeds: pd.DataFrame) -> str:
    """Name the cell of the lowest mean speed, or all that may be it."""
    deviations = (speeds["high"] - speeds["low"]).to_numpy() / (2 * NORMAL_95)
    close = not_told_from_first(-speeds["value"].to_numpy(), deviations)
    if len(close) == 1:
        return speed_text(speeds.iloc[close[0]])
    return in_one_sentence([speeds.iloc[n]["label"] for n in close])


def largest(table: pd.DataFrame) -> str:
    """Name the place with the largest number and its interval, or all that may be it.

    Args:
        table: with `label`, `value`, `low` and `high`, and perhaps `mode`.
    """
    known = table[table["label"] != "UNKNOWN"].reset_index(drop=True)
    deviations = (known["high"] - known["value"]).to_numpy(float) / NORMAL_95
    close = not_told_from_first(known["value"].to_numpy(float), deviations)
    names = known["label"] + (" (" + known["mode"] + ")" if "mode" in known else "")
    if len(close) == 1:
        return f"{names[close[0]]}: {in_words(known.iloc[close[0]])}"
    return in_one_sentence([names[n] for n in close])


def most_in_words(table: pd.DataFrame) -> str:
    """Name the day with the largest sum, or all that may be it.

    Args:
        table: with `service_date`, `value`, of either sign, and `variance`.
    """
    close = not_told_from_first(table["value"].to_numpy(), table["variance"].to_numpy() ** 0.5)
    named = in_one_sentence([str(table.iloc[n]["service_date"]) for n in close])
    return named + (f" with about {abs(table.iloc[close[0]]['value']):,.0f}" * (len(close) == 1))


def _hours(contents: Contents) -> Picture | None:
    """Draw the hours of the busiest places; what is within its noise is left white."""
    numbers = week_numbers.by_location(contents)
    labels = [label for label in dict.fromkeys(numbers["label"]) if label != "UNKNOWN"][:_ROWS]
    table = week_numbers.by_time_and_location(contents, labels)
    if table.empty:
        return None
    shown = table[(table["time"] != "UNKNOWN") & ~table["is_noise"]]
    if shown.empty:
        return None
    is_estimate = shown["is_estimate"]
    chart = {
        "data": rows(shown[["time", "label", "value"]].round(1)),
        "mark": {"type": "rect"},
        "encoding": {
            "x": ordered("time", title="start of the slot"),
            "y": name("label", sort=labels, title=None),
            "color": quantity(
                "value",
                title=_titled(contents, of_slots=bool(is_estimate.any())),
                scale={"scheme": "cividis", "reverse": True},
            ),
        },
        "width": _WIDTH,
        "height": 18 * len(labels),
    }
    named = shown.assign(label=shown["label"] + " from " + shown["time"])
    text = (
        f"When: {shown['label'].nunique()} of the {len(labels)} busiest places by time of day, all "
        f"days of the {period_word(contents)} together. The most are at "
        f"{largest(named)}. White is what {_missing(contents, is_estimate)}."
    )
    return Picture("hours", "When: the busiest places by time of day", text, chart)


def _missing(contents: Contents, is_estimate: pd.Series) -> str:
    """Say why a cell of the heat map is empty, and which of the others are no estimates."""
    if week_numbers.is_thresholded(contents):
        return "was left out"
    noise = "cannot be distinguished from 0"
    if is_estimate.all():
        return f"{noise}, or whose error is not known"
    return noise + (_MIXED if is_estimate.any() else _UNBIASED)


def _change(contents: Contents) -> Picture | None:
    """Draw the change of each mode against the week before, with its band."""
    table = week_numbers.changes(contents)
    if table.empty:
        return None
    table = table.assign(
        low=table["value"] - table["half_width"], high=table["value"] + table["half_width"]
    ).round(1)
    word = period_word(contents)
    chart = _bars(
        table[["mode", "value", "low", "high"]],
        quantity("value", title=f"change against the {word} before"),
        name("mode", title=None, sort=None),
        height=50 * len(table),
    )
    parts = [
        f"{row['mode']} {row['value']:+,.0f} ± {row['half_width']:,.0f}"
        for row in table.to_dict("records")
    ]
    text = (
        f"Change of tap-ons against the {word} before, on days that both have: {'; '.join(parts)}."
    )
    return Picture("change", f"What changed against the {word} before", text, chart)


def _places(contents: Contents) -> Picture | None:
    """Draw the places that changed, of which one in twenty is expected to be chance."""
    table = week_numbers.changed_places(contents)
    if table.empty or not table["is_listed"].any():
        return None
    said = how_many(table["is_listed"].to_numpy())
    size = (table["value"] / table["deviation"]).abs()
    shown = table[table["is_listed"]].assign(size=size).nlargest(_ROWS, "size")
    names = shown["location"] + (" (" + shown["mode"] + ")" if "mode" in shown else "")
    shown = shown.assign(
        name=names,
        low=shown["value"] - shown["half_width"],
        high=shown["value"] + shown["half_width"],
    )[["name", "value", "low", "high"]]
    word = period_word(contents)
    chart = _bars(
        shown.round(1),
        quantity("value", title=f"change against the {word} before"),
        name("name", sort=list(shown["name"]), title=None),
        height=22 * len(shown),
    )
    parts = [f"{row['name']} {row['value']:+,.0f}" for row in shown.head(5).to_dict("records")]
    text = f"Against the {word} before {said}. The surest: {'; '.join(parts)}."
    return Picture("places", f"Where it changed against the {word} before", text, chart)


def _bars(table: pd.DataFrame, x: Values, y: Values, height: int) -> Values:
    """Return a chart of bars, each with the interval between `low` and `high`."""
    interval = {"x": quantity("low"), "x2": {"field": "high"}, "y": y}
    bar = {"type": "bar", "color": _COLOUR, "opacity": 0.6}
    return {
        "data": rows(table),
        "layer": [
            {"mark": bar, "encoding": {"x": x, "y": y}},
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": interval},
        ],
        "width": _WIDTH,
        "height": height,
    }


def _top(contents: Contents) -> Picture | None:
    """Draw the busiest places with their intervals."""
    numbers = week_numbers.by_location(contents)
    table = numbers[numbers["label"] != "UNKNOWN"].head(_TOP)
    names = table["label"]
    if "mode" in table:
        names = names + " (" + table["mode"] + ")"
    table = table.assign(name=names)[["name", "value", "low", "high"]]
    chart = _bars(
        table.round(1),
        quantity("value", title=_titled(contents)),
        name("name", sort=list(table["name"]), title=None),
        height=22 * len(table),
    )
    parts = [f"{row['name']} {in_words(row)}" for row in table.head(5).to_dict("records")]
    intervals = " with 95 % intervals" if table["low"].notna().any() else ""
    text = f"The busiest places{intervals}: {'; '.join(parts)}."
    return Picture("top", "The busiest places", text, chart)
