"""Pictures of planning tables as SVG."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from turnstile.publishing.week.vega_lite import Values, name, ordered, quantity, rows, svg_of


def bars(table: pd.DataFrame, across: str, height: str) -> str:
    """Return a bar chart of one column over another."""
    return _svg(table[[across, height]], "bar", x=ordered(across), y=quantity(height))


def lines(table: pd.DataFrame, across: str, columns: Sequence[str]) -> str:
    """Return a line for each column over another."""
    long = table.melt(id_vars=[across], value_vars=list(columns)).dropna()
    mark = {"type": "line", "point": True}
    return _svg(long, mark, x=quantity(across), y=quantity("value"), color=name("variable"))


def _svg(table: pd.DataFrame, mark: str | Values, **channels: Values) -> str:
    """Draw a chart; the picture says that it is private."""
    titled = {"title": "PRIVATE: never publish", "width": 640, "height": 280}
    return svg_of({"data": rows(table), "mark": mark, "encoding": channels, **titled})
