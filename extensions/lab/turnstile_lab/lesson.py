"""What a lesson of the lab holds: a release that looks safe, its attack, and a figure to turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
