"""The exact integer samplers that may draw: one record each, which everybody else asks.

What is true of a family alone stands here: its distribution, what its noise costs, which of its
properties gates and attacks use. A further family is one record (and a mechanism that draws it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_EXACT_ABOVE = 20.0  # the discrete Gaussian's variance is sigma^2 to 1e-300 from here on
REACH_SDS = 40


def _laplace_masses(values: Ints, width: float) -> Floats:
    """Return (1 - r)/(1 + r) r^|v| with r = e^(-1/b)."""
    import numpy as np

    ratio = math.exp(-1 / width)
    return np.asarray((1 - ratio) / (1 + ratio) * np.exp(-np.abs(values) / width))


def _laplace_variance(width: float) -> float:
    """Return 2r/(1 - r)^2."""
    return 2 * math.exp(-1 / width) / math.expm1(-1 / width) ** 2


def _laplace_ratios(values: Ints, change: int, width: float) -> Floats:
    """Return ln P(value | change) - ln P(value)."""
    import numpy as np

    return np.asarray((np.abs(values) - np.abs(values - change)) / width)


def _gaussian_masses(values: Ints, width: float) -> Floats:
    """Return e^(-v^2 / 2 sigma^2), normalised over at least 40 sigma."""
    import numpy as np

    reach = max(int(values[-1]), math.ceil(REACH_SDS * width))
    all_values = np.arange(-reach, 1)
    weights = np.exp(-(all_values**2) / (2 * width**2))
    mass = 2 * weights.sum() - 1  # the middle is counted twice
    return np.asarray(np.exp(-(values**2) / (2 * width**2)) / mass)


def _gaussian_variance(width: float) -> float | None:
    """Return sigma^2; None for a small sigma, where it is below (Canonne et al. 2020, Cor. 9)."""
    return width**2 if width >= _EXACT_ABOVE else None


def _gaussian_ratios(values: Ints, change: int, width: float) -> Floats:
    """Return ln P(value | change) - ln P(value)."""
    import numpy as np

    return np.asarray((2 * change * values - change**2) / (2 * width**2))


@dataclass(frozen=True, slots=True)
class Record:
    """What is true of a family.

    Args:
        drawn_by: function of OpenDP that makes it.
        is_pure: its loss is an epsilon, by the l1 sensitivity; else a rho, by the l2 sensitivity.
        has_geometric_tail: each size of noise is one ratio as likely as the size before it, so
            that thresholds have a delta in closed form and small numbers identify the scale.
        adds_up: a sum of draws is one draw of a larger scale, near to a normal deviate.
        masses: probabilities of whole numbers from -reach to reach.
        variance: of one draw, in squared counts; None where it has to be summed up.
        ratios: log likelihood ratios of values, between a change of their cell and none.
    """

    drawn_by: str
    is_pure: bool
    has_geometric_tail: bool
    adds_up: bool
    masses: Callable[[Ints, float], Floats]
    variance: Callable[[float], float | None]
    ratios: Callable[[Ints, int, float], Floats]


class NoiseFamily(StrEnum):
    """The families, each the text that events and plans hold, with its record."""

    record: Record

    def __new__(cls, name: str, record: Record | None = None) -> Self:
        """Make the text that the family is, and hang its record on it."""
        family = str.__new__(cls, name)
        family._value_ = name
        if record is not None:
            family.record = record
        return family

    DISCRETE_LAPLACE = (
        "discrete_laplace",
        Record(
            drawn_by="make_laplace",
            is_pure=True,
            has_geometric_tail=True,
            adds_up=False,
            masses=_laplace_masses,
            variance=_laplace_variance,
            ratios=_laplace_ratios,
        ),
    )
    DISCRETE_GAUSSIAN = (
        "discrete_gaussian",
        Record(
            drawn_by="make_gaussian",
            is_pure=False,
            has_geometric_tail=False,
            adds_up=True,
            masses=_gaussian_masses,
            variance=_gaussian_variance,
            ratios=_gaussian_ratios,
        ),
    )


def pure_or_concentrated(is_pure: bool, figure: Fraction) -> tuple[Fraction | None, Fraction]:  # noqa: FBT001
    """Return epsilon (None if not finite) and rho of a figure that is one of them."""
    return (figure, figure**2 / 2) if is_pure else (None, figure)
