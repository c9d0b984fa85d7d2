"""The plot of a series: the total of each period and mode with its 95 % interval, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnstile.publishing.week.vega_lite import name, ordered, quantity, svg_of

PERIODS_MOST = 104  # two years of weeks: a longer axis cannot be read
_WIDTH, _HEIGHT, _COLOUR = 640, 110, "#2166ac"


def totals_svg(totals: Sequence[Mapping[str, object]]) -> str | None:
    """Return the picture of the last periods; None where none has a total with an error.

    Args:
        totals: `period`, `mode`, `what`, `total`, `half_width_95`, in the order of the calendar.
    """
    if not totals:
        return None
    last = set(list(dict.fromkeys(row["period"] for row in totals))[-PERIODS_MOST:])
    period = ordered("period", title=None)
    total = quantity("total", title=str(totals[0]["what"]), scale={"zero": True})
    ends = {"x": period, "y": quantity("low"), "y2": {"field": "high"}}
    line = {"type": "line", "color": _COLOUR, "point": True}
    rule = {"type": "rule", "color": _COLOUR, "strokeWidth": 2}
    layers = [
        {"mark": line, "encoding": {"x": period, "y": total}},
        {"mark": rule, "encoding": ends},
    ]
    return svg_of(
        {
            "data": {"values": [_with_ends(row) for row in totals if row["period"] in last]},
            "facet": {"row": name("mode", title=None)},
            "spec": {"layer": layers, "width": _WIDTH, "height": _HEIGHT},
            "resolve": {"scale": {"y": "independent"}},
        }
    )


def _with_ends(total: Mapping[str, Any]) -> dict[str, object]:
    """Return a total with both ends of its interval."""
    middle, half = total["total"], total["half_width_95"]
    return {**total, "low": middle - half, "high": middle + half}
