"""Every mechanism that a programme can name, as plain data: one record each.

A record says what a programme states for it, which noise it needs for a loss, and which module
draws. The modules that draw know the noise library: they are named here and imported when a table
is drawn (`dispatch`); planning needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Self

from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.mechanisms.calibration import gaussian_scale, laplace_scale
from turnstile.privacy.mechanisms.thresholds import source_parameters, tight_parameters
from turnstile.privacy.noise_families import NoiseFamily

_RECONCILED = (
    "least-squares reconciliation, estimates, roll-ups; what was drawn stands beside it, as drawn, "
    "in the column measured"
)


class Calibration(StrEnum):
    """How a thresholded histogram gets its scale and threshold."""

    TIGHT = "tight"  # the smallest that meet the amount and the delta of a table
    SOURCE = "source"  # those of the Opal release of 2017 (PRIVACY 5.4)


@dataclass(frozen=True, slots=True)
class Spending:
    """What one vector may cost the programme's unit.

    Args:
        loss: epsilon or rho, as the mechanism's amount is stated.
        sensitivity: of the unit.
        delta: of a thresholded table; 0 for others.
        calibration: of a thresholded table.
    """

    loss: Fraction
    sensitivity: Sensitivity
    delta: Fraction = Fraction(0)
    calibration: Calibration = Calibration.TIGHT


@dataclass(frozen=True, slots=True)
class DrawNoise:
    """Scale of a draw; threshold and its delta where there is one."""

    scale: Fraction
    threshold: int | None = None
    delta: Fraction = Fraction(0)


def laplace_noise(spending: Spending) -> DrawNoise:
    """Return the discrete Laplace noise that costs at most an epsilon."""
    return DrawNoise(laplace_scale(spending.loss, spending.sensitivity.l1))


def gaussian_noise(spending: Spending) -> DrawNoise:
    """Return the discrete Gaussian noise that costs at most a rho."""
    return DrawNoise(gaussian_scale(spending.loss, spending.sensitivity.l2_squared))


def thresholded_noise(spending: Spending) -> DrawNoise:
    """Return noise and threshold that cost at most (epsilon, delta), or those of the source."""
    if spending.calibration is Calibration.SOURCE:
        # The source states replace-one budgets, twice the add/remove loss that is posted.
        parameters = source_parameters(2 * spending.loss, spending.delta)
    else:
        parameters = tight_parameters(spending.loss, spending.delta, spending.sensitivity)
    return DrawNoise(parameters.scale, parameters.threshold, parameters.delta)


class MechanismKind(StrEnum):
    """Mechanisms that may publish.

    A record holds: name, as `mechanism.kind` of a programme; family of its noise; key under
    `mechanism` that states its amount; what noise a loss buys; module that draws; whether cells
    below a threshold are left out; what is done with its numbers afterwards, for the release card.
    """

    noise: NoiseFamily
    amount: str
    noise_for: Callable[[Spending], DrawNoise]
    drawn_by: str
    is_thresholded: bool
    post_processing: str

    def __new__(  # noqa: PLR0913, PLR0917 - a record is made from its fields
        cls,
        name: str,
        noise: NoiseFamily = NoiseFamily.DISCRETE_LAPLACE,
        amount: str = "epsilon",
        noise_for: Callable[[Spending], DrawNoise] = laplace_noise,
        drawn_by: str = "dense",
        is_thresholded: bool = False,  # noqa: FBT001, FBT002 - a field of the record
        post_processing: str = _RECONCILED,
    ) -> Self:
        """Make the text that the kind is, and hang its record on it."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.noise, kind.amount, kind.noise_for = noise, amount, noise_for
        kind.drawn_by, kind.is_thresholded = drawn_by, is_thresholded
        kind.post_processing = post_processing
        return kind

    DENSE_LAPLACE = "dense_laplace", NoiseFamily.DISCRETE_LAPLACE, "epsilon", laplace_noise
    DENSE_GAUSSIAN = "dense_gaussian", NoiseFamily.DISCRETE_GAUSSIAN, "rho", gaussian_noise
    STABILITY_HISTOGRAM = (
        "stability_histogram",
        NoiseFamily.DISCRETE_LAPLACE,
        "epsilon",
        thresholded_noise,
        "stability_histogram",
        True,
        "none; a cell without a row is below the threshold or empty",
    )

    @property
    def named_in_events(self) -> str | None:
        """Name that its draw events bear; None for one that noise and threshold identify."""
        return None if self.drawn_by in _TOLD_BY_THRESHOLD else str(self)


_TOLD_BY_THRESHOLD = ("dense", "stability_histogram")

# Known to be broken: they run in the assessment lab only (PRIVACY 5.7).
KNOWN_BAD = {
    "second_algorithm": "it leaves zero counts alone, so a published cell proves presence",
    "continuous_laplace": "floating-point noise tells neighboring counts apart",
    "numpy_laplace": "floating-point noise tells neighboring counts apart",
    "rounded_counts": "it adds no noise",
    "threshold_only": "it adds no noise",
    "opendp_laplace_threshold": "its stated delta is too small on integers",
    "exact_counts": "it adds no noise",
}


def module_of(event: DrawEvent) -> str:
    """Return the name of the module that draws an event.

    Raises:
        ValueError: no mechanism has the name that the event bears.
    """
    if event.mechanism is not None:
        return MechanismKind(event.mechanism).drawn_by
    return "dense" if event.threshold is None else "stability_histogram"
