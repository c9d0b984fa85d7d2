"""Year to date: what a unit moves of the draws that carry the year's exact counts along."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from turnstile.privacy.year_to_date import UNIT, YEAR_WEEKS, column_squared, multiples


def moved(weeks: Sequence[int]) -> int:
    """Squared change of all draws by a unit that moves one cell by one in these weeks."""
    of_ages = multiples()
    return sum(
        sum(of_ages[week - earlier] for earlier in weeks if earlier <= week) ** 2
        for week in range(YEAR_WEEKS)
    )


def test_no_unit_moves_the_draws_farther_than_the_proof_says() -> None:
    assert max(moved([week]) for week in range(YEAR_WEEKS)) == moved([0]) == column_squared()
    every = Fraction(moved(range(YEAR_WEEKS)), YEAR_WEEKS * column_squared())
    assert round(float(every), 2) == 4.34
    half = Fraction(moved(range(0, YEAR_WEEKS, 2)), YEAR_WEEKS * column_squared())
    assert 1 < half < every
    # Negative control: what weeks alone would be charged for is passed by every unit of two weeks.
    assert moved([0, 1]) > 2 * column_squared()
    assert moved([YEAR_WEEKS - 1]) == UNIT**2
