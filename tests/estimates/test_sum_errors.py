"""How far errors go together is found from two looks at the noise, and intervals of sums hold."""

from __future__ import annotations

import numpy as np
from estimate_weeks import Floats, Random, dice

from turnstile.estimates.fitting.sum_errors import JudgedBlocks, correlations, stretches_of
from turnstile.publishing.carried.sums import Together, Way

PLACES, DAYS, SLOTS = 40, 7, 24
LABELS = [f"{hour:02}:00" for hour in range(SLOTS)]
ERROR, OF_A_PLACE, JUDGING = 2.0, 1.0, 6.0


def errors(coins: Random) -> Floats:
    """Errors that places have in common on a day, beside those of each cell."""
    common = OF_A_PLACE * coins.standard_normal((PLACES, DAYS, 1))
    return ERROR * coins.standard_normal((PLACES, DAYS, SLOTS)) + common


def found_ways(coins: Random) -> list[Way]:
    shape = (PLACES, DAYS, SLOTS)
    look = JudgedBlocks(
        errors=errors(coins) + JUDGING * coins.standard_normal(shape),
        variances=np.full(shape, ERROR**2 + OF_A_PLACE**2),
        stretches=stretches_of(LABELS),
        slot_sizes=np.ones(SLOTS, dtype=np.int64),
        judging=lambda places, slots: places * slots * JUDGING**2,
    )
    return [Way(**way) for way in correlations([[look]])]


def coverage(ways: list[Way]) -> float:
    """Share of the days of places whose summed error lies in the 90 % interval of the sum."""
    deviation = (ERROR**2 + OF_A_PLACE**2) ** 0.5
    sums = errors(dice(7)).sum(axis=2).ravel()
    rows = [
        {
            "service_date": "1",
            "place": "a",
            "slot": label,
            "value": "9",
            "low_90": "1",
            "high_90": f"{9 + 1.6448536 * deviation}",
        }
        for label in LABELS
    ]
    variance, _ = Together(ways, 0.0).error(rows)
    return float((np.abs(sums) <= 1.6448536 * variance**0.5).mean())


def test_sums_of_errors_that_go_together_are_held_by_their_intervals() -> None:
    # 280 sums: below 0.80 or above 0.98 by chance with probability below 1e-6 at a fixed seed.
    assert 0.84 <= coverage(found_ways(dice(15))) <= 0.98


def test_adding_up_variances_would_not_hold_them() -> None:
    assert coverage([]) < 0.7


def test_errors_that_do_not_go_together_are_not_said_to() -> None:
    coins = dice(3)
    shape = (PLACES, DAYS, SLOTS)
    look = JudgedBlocks(
        errors=(ERROR**2 + JUDGING**2) ** 0.5 * coins.standard_normal(shape),
        variances=np.full(shape, ERROR**2),
        stretches=stretches_of(LABELS),
        slot_sizes=np.ones(SLOTS, dtype=np.int64),
        judging=lambda places, slots: places * slots * JUDGING**2,
    )
    for way in correlations([[look]]):
        assert abs(way["share"]) < 5 * way["uncertainty"] + 1e-3
