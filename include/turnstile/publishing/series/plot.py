"""The plot of a series: the total of each period and mode with its 95 % interval, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PERIODS_MOST = 104  # two years of weeks: a longer axis cannot be read
_WIDTH, _HEIGHT, _COLOUR = 640, 110, "#2166ac"


def totals_svg(totals: Sequence[Mapping[str, object]]) -> str | None:
    """Return the picture of the last periods; None where none has a total with an error.

    Args:
        totals: `period`, `mode`, `what`, `total`, `half_width_95`, in the order of the calendar.
    """
    if not totals:
        return None
    import altair as alt
    import pandas as pd
    import vl_convert as vlc

    last = list(dict.fromkeys(one["period"] for one in totals))[-PERIODS_MOST:]
    table = pd.DataFrame([one for one in totals if one["period"] in set(last)])
    table["low"] = table["total"] - table["half_width_95"]
    table["high"] = table["total"] + table["half_width_95"]
    base = alt.Chart(table).encode(x=alt.X("period:O", title=None))
    axis = alt.Y("total:Q", title=str(totals[0]["what"]), scale=alt.Scale(zero=True))
    layers = alt.layer(
        base.mark_line(color=_COLOUR, point=True).encode(y=axis),
        base.mark_rule(color=_COLOUR, strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        data=table,
    ).properties(width=_WIDTH, height=_HEIGHT)
    chart = layers.facet(row=alt.Row("mode:N", title=None)).resolve_scale(y="independent")
    return str(vlc.vegalite_to_svg(chart.to_dict()))
