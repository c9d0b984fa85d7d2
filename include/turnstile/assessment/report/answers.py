"""The first page of the report: who is protected from whom, how long, four figures; what is not."""

from __future__ import annotations

from dataclasses import dataclass

from turnstile.assessment.attacks.risk import Forecast, Span, percent
from turnstile.privacy.units import VEHICLE_UNITS, ProtectionUnit
from turnstile.programme.spec import Programme

_WHOM = (
    "From everybody who sees what is published, whatever else they know: even somebody who knows "
    "all records but those of one unit. Not from the operator, who holds the raw records."
)
_HOW_LONG = (
    "For ever: noise that was drawn is never drawn again, and whatever is learned later takes "
    "nothing from it. What one that is in every week shows grows with the weeks."
)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a privacy commissioner asks first.

    Args:
        what: is protected.
        whom: it is protected from.
        how_long: the protection lasts.
        figures: chances of the best guess in 100, and whose they are: of the unit that the
            programme protects, by all that was charged, and of whoever is there all along, by that
            or by a year from now on, whichever shows more.
        not_protected: sentences.
    """

    what: str
    whom: str
    how_long: str
    figures: tuple[tuple[str, str], ...]
    not_protected: tuple[str, ...]


def answers_of(programme: Programme, forecast: Forecast) -> Answers:
    """Return the answers of a programme, for the report of a release and for those who sign.

    Args:
        programme: whose bounds hold.
        forecast: of its releases.
    """
    unit = programme.mechanism.unit
    bounds = "; ".join(
        f"of {bound.unit.noun} at most {bound.contributions_max} "
        f"{'cells' if bound.unit in VEHICLE_UNITS else 'trips'} are counted"
        for bound in programme.units
        if bound.unit is not ProtectionUnit.TRIP
    )
    what = (
        f"Whether {unit.noun} is in the data at all, and with it everything about it, as well as "
        f"is said below{f' ({bounds})' if bounds else ''}."
    )
    return Answers(
        what,
        _WHOM,
        _HOW_LONG,
        _figures(unit, forecast),
        (
            *dict.fromkeys(
                risk.sentence if risk.guess_right is None else f"{risk.verdict}.".capitalize()
                for risk in forecast.units
                if risk.guess_right is None or "does not hide" in risk.verdict
            ),
            (
                "Facts about groups, lines and places: that many people travel somewhere is what "
                "the numbers are for."
            ),
            "The list of cells, the programme and its bounds, and whether a week appears at all.",
        ),
    )


def _figures(unit: ProtectionUnit, forecast: Forecast) -> tuple[tuple[str, str], ...]:
    """Return four chances: of the protected unit as charged, and of one that is there all along."""
    charged = [risk for risk in forecast.units if risk.unit is unit and risk.span is Span.LEDGER]
    ascending = sorted(forecast.units, key=lambda risk: risk.guess_right or 0)
    # Of a card or bus that which shows more: all that was charged, or the year from this week on.
    most = {(risk.unit, risk.is_worst): risk for risk in ascending if risk.unit.is_lifetime}
    return tuple(
        (percent(risk.guess_right), f"{risk.who}{f', {risk.over}' if risk.over else ''}")
        for risk in dict.fromkeys([*charged, *most.values()])
        if risk.guess_right is not None
    )
