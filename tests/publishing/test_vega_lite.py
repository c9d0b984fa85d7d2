"""Charts as plain values are those that a chart library would write, with the same pictures."""

from __future__ import annotations

import altair as alt
import pandas as pd
import vl_convert as vlc

from turnstile.publishing.week.vega_lite import name, ordered, quantity, rows, svg_of

TABLE = pd.DataFrame(
    {"mode": ["bus", "ferry"], "time": ["07:00", "08:00"], "value": [3.5, 1.0], "low": [2, None]}
)


def chart_of(table: pd.DataFrame) -> dict[str, object]:
    y = name("mode", title=None, sort=None)
    bar = {"x": quantity("value", title="tap-ons"), "y": y, "color": ordered("time", title="t")}
    return {
        "data": rows(table),
        "layer": [
            {"mark": {"type": "bar", "opacity": 0.6}, "encoding": bar},
            {"mark": {"type": "rule"}, "encoding": {"x": quantity("low"), "y": y}},
        ],
        "width": 300,
        "height": 100,
    }


def of_library(table: pd.DataFrame) -> dict[str, object]:
    base = alt.Chart(table).encode(y=alt.Y("mode:N", title=None, sort=None))
    bars = base.mark_bar(opacity=0.6).encode(
        x=alt.X("value:Q", title="tap-ons"), color=alt.Color("time:O", title="t")
    )
    chart: dict[str, object] = (
        (bars + base.mark_rule().encode(x="low:Q")).properties(width=300, height=100).to_dict()
    )
    return chart


def test_a_chart_is_drawn_as_the_library_draws_it() -> None:
    assert svg_of(chart_of(TABLE)) == vlc.vegalite_to_svg(of_library(TABLE))
    other = TABLE.assign(value=[3.5, 2.0])
    assert svg_of(chart_of(other)) != vlc.vegalite_to_svg(of_library(TABLE))
