"""The picture of docs/PERFORMANCE.md: CPU of each step beside the bare work and other engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from measured import Cost

_BESIDE = ("bare parse", "bare copy", "bare count", "canonical", "polars", "pandas", "rowwise")
_NOT_SHOWN = ("sample", "re-issue")


def draw(weeks: Mapping[str, Mapping[str, Cost]], path: Path) -> None:
    """Write bars as SVG.

    Args:
        weeks: costs by name of the run, by title of the week.
        path: file to write.
    """
    import altair as alt
    import pandas as pd

    bars = [
        (title, name, cost.cpu_s, "beside it" if name in _BESIDE else "a step of ours")
        for title, costs in weeks.items()
        for name, cost in costs.items()
        if name not in _NOT_SHOWN
    ]
    frame = pd.DataFrame(bars, columns=["week", "run", "CPU seconds", "kind"])
    order = list(dict.fromkeys(frame["run"]))
    chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("CPU seconds:Q"),
            y=alt.Y("run:N", sort=order, title=None),
            color=alt.Color("kind:N", title=None, legend=alt.Legend(orient="bottom")),
            row=alt.Row("week:N", title=None, header=alt.Header(labelAngle=0, labelAlign="left")),
        )
    )
    chart.properties(width=480).save(str(path))
