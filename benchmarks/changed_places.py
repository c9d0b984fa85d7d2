"""Places whose level broke: error with earlier weeks over that without any, where they changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

import numpy as np
from compared_weeks import rmse
from estimate_weeks import Floats, Noise, dice, made_week, week_of

from turnstile.estimates.trips.tap_estimates import estimated
from turnstile.estimates.trips.trip_weeks import taps_by_mode

CHANGED, WEEKS = 20, 8  # places, earlier weeks
AT_MOST = 1.03
SEEDS = (1, 2)


class Break(NamedTuple):
    """What became of the level of some places.

    Args:
        name: in words.
        before: times their usual level, until then.
        now: times it, since; None: each has the rates of the next.
        since: how many earlier weeks have the level of now.
    """

    name: str
    before: float
    now: float | None
    since: int = 0


CHANGES = (
    Break("nearly closed", 1, 0.15),
    Break("nearly closed, two weeks ago", 1, 0.15, 2),
    Break("grown", 1, 1.6),
    Break("reopened", 0.15, 1),
    Break("opened", 0, 1),
    Break("moved, each to where another was", 1, None),
)


@dataclass(frozen=True)
class Changed:
    """RMSE with earlier weeks over RMSE without: cells, hours and days of changed places; others.

    All of cells but `hours` and `days`.
    """

    cells: float
    hours: float
    days: float
    others: float


def changed(rates: Floats, noise: Noise, change: Break, *, seed: int = 1) -> Changed:
    """Make weeks in which some places have another level, and estimate the last one twice.

    Args:
        rates: shape (places, days, slots).
        noise: of all weeks.
        change: of the level of some.
        seed: of counts and noise.
    """
    coins = dice(seed)
    some = dice(99).permutation(len(rates))[:CHANGED]
    now, usual = rates.copy(), rates.copy()
    moved = rates[np.roll(some, 1)]
    now[some] = moved if change.now is None else rates[some] * change.now
    usual[some] *= change.before
    truth = made_week(coins, now)
    before = [made_week(coins, now if n < change.since else usual) for n in range(WEEKS)]
    week = week_of(coins, truth, before, noise)
    ratios = []
    for variant in (week, replace(week, earlier=())):
        (taps,) = taps_by_mode(variant)
        errors = estimated(taps.numbers, taps.looks, taps.earlier).numbers.cells - truth
        hours = errors.reshape(*errors.shape[:2], 24, -1).sum(axis=3)
        parts = (errors[some], hours[some], errors[some].sum(axis=2), np.delete(errors, some, 0))
        ratios.append([rmse(part) for part in parts])
    return Changed(*(np.array(ratios[0]) / np.array(ratios[1])))


def changed_lines(rates: Floats, noise: Noise) -> Iterator[str]:
    """Yield a line for every change and share of the taps."""
    for share in (1.0, 0.3, 0.1):
        for change in CHANGES:
            draws = [astuple(changed(share * rates, noise, change, seed=n)) for n in SEEDS]
            cells, hours, days, others = np.mean(draws, axis=0)
            verdict = "met" if max(cells, hours, days) <= AT_MOST else "NOT met"
            ratios = " | ".join(f"{ratio:.2f}" for ratio in (cells, hours, days, others))
            yield f"| {change.name} | {share} | {ratios} | at most {AT_MOST}: {verdict} |"
