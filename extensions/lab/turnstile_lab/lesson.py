"""What a lesson of the lab holds: a release that looks safe, its attack, and a figure to turn.

The words of every lesson stand in `lessons.csv`; those of its attack name the figures behind it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.report.pictures import Axis, axis

SHARES = axis([0.0, 1.0])
_FILE = Path(__file__).with_name("lessons.csv")
_WORDS = {row.pop("name"): row for row in csv.DictReader(_FILE.read_text("utf-8").splitlines())}


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture with one thing to turn.

    Args:
        knob: what is turned, in words.
        frames: for each position of it, its words and its picture (SVG).
        start: index of the frame that is shown first.
    """

    knob: str
    frames: tuple[tuple[str, str], ...]
    start: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """A defeated baseline.

    Args:
        name: short.
        title: what was released.
        formula: that the attack rests on, with its source.
        attack: what the attacker does, and what it yields, with numbers.
        remedy: what this product does instead.
        figures: numbers behind the attack.
        figure: of it.
    """

    name: str
    title: str
    formula: str
    attack: str
    remedy: str
    figures: Mapping[str, float]
    figure: Figure

    @property
    def picture(self) -> str:
        """The frame that is shown first, SVG."""
        return self.figure.frames[self.figure.start][1]


def lesson(
    name: str,
    figures: Mapping[str, float],
    pictures: Mapping[int, str] | Mapping[float, str],
    first: float,
) -> Lesson:
    """Return a lesson in its words.

    Args:
        name: of its row in `lessons.csv`.
        figures: numbers behind the attack.
        pictures: by the position of the knob.
        first: position that is shown first.
    """
    words = _WORDS[name]
    frames = tuple((f"{position:g}", picture) for position, picture in pictures.items())
    return Lesson(
        name,
        words["title"],
        words["formula"],
        words["attack"].format(figures=figures),
        words["remedy"],
        figures,
        Figure(words["knob"], frames, list(pictures).index(first)),
    )


def chart(
    draw: Callable[..., str],
    axes: tuple[str, str],
    title: str,
    up: Axis,
    series: Mapping[str, Iterable[tuple[float | str, float]]],
) -> str:
    """Return a chart of series by their words, each of pairs (across, up).

    Args:
        draw: `lines` or `bars` of the report.
        axes: names of both.
        title: above the chart.
        up: vertical axis.
        series: pairs of each.
    """
    x, y = axes
    points = [
        {x: across, y: height, "series": words}
        for words, pairs in series.items()
        for across, height in pairs
    ]
    return draw(points, x=x, y=y, title=title, y_axis=up)


def histogram(values: NDArray[np.int64], cut: int) -> Iterable[tuple[int, int]]:
    """Return pairs (value, how often it is there); those beyond a cut are taken with it."""
    times = np.unique(np.clip(values, -cut, cut), return_counts=True)
    return zip(*(column.tolist() for column in times), strict=True)
