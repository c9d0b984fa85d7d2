"""What noise a programme draws and what its units may lose: frozen records, values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from turnstile.privacy.mechanisms.registry import Calibration, MechanismKind
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit


@dataclass(frozen=True, slots=True)
class MechanismSpec:
    """How the noise is scaled.

    Args:
        kind: mechanism.
        unit: unit whose add/remove loss `amount` is.
        amount: epsilon (Laplace) or rho (Gaussian) of the whole release for that unit, on the
            blocks that one instance can touch.
        split: share of the amount for each table or `table/statistic`; the shares sum to 1.
        delta: a table's delta; for STABILITY_HISTOGRAM. Of the source's calibration: its own.
        calibration: for STABILITY_HISTOGRAM.
        joint_marginals: True if the tables of the slot and of the place of one tap are drawn as one
            vector, whose bound is below the sum of theirs (PRIVACY 4.6); for DENSE_GAUSSIAN.
    """

    kind: MechanismKind
    unit: ProtectionUnit
    amount: Fraction
    split: tuple[tuple[str, Fraction], ...]
    delta: Fraction = Fraction(0)
    calibration: Calibration = Calibration.TIGHT
    joint_marginals: bool = False


@dataclass(frozen=True, slots=True)
class CapSpec:
    """What one unit may lose: epsilon, or rho and delta; over a window of weeks if it says so.

    `line` is where the programme file states it, for messages.
    """

    unit: ProtectionUnit
    relation: NeighboringRelation
    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction | None
    window_weeks: int | None
    line: int = field(default=0, compare=False)
