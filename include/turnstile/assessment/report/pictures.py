"""Pictures as SVG text, drawn offline; a page embeds them, so it needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

_WIDTH, _HEIGHT = 460, 220
Point = Mapping[str, float | str]


def lines(points: Sequence[Point], *, x: str, y: str, series: str, title: str) -> str:
    """Return a line chart, one line a series.

    Args:
        points: values of x, y and series by name.
        x: name of the horizontal axis, quantity.
        y: name of the vertical axis, quantity.
        series: name of the text that parts the lines.
        title: above the chart.
    """
    import altair as alt

    scale = alt.Scale(zero=False)
    chart = (
        alt.Chart(alt.Data(values=list(points)), title=title)
        .mark_line(point=True)
        .encode(
            x=alt.X(x, type="quantitative", scale=scale),
            y=alt.Y(y, type="quantitative", scale=alt.Scale(zero=False)),
            color=alt.Color(series, type="nominal", title=None),
        )
    )
    return _svg(chart)


def bars(points: Sequence[Point], *, x: str, y: str, series: str, title: str) -> str:
    """Return a bar chart; bars of several series overlap, half seen through.

    Args:
        points: values of x, y and series by name.
        x: name of the horizontal axis, ordered.
        y: name of the vertical axis, quantity.
        series: name of the text that colors the bars.
        title: above the chart.
    """
    import altair as alt

    chart = (
        alt.Chart(alt.Data(values=list(points)), title=title)
        .mark_bar(opacity=0.6)
        .encode(
            x=alt.X(x, type="ordinal", sort=None),
            y=alt.Y(y, type="quantitative", stack=None),
            color=alt.Color(series, type="nominal", title=None),
        )
    )
    return _svg(chart)


def _svg(chart: Any) -> str:  # noqa: ANN401 - altair is not typed here
    """Render a chart."""
    sink = StringIO()
    chart.properties(width=_WIDTH, height=_HEIGHT).save(sink, format="svg")
    return sink.getvalue()
