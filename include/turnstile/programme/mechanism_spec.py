"""What noise a programme draws and what its units may lose: frozen records, values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator

from turnstile.privacy.mechanisms.registry import KNOWN_BAD, Calibration, MechanismKind
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit
from turnstile.programme.key import Amount, Flag, Key, Positive

WINDOW_WEEKS = 52  # of a cap on a card or bus


def _not_known_bad(name: object) -> object:
    """Refuse mechanisms that look right and are not (PRIVACY 5.7)."""
    if isinstance(name, str) and name in KNOWN_BAD:
        raise ValueError(f"{str(name)!r} may not publish: {KNOWN_BAD[name]}; write another")
    return name


@dataclass(frozen=True, slots=True)
class MechanismSpec:
    """How the noise is scaled.

    Args:
        amount: epsilon (Laplace) or rho (Gaussian) of the whole release for that unit, on the
            blocks that one instance can touch.
        split: share of the amount for each table or `table/statistic`; the shares sum to 1.
        delta: of a table. Of the source's calibration: its own.
        joint_marginals: slot and place of one tap are drawn as one vector, whose bound is below the
            sum of theirs (PRIVACY 4.6).
    """

    kind: Annotated[
        MechanismKind, BeforeValidator(_not_known_bad), Key("mechanism", "dense_gaussian")
    ]
    unit: Annotated[
        ProtectionUnit, Key("the unit that the amount protects; bounded under units", "card_day")
    ]
    amount: Fraction
    split: tuple[tuple[str, Fraction], ...]
    delta: Annotated[Amount, Key("stability_histogram: delta", '"1e-7"', default="required")] = (
        Fraction(0)
    )
    calibration: Annotated[
        Calibration,
        Key("stability_histogram: our threshold, or that of the 2017 release", "source"),
    ] = Calibration.TIGHT
    joint_marginals: Annotated[
        Flag, Key("once_per_finest_cell: slots and places share one bound", "true")
    ] = False


@dataclass(frozen=True, slots=True)
class CapSpec:
    """What one unit may lose: epsilon, or rho and delta; over a window of weeks if it says so.

    `line` is where the programme file states it, for messages.
    """

    unit: Annotated[ProtectionUnit, Key("whose loss", "card")]
    relation: Annotated[NeighboringRelation, Key("neighboring relation", "add_remove")] = (
        NeighboringRelation.ADD_REMOVE
    )
    epsilon: Annotated[Amount | None, Key("cap in epsilon; or write rho", '"40"')] = None
    rho: Annotated[Amount | None, Key("cap in rho; or write epsilon", '"1"')] = None
    delta: Annotated[Amount | None, Key("delta at which the loss is shown", '"1e-6"')] = None
    window_weeks: Annotated[
        Positive | None,
        Key("card and bus: weeks in a row of the cap", "52", default=str(WINDOW_WEEKS)),
    ] = None
    line: int = field(default=0, compare=False)
