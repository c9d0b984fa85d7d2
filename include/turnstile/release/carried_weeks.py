"""Tables that carry their year along: which earlier days a draw holds, and what a card may lose.

From programme and calendar alone. A day is carried whether its week was released or not, so the
charge is known beforehand and never too small; which weeks are really in a draw, its sealed bytes
say (year_to_date.proof.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

from turnstile.errors import ProgrammeError
from turnstile.ledger.admission import under_add_remove
from turnstile.privacy.accounts import NANO, losses
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.units import ProtectionUnit
from turnstile.privacy.year_to_date import (
    CARD_GAIN,
    YEAR_WEEKS,
    multiples,
    of_one_draw,
    over_the_year,
)
from turnstile.programme.spec import Programme
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.sensitivities import Bounds
from turnstile.service_calendar import DAYS_PER_WEEK, ServicePeriod, ServiceWeek


def age_in_year(year_from: ServiceWeek, day: date) -> int:
    """Return how many weeks of its year lie before the week of a day, 0 to 51.

    Examples:
        >>> age_in_year(ServiceWeek(2016, 30), date(2016, 8, 3))
        1
        >>> age_in_year(ServiceWeek(2016, 30), date(2016, 7, 24))
        51
    """
    monday = ServiceWeek.containing(day).monday
    return (monday - year_from.monday).days // DAYS_PER_WEEK % YEAR_WEEKS


def carried_days(programme: Programme, day: date, age: int) -> tuple[tuple[date, int], ...]:
    """Return the same day of the earlier weeks of the year, and how often the draw holds each."""
    earlier = ((day - timedelta(weeks=n), multiples()[n]) for n in range(1, age + 1))
    absent = programme.source.absent_days
    return tuple(
        (earlier_day, multiple) for earlier_day, multiple in earlier if earlier_day not in absent
    )


def in_draw(bounds: Bounds, age: int) -> Bounds:
    """Return how far each unit moves a draw, from how far it moves the counts of one week."""
    return tuple(
        (unit, sensitivity and of_one_draw(sensitivity, age, in_every_week=unit.is_lifetime))
        for unit, sensitivity in bounds
    )


def check_year(programme: Programme, events: Sequence[DrawEvent], period: ServicePeriod) -> None:
    """Refuse tables that carry their year along where that passes a cap over a window of weeks.

    Raises:
        ProgrammeError: it would, or the programme is not released week by week.
    """
    tables = _years(programme)
    if not tables:
        return
    where, field = f"{programme.name}.yaml", f"tables.{min(tables)}.year_to_date_from"
    if not isinstance(period, ServiceWeek):
        raise ProgrammeError(where=where, field=field, rule="is for releases of weeks; remove it")
    for cap in programme.caps:
        rho_nano = under_add_remove(ledger_cap(cap)).rho_nano
        if cap.window_weeks is None or rho_nano is None:
            continue
        lost = rho_over_weeks(programme, events, cap.unit, cap.window_weeks)
        if lost is not None and lost * NANO > rho_nano:
            rule = (
                f"would have a {cap.unit} of all weeks lose rho {float(lost):.4g} in "
                f"{cap.window_weeks} weeks, above its cap of {rho_nano / NANO:.4g}. Where the unit "
                f"is the {cap.unit} over the window, carrying the year along gains at most "
                f"{CARD_GAIN}, so it is refused: remove it, or lower the table's share"
            )
            raise ProgrammeError(where=where, field=field, rule=rule)


def with_later_draws(events: Sequence[DrawEvent]) -> tuple[DrawEvent, ...]:
    """Return draws as they cost a unit of their week by the end of its year, all draws together."""
    return tuple(
        replace(
            event,
            carried=(),
            sensitivities=tuple(
                (unit, s if s is None or unit.is_lifetime else _over_the_year(s, event.step))
                for unit, s in event.sensitivities
            ),
        )
        if event.step > 1
        else event
        for event in events
    )


def _over_the_year(sensitivity: Sensitivity, step: int) -> Sensitivity:
    """Return the change of all draws of the year, from that of the week's own."""
    return replace(sensitivity, l2_squared=over_the_year(sensitivity).l2_squared // step**2)


def _years(programme: Programme) -> dict[str, ServiceWeek]:
    """Return the tables that carry their year along, and where their years begin."""
    return {
        table.name: table.year_from for table in programme.tables if table.year_from is not None
    }


def rho_over_weeks(
    programme: Programme, events: Sequence[DrawEvent], unit: ProtectionUnit, weeks: int
) -> Fraction | None:
    """Return what a card or bus of all weeks loses at most in so many in a row.

    Args:
        programme: says which tables carry their year along.
        events: of any one week.
        unit: of all of time.
        weeks: in a row, none left out.

    Returns:
        rho; None if it is not bounded.
    """
    tables = _years(programme)
    of_ages = [sum(multiples()[: age + 1]) ** 2 for age in range(YEAR_WEEKS)]
    years, rest = divmod(weeks, YEAR_WEEKS)
    worst = years * sum(of_ages) + sum(of_ages[YEAR_WEEKS - rest :])
    of_others = _of_lifetime([event for event in events if event.table not in tables], unit)
    lost = None if of_others is None else weeks * of_others
    for name, year_from in tables.items():
        draws = [event for event in events if event.table == name]
        age = age_in_year(year_from, draws[0].blocks[0].service_date)
        carried = _of_lifetime(draws, unit)
        if lost is None or carried is None:
            return None
        lost += carried * Fraction(worst, of_ages[age])
    return lost


def _of_lifetime(events: Sequence[DrawEvent], unit: ProtectionUnit) -> Fraction | None:
    """Return what draws of one week cost a card or bus; None if it is not bounded."""
    rhos = [loss.rho for (charged_unit, _), loss in losses(events).items() if charged_unit is unit]
    return None if None in rhos else sum((rho for rho in rhos if rho), Fraction(0))
