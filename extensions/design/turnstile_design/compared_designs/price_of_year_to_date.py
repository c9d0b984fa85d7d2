"""What `turnstile plan --year-to-date` says: sums over the year, their price, and who may not."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from turnstile.errors import BudgetExceeded, InputError
from turnstile.pipeline.context import Release
from turnstile.privacy.accounts import Loss, loss_by_unit
from turnstile.privacy.year_to_date import (
    CARD_GAIN,
    QUARTER_WEEKS,
    YEAR_WEEKS,
    alone,
    price_of_every_week,
    sum_errors,
)
from turnstile.publishing.card import loss_figures
from turnstile_design.compared_designs.accounting import times


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
    price, year = price_of_every_week(), times(weekly[unit], YEAR_WEEKS)
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
