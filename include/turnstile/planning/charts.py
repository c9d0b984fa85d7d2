"""Pictures of planning tables as SVG, by Vega-Lite."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import altair as alt
import pandas as pd

_WIDTH, _HEIGHT = 640, 280


def bars(table: pd.DataFrame, across: str, height: str) -> str:
    """Return a bar chart of one column over another."""
    chart = alt.Chart(table[[across, height]]).mark_bar()
    return _svg(chart.encode(x=alt.X(f"{across}:O"), y=alt.Y(f"{height}:Q")))


def lines(table: pd.DataFrame, across: str, columns: Sequence[str]) -> str:
    """Return a line for each column over another."""
    long = table.melt(id_vars=[across], value_vars=list(columns))
    chart = alt.Chart(long.dropna()).mark_line(point=True)
    return _svg(
        chart.encode(x=alt.X(f"{across}:Q"), y=alt.Y("value:Q"), color=alt.Color("variable:N"))
    )


def _svg(chart: alt.Chart) -> str:
    """Draw a chart; the picture says that it is private."""
    sink = StringIO()
    titled = chart.properties(width=_WIDTH, height=_HEIGHT, title="PRIVATE: never publish")
    titled.save(sink, format="svg")
    return sink.getvalue()
