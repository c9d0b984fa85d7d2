"""Draw events: what one draw of noise is, exactly, and what it can cost each unit.

An event is a fact about a mechanism, not an amount: the ledger stores it, so every unit's loss can
be computed again when an accountant is corrected (PRIVACY 3). Fields may be added with a default;
none is ever renamed or changes its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block, ProtectionUnit


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one unit can move the exact vector of one draw, add/remove, over the whole draw.

    Args:
        l0: cells that can change, >= 1.
        l1: sum of absolute changes, in counts (or grid steps), >= 1.
        l2_squared: sum of squared changes, >= 1.
        linf: largest change of a cell, >= 1.
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int


SMALLEST_THRESHOLD = 2  # at 1 a lone record would be released with probability above one half


@dataclass(frozen=True, slots=True)
class DrawEvent:
    """One draw: independent noise of one family and scale on every cell of one table.

    Args:
        table: name of the table in the programme.
        statistic: which integer vector of that table (`count`, `sum`, `over_40`).
        noise: family.
        scale: b of the discrete Laplace, sigma of the discrete Gaussian, in counts (or grid
            steps); exactly representable as a float64, because OpenDP takes it as one.
        blocks: private data that the draw reads.
        sensitivities: one entry a unit; None where the unit's contribution is not bounded.
        delta: probability of a thresholded release that pure noise does not cover, for one record
            in a cell of its own; 0 if dense.
        threshold: T of a thresholded draw: a cell is released when it is occupied and its noisy
            value is at least T; None if dense. A unit's own delta follows from T, the scale and
            its sensitivity (`accounts.loss_of`).
        joint: name of the vector that this draw is a piece of, with the others of that name; the
            sensitivities are then those of the whole vector, charged once; None if it is drawn
            alone.
        own_records: True if the table counts records of a bound of its own, so that it is no
            marginal of other tables.
        mechanism: name of the mechanism that draws; None where the threshold, or that there is
            none, identifies it.
        step: multiple of the exact counts that is drawn; sensitivities and scale are of it.
        carried: days of earlier weeks whose exact counts are drawn along, and how many times each
            (year_to_date.proof.md); a unit of those days is charged by that multiple. What a card
            of many weeks loses is in its sensitivity.
    """

    table: str
    statistic: str
    noise: NoiseFamily
    scale: Fraction
    blocks: tuple[Block, ...]
    sensitivities: tuple[tuple[ProtectionUnit, Sensitivity | None], ...]
    delta: Fraction = Fraction(0)
    threshold: int | None = None
    joint: str | None = None
    own_records: bool = False
    mechanism: str | None = None
    step: int = 1
    carried: tuple[tuple[date, int], ...] = ()

    def __post_init__(self) -> None:
        """Check the scale and the threshold.

        Raises:
            ValueError: the scale is not positive or not a float64; a delta without a threshold, or
                a threshold with noise that is not Laplace or below 2.
        """
        if self.scale <= 0 or Fraction(float(self.scale)) != self.scale:
            msg = f"scale {self.scale} must be positive and exactly a float64"
            raise ValueError(msg)
        if self.threshold is None:
            if self.delta != 0:
                raise ValueError("a dense draw has delta 0; state the threshold as well")
        elif self.threshold < SMALLEST_THRESHOLD or not self.noise.record.has_geometric_tail:
            raise ValueError("a thresholded draw has Laplace noise and a threshold of 2 or more")
        if self.step < 1 or (self.step > 1 and not self.noise.record.adds_up):
            raise ValueError("multiples of counts, of 1 and more, are drawn with Gaussian noise")
        if self.carried and self.step == 1:
            raise ValueError("a draw that carries earlier days along is of multiples of counts")
        if self.joint is not None and self.threshold is not None:
            raise ValueError("a thresholded draw is no piece of a joint vector")

    @property
    def label(self) -> str:
        """Name within a release, `on_time/count`."""
        return f"{self.table}/{self.statistic}"


def one_of_each_label(events: Sequence[DrawEvent]) -> list[DrawEvent]:
    """Return one draw of each label: those that hold one record of one day."""
    return list({event.label: event for event in events}.values())
