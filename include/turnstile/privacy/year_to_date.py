"""Year to date: what sums over the weeks cost if each week's draw carries the year along.

In place of its own counts x_t a week draws y_t = n_0 x_t + n_1 x_(t-1) + ..., integer multiples of
the exact counts of the year so far, plus integer noise that is fresh every week: a mixed
factorisation, the identity and a quarter of the square root of the matrix of prefix sums
(Fichtenberger, Henzinger & Upadhyay 2023). What has to be kept is exact counts, in the private
zone, and never noise. Weeks and their sums follow from the published y alone. Pure.
Proof: year_to_date.proof.md.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.sensitivities import scaled

YEAR_WEEKS, QUARTER_WEEKS = 52, 13
UNIT = 1024  # n_0: multiples of 1/1024 of the earlier weeks are whole
_OF_PREFIX = Fraction(1, 4)
CARD_GAIN = 1.23  # most that any mechanism can gain for the card over the window (proof, Y4)


@cache  # asked for each pair of weeks
def multiples() -> tuple[int, ...]:
    """Return n_0, n_1, ...: how often a draw holds this week's counts, last week's, ...

    Examples:
        >>> multiples()[:4]
        (1024, 128, 96, 80)
    """
    shares = [_OF_PREFIX * Fraction(comb(2 * age, age), 4**age) for age in range(1, YEAR_WEEKS)]
    return (UNIT, *(round(UNIT * share) for share in shares))


def column_squared() -> int:
    """Return the squared change of all draws by a unit that moves one week by one (Y1)."""
    return sum(n**2 for n in multiples())


def over_the_year(sensitivity: Sensitivity) -> Sensitivity:
    """Return how far a unit of one week moves all draws of the year, side by side (Y1)."""
    return replace(sensitivity, l2_squared=column_squared() * sensitivity.l2_squared)


def of_one_draw(sensitivity: Sensitivity, age: int, *, in_every_week: bool) -> Sensitivity:
    """Return how far a unit moves the draw of a week that has `age` weeks of its year before it.

    Args:
        sensitivity: of the exact counts of one week.
        age: weeks of the year before, 0 to 51.
        in_every_week: True for a card that may be there in all of them, with the same change (Y3);
            False for a unit of the draw's own week.
    """
    return scaled(sensitivity, sum(multiples()[: age + 1]) if in_every_week else UNIT)
