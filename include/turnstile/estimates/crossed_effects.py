"""Effects of two crossed factors, place and hour, by the mixed-model equations. Pure.

Henderson (1975), best linear unbiased prediction: looks of known variance at a common mean, an
effect of each place and one of each hour, normal with a variance for each factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_FLAT_PRECISION = 1e-9  # of the common mean


@dataclass(frozen=True, slots=True, eq=False)
class CrossedEffects:
    """Sums of common mean, place and hour, and the parts.

    Args:
        fitted: the sums, shape (places, hours).
        spread: variances of their errors, same shape.
        of_places: effects of places above the variances of their errors, shape (2, places).
        of_hours: the same of hours, shape (2, hours).
    """

    fitted: Floats
    spread: Floats
    of_places: Floats
    of_hours: Floats


def crossed_effects(y: Floats, weights: Floats, of_place: float, of_hour: float) -> CrossedEffects:
    """Solve the mixed-model equations, whose matrix is that of two crossed factors.

    The block of the places is diagonal, so only the mean and the hours have to be solved for, by
    their Schur complement: 13 equations for twelve hours, whatever the number of places.

    Args:
        y: shape (places, hours).
        weights: of each look, same shape.
        of_place: prior precision of the effects of places.
        of_hour: of those of hours.
    """
    by_place, by_hour = weights.sum(axis=1), weights.sum(axis=0)
    rest = np.diag(np.concatenate([[by_place.sum() + _FLAT_PRECISION], by_hour + of_hour]))
    rest[0, 1:] = rest[1:, 0] = by_hour
    coupled = np.column_stack([by_place, weights])
    scaled = coupled / (by_place + of_place)[:, None]
    covariance = np.linalg.inv(rest - coupled.T @ scaled)  # of mean and hours
    with_place = -scaled @ covariance
    place_variance = 1 / (by_place + of_place) - (with_place * scaled).sum(axis=1)
    pulled = weights * y
    of_rest = np.concatenate([[pulled.sum()], pulled.sum(axis=0)])
    of_places = pulled.sum(axis=1) / (by_place + of_place)
    others = covariance @ (of_rest - coupled.T @ of_places)
    place = of_places - scaled @ others
    variances = np.diag(covariance)
    both = with_place[:, :1] + covariance[0, 1:] + with_place[:, 1:]
    return CrossedEffects(
        fitted=others[0] + place[:, None] + others[1:],
        spread=variances[0] + place_variance[:, None] + variances[1:] + 2 * both,
        of_places=np.stack([place, place_variance]),
        of_hours=np.stack([others[1:], variances[1:]]),
    )
