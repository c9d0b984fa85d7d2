"""Attacks of a release's report that need a truth to compare with: on synthetic data alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from turnstile.assessment.attacks.membership import membership_accuracy
from turnstile.assessment.attacks.reconstruction import (
    NoisyMarginals,
    exact_share,
    least_squares,
    linear_program,
)
from turnstile.privacy.events import DrawEvent, NoiseFamily

_ROWS, _COLUMNS = 12, 10
_CANARIES = 2_000
_WEEKS = 4


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """Share of the cells of a small synthetic table that each attack gets exactly right.

    Args:
        from_cells: by rounding each noisy cell, no attack at all.
        from_least_squares: by least squares over cells and margins.
        from_linear_program: by the linear program over cells and margins.
    """

    from_cells: float
    from_least_squares: float
    from_linear_program: float


def reconstruction(fine: DrawEvent, row: DrawEvent, column: DrawEvent) -> Reconstruction:
    """Reconstruct a synthetic table of small counts from its drawn cells and margins.

    Args:
        fine: draw of the cells, Laplace.
        row: draw of the row sums.
        column: draw of the column sums.
    """
    from turnstile.privacy.mechanisms.dispatch import draw

    # A fixed pattern with many zeros, as at night: any table does, the noise does not depend on it.
    truth = np.add.outer(np.arange(_ROWS), np.arange(_COLUMNS)).astype(np.int64) ** 2 % 5
    dense = [replace(event, threshold=None, delta=Fraction(0)) for event in (fine, row, column)]
    noisy = NoisyMarginals(
        draw(dense[0], truth),
        draw(dense[1], truth.sum(axis=1)),
        draw(dense[2], truth.sum(axis=0)),
        (float(fine.scale), float(row.scale), float(column.scale)),
    )
    return Reconstruction(
        exact_share(np.maximum(noisy.cells, 0).astype(np.float64), truth),
        exact_share(least_squares(noisy), truth),
        exact_share(linear_program(noisy), truth),
    )


def simulated_membership(events: Sequence[DrawEvent]) -> tuple[float, ...] | None:
    """Return the accuracy of membership inference after each of four weeks; None if thresholded."""
    if any(event.threshold is not None for event in events):
        return None
    return membership_accuracy(events, weeks=_WEEKS, canaries=_CANARIES)


def can_reconstruct(events: Sequence[DrawEvent]) -> bool:
    """Tell whether the attack on tables with Laplace noise applies."""
    return all(event.noise is NoiseFamily.DISCRETE_LAPLACE for event in events)
