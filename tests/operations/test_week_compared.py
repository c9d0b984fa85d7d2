"""A place moved only if noise and the whole city do not explain it."""

from __future__ import annotations

import numpy as np

from turnstile.operations.budget_page.picture_shapes import Bar
from turnstile.operations.budget_page.week_compared import compared

PLACES, DEVIATION = 300, 30.0


def _week(truth: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int) -> dict[str, Bar]:
    noise = np.random.default_rng(seed).normal(0, DEVIATION, truth.size)  # noqa: TID251 - made weeks
    return {f"p{n}": Bar(f"p{n}", float(v), DEVIATION) for n, v in enumerate(truth + noise)}


def _moved(factor: float, shifted: int, seed: int) -> set[str]:
    before = np.full(PLACES, 1000.0)
    now = before * factor
    now[:shifted] += 400.0
    comparison = compared(
        "2026-W46", ({}, {}), (_week(before, seed), _week(now, seed + 1)), adds_up=True
    )
    assert comparison.places == PLACES
    assert len(comparison.moved) + comparison.more >= len(comparison.moved)
    return {place.name for place in comparison.moved}


def test_a_busier_week_moves_no_place_and_noise_moves_none() -> None:
    # 40 weeks, each with a chance of about .05 of any false place: more than 12 of them have a
    # chance below 1e-6 (binomial).
    weeks = [_moved(factor, 0, 7 * n) for n in range(20) for factor in (1.0, 1.5)]
    assert sum(bool(moved) for moved in weeks) <= 12


def test_places_that_moved_are_named_and_hardly_any_other() -> None:
    moved = _moved(1.2, 5, 3)
    assert {f"p{n}" for n in range(5)} <= moved  # 400 is nine deviations of the difference
    assert len(moved) <= 8


def test_a_place_without_a_number_or_without_a_last_one_is_not_compared() -> None:
    now = {"a": Bar("a", None, 1.0), "b": Bar("b", 5.0, 1.0), "c": Bar("c", 5.0, 0.0)}
    before = {"a": Bar("a", 5.0, 1.0), "c": Bar("c", 5.0, 0.0)}
    assert compared("2026-W46", ({}, {}), (before, now), adds_up=False).places == 0


def test_days_stand_beside_the_same_day_of_the_last_week() -> None:
    rows = ({"Monday": Bar("Monday", 100.0, 3.0)}, {"Monday": Bar("Monday", 90.0, 4.0),
            "Sunday": Bar("Sunday", 7.0, 4.0)})  # fmt: skip
    monday, sunday = compared("2026-W46", rows, ({}, {}), adds_up=True).rows
    assert (monday.before, monday.now) == (100.0, 90.0)
    assert abs(monday.half_width_95 - 1.96 * 5) < 0.01
    assert sunday.before is None
