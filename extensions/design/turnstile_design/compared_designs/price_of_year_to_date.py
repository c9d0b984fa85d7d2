"""What `turnstile plan --year-to-date` says: sums over the year, their price, and who may not.

Compared at equal loss of one unit of a week: a week that is drawn alone has deviation 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from turnstile.errors import BudgetExceeded, InputError
from turnstile.pipeline.context import Release
from turnstile.privacy.accounts import Loss, loss_by_unit
from turnstile.privacy.year_to_date import (
    CARD_GAIN,
    QUARTER_WEEKS,
    YEAR_WEEKS,
    column_squared,
    multiples,
)
from turnstile.publishing.card import loss_figures

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SumErrors:
    """Standard deviations at the end of the year, a week drawn alone being 1.

    Args:
        week: of the least precise week.
        quarter: of the sum of the last 13 weeks.
        year: of the sum of all.
    """

    week: float
    quarter: float
    year: float


def price_of_every_week() -> Fraction:
    """Return how many times more a card loses that is there in all weeks, against weeks alone (Y3).

    Examples:
        >>> round(float(price_of_every_week()), 2)
        4.34
    """
    of_ages = multiples()
    squared = sum(sum(of_ages[: week + 1]) ** 2 for week in range(YEAR_WEEKS))
    return Fraction(squared, YEAR_WEEKS * column_squared())


def sum_errors() -> SumErrors:
    """Return the errors of weeks and sums that the published draws give (Y2)."""
    of_weeks = inverse() * sqrt(column_squared())
    quarter = of_weeks[-QUARTER_WEEKS:].sum(axis=0)
    return SumErrors(
        week=float(np.sqrt((of_weeks**2).sum(axis=1)).max()),
        quarter=float(np.linalg.norm(quarter)),
        year=float(np.linalg.norm(of_weeks.sum(axis=0))),
    )


def alone() -> SumErrors:
    """Return the same for weeks that are drawn alone."""
    return SumErrors(1.0, sqrt(QUARTER_WEEKS), sqrt(YEAR_WEEKS))


def year_to_date(release: Release) -> Iterator[str]:
    """Yield errors of weeks and sums, and what a card or bus of every week would lose.

    Raises:
        InputError: the programme's noise is not Gaussian.
        BudgetExceeded: a cap over a window would be passed; where the window is what is promised,
            carrying the year along gains nothing.
    """
    programme = release.programme
    if programme.mechanism.kind.amount != "rho":
        rule = "is for Gaussian noise, whose losses over a year are stated in rho"
        raise InputError(where=programme.name, field="--year-to-date", rule=rule)
    weekly = loss_by_unit(release.plan.events)
    unit = next(candidate for candidate in weekly if candidate.is_lifetime)
    apart, carried = alone(), sum_errors()
    yield "Year to date: each week draws a weighted sum of the year's exact counts so far, with"
    yield "fresh noise (privacy/year_to_date.proof.md), as a table with year_to_date_from does."
    yield "If all tables did so:"
    yield f"Standard deviations at equal loss of one {programme.mechanism.unit}:"
    yield ""
    yield "| | weeks drawn alone | year to date |"
    yield "|---|---|---|"
    yield f"| a week | {apart.week:.2f} | {carried.week:.2f} |"
    yield f"| its last {QUARTER_WEEKS} weeks | {apart.quarter:.2f} | {carried.quarter:.2f} |"
    yield f"| all {YEAR_WEEKS} weeks | {apart.year:.2f} | {carried.year:.2f} |"
    yield ""
    price, year = price_of_every_week(), weekly[unit].times(YEAR_WEEKS)
    if year.rho is None:
        yield f"A {unit} of all {YEAR_WEEKS} weeks is not bounded, either way."
        return
    carried_year = Loss(None, price * year.rho)
    yield (
        f"Price for a {unit} of all {YEAR_WEEKS} weeks: {float(price):.2f} times the loss, rho "
        f"{float(carried_year.rho or 0):.2f} in place of {float(year.rho):.2f}, epsilon at 1e-6 "
        f"{loss_figures(carried_year)['epsilon_at_delta_1e-6']} in place of "
        f"{loss_figures(year)['epsilon_at_delta_1e-6']}."
    )
    for cap in programme.caps:
        if cap.unit is unit and cap.rho is not None and price * year.rho > cap.rho:
            raise BudgetExceeded(
                f"{programme.name}: year to date would pass its cap of rho {float(cap.rho):g} on a "
                f"{unit} over {cap.window_weeks} weeks. At noise that loses a {unit} no more than "
                f"weeks alone do, the sum of {YEAR_WEEKS} weeks has "
                f"{carried.year * sqrt(price):.2f} in place of {apart.year:.2f}: where the unit is "
                f"the {unit} over the window, it gains at most {CARD_GAIN}, so it is refused"
            )


def inverse() -> Floats:
    """Return the matrix that makes the weeks' counts from the draws, shape (52, 52)."""
    of_ages = np.array(multiples(), dtype=np.float64)
    ages = np.subtract.outer(np.arange(YEAR_WEEKS), np.arange(YEAR_WEEKS))
    matrix: Floats = np.linalg.inv(np.where(ages >= 0, of_ages[ages], 0.0))
    return matrix
