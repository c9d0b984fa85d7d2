"""What an officer looks at before a yes: noisy numbers beside the last public ones. Pure.

A place counts as moved only if noise does not explain it: its change, set against that of all
places together, is tested by both standard deviations, and the list holds false discoveries at 5 %
(Benjamini and Hochberg 1995, Theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from turnstile.operations.budget_page.picture_shapes import Bar
from turnstile.privacy.noise import normal_half_width
from turnstile.publishing.week.claims import discoveries

_SHOWN_AT_MOST = 12


@dataclass(frozen=True, slots=True)
class Change:
    """One number beside the last one.

    Args:
        name: day or place.
        before: of the last public week; None where it had none.
        now: of this week.
        half_width_95: of their difference, from the noise of both.
    """

    name: str
    before: float | None
    now: float
    half_width_95: float


@dataclass(frozen=True, slots=True)
class WeekCompared:
    """A week beside the last public one.

    Args:
        week: the last public one.
        rows: days of the week, or the week as a whole.
        moved: places that moved more than noise and the whole city did, the surest first.
        places: how many could be compared.
        more: how many moved beside those named.
    """

    week: str
    rows: tuple[Change, ...]
    moved: tuple[Change, ...]
    places: int
    more: int = 0


def compared(
    week: str,
    rows: tuple[Mapping[str, Bar], Mapping[str, Bar]],
    places: tuple[Mapping[str, Bar], Mapping[str, Bar]],
    *,
    adds_up: bool,
) -> WeekCompared:
    """Compare two weeks.

    Args:
        week: name of the earlier one.
        rows: numbers by day, earlier and now, by the day's name in its week.
        places: numbers by place, earlier and now.
        adds_up: whether they are counts, of which a busier week has more everywhere.
    """
    before, now = places
    both = {
        name: (before[name], bar)
        for name, bar in now.items()
        if bar.value is not None and name in before and before[name].value is not None
    }
    growth = _growth(list(both.values())) if adds_up else 1.0
    scored = sorted(
        (
            (_chance(old, new, growth), _change(name, old, new))
            for name, (old, new) in both.items()
            if old.deviation or new.deviation
        ),
        key=lambda pair: pair[0],
    )
    listed = discoveries([chance for chance, _ in scored])
    moved = [change for (_, change), is_listed in zip(scored, listed, strict=True) if is_listed]
    return WeekCompared(
        week=week,
        rows=tuple(
            _change(name, rows[0].get(name), bar)
            for name, bar in rows[1].items()
            if bar.value is not None
        ),
        moved=tuple(moved[:_SHOWN_AT_MOST]),
        places=len(scored),
        more=max(0, len(moved) - _SHOWN_AT_MOST),
    )


def _growth(pairs: Sequence[tuple[Bar, Bar]]) -> float:
    """Return how much busier the week is as a whole; 1 where the earlier one says nothing."""
    before = math.fsum(old.value or 0.0 for old, _ in pairs)
    now = math.fsum(new.value or 0.0 for _, new in pairs)
    return now / before if before > 0 and now > 0 else 1.0


def _chance(old: Bar, new: Bar, growth: float) -> float:
    """Return with which chance noise alone moves a number so far."""
    deviation = math.hypot(growth * old.deviation, new.deviation)
    distance = abs((new.value or 0.0) - growth * (old.value or 0.0))
    return math.erfc(distance / deviation / math.sqrt(2))


def _change(name: str, old: Bar | None, new: Bar) -> Change:
    """Set a number beside the last one."""
    was_there = old is not None and old.value is not None
    deviation = math.hypot(old.deviation, new.deviation) if old is not None and was_there else 0.0
    half = normal_half_width(deviation or new.deviation, level=95)
    return Change(name, old.value if old is not None else None, new.value or 0.0, half)
