"""Charts as SVG: shapes worked out here, drawn by a template; a page embeds them, offline.

No chart library: the report is made in a step of every week, and importing one costs more CPU time
than all gates together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from turnstile.assessment.pages import render

_WIDTH, _HEIGHT = 620, 230  # of the plot
_LEFT, _TOP, _BOTTOM, _LINE = 64, 34, 46, 20
_TICKS = 5
_BAR_SHARE = 0.8  # of a category's width
Point = Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis with round ticks.

    Args:
        low: lower end.
        high: upper end.
        ticks: values that are labelled.
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return where a value lies, 0 at the lower end, 1 at the upper."""
        return (value - self.low) / (self.high - self.low)


def axis(values: Sequence[float]) -> Axis:
    """Return an axis that holds all values.

    Examples:
        >>> axis([0, 52]).ticks
        (0.0, 20.0, 40.0, 60.0)
        >>> axis([0.5, 0.93]).ticks
        (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """
    low, high = min(values), max(values)
    span = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    step = min(n * power for n in (1, 2, 5, 10, 20) if n * power * _TICKS >= span)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(n * step, 12) for n in range(first, max(last, first + 1) + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def lines(
    points: Sequence[Point], *, x: str, y: str, title: str, y_axis: Axis | None = None
) -> str:
    """Return a line chart, one line a series.

    Args:
        points: values by name: x, y, and `series`, the words of its line.
        x: name of the horizontal axis, quantity.
        y: name of the vertical axis, quantity.
        title: above the chart.
        y_axis: of the quantity; one that holds all points by default.
    """
    across = axis([float(point[x]) for point in points])
    up = y_axis or axis([float(point[y]) for point in points])
    drawn = [
        [(_at(across.share(float(p[x]))), _up(up.share(float(p[y])))) for p in series]
        for series in _by_series(points).values()
    ]
    ticks = [(_at(across.share(value)), _shown(value)) for value in across.ticks]
    return _svg(title, (x, y), ticks, up, list(_by_series(points)), lines=drawn)


def bars(points: Sequence[Point], *, x: str, y: str, title: str, y_axis: Axis | None = None) -> str:
    """Return a bar chart; bars of several series stand side by side.

    Args:
        points: values by name: x, y, and `series`, the words of its color.
        x: name of the horizontal axis, in the order of the points.
        y: name of the vertical axis, quantity.
        title: above the chart.
        y_axis: of the quantity; one from 0 that holds all points by default.
    """
    up = y_axis or axis([0.0, *(float(point[y]) for point in points)])
    names = list(dict.fromkeys(str(point[x]) for point in points))
    by_series = _by_series(points)
    each = _WIDTH / len(names)
    width = each * _BAR_SHARE / len(by_series)
    drawn = [
        [
            (
                _LEFT + each * (names.index(str(p[x])) + (1 - _BAR_SHARE) / 2) + n * width,
                _up(up.share(float(p[y]))),
                width,
            )
            for p in series
        ]
        for n, series in enumerate(by_series.values())
    ]
    ticks = [(_LEFT + each * (n + 0.5), name) for n, name in enumerate(names)]
    return _svg(title, (x, y), ticks, up, list(by_series), bars=drawn)


def _by_series(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Return the points of each series, in order."""
    by_series: dict[str, list[Point]] = {}
    for point in points:
        by_series.setdefault(str(point["series"]), []).append(point)
    return by_series


def _at(share: float) -> float:
    """Return the horizontal position of a share of the axis."""
    return _LEFT + share * _WIDTH


def _up(share: float) -> float:
    """Return the vertical position of a share of the axis."""
    return _TOP + (1 - share) * _HEIGHT


def _shown(value: float) -> str:
    """Return a number as a tick shows it."""
    return f"{value:,.10g}"


def _svg(
    title: str,
    names: tuple[str, str],
    x_ticks: Sequence[tuple[float, str]],
    up: Axis,
    series: Sequence[str],
    **drawn: Sequence[Sequence[tuple[float, ...]]],
) -> str:
    """Render a chart from positions in its box."""
    return render(
        "chart.svg",
        title=title,
        names=names,
        box=(_LEFT, _TOP, _WIDTH, _HEIGHT),
        size=(_LEFT + _WIDTH + 20, _TOP + _HEIGHT + _BOTTOM + _LINE * len(series)),
        x_ticks=x_ticks,
        y_ticks=[(_up(up.share(value)), _shown(value)) for value in up.ticks],
        legend=[(_TOP + _HEIGHT + _BOTTOM + _LINE * n + 8, name) for n, name in enumerate(series)],
        lines=drawn.get("lines", ()),
        bars=drawn.get("bars", ()),
    )
