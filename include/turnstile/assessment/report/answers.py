"""The first page of the report: what is protected, from whom, how well, how long; what is not."""

from __future__ import annotations

from dataclasses import dataclass

from turnstile.assessment.attacks.risk import Forecast
from turnstile.privacy.units import VEHICLE_UNITS, ProtectionUnit
from turnstile.programme.spec import Programme

_WHOM = (
    "From everybody who sees what is published, whatever else they know: even somebody who knows "
    "all records but those of one unit. Not from the operator, who holds the raw records."
)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a privacy commissioner asks first.

    Args:
        what: is protected.
        whom: it is protected from.
        how_well: over what time, one sentence a unit, typical and worst.
        not_protected: sentences.
    """

    what: str
    whom: str
    how_well: tuple[str, ...]
    not_protected: tuple[str, ...]


def answers_of(programme: Programme, risk: Forecast) -> Answers:
    """Return the answers of a programme, for the report of a release and for those who sign.

    Args:
        programme: whose bounds hold.
        risk: of its releases.
    """
    own = programme.mechanism.unit
    bounds = "; ".join(
        f"of {bound.unit.noun} at most {bound.contributions_max} "
        f"{'cells' if bound.unit in VEHICLE_UNITS else 'trips'} are counted"
        for bound in programme.units
        if bound.unit is not ProtectionUnit.TRIP
    )
    what = (
        f"Whether {own.noun} is in the data at all, and with it everything about it, as well as "
        f"is said below{f' ({bounds})' if bounds else ''}."
    )
    return Answers(
        what,
        _WHOM,
        tuple(
            f"{'At worst: ' if one.is_worst else ''}{one.sentence}"
            for one in risk.units
            if one.guess_right is not None
        ),
        (
            *dict.fromkeys(
                one.sentence if one.guess_right is None else f"{one.verdict}.".capitalize()
                for one in risk.units
                if one.guess_right is None or "does not hide" in one.verdict
            ),
            (
                "Facts about groups, lines and places: that many people travel somewhere is what "
                "the numbers are for."
            ),
            "The list of cells, the programme and its bounds, and whether a week appears at all.",
        ),
    )
