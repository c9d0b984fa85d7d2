"""Attacks of a release's report that need a truth to compare with: on synthetic data alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.presence import log_ratios
from turnstile.assessment.attacks.reconstruction import (
    NoisyMarginals,
    exact_share,
    least_squares,
    linear_program,
)
from turnstile.assessment.attacks.unit_changes import Change, summed_up, typical_changes
from turnstile.assessment.audits.pipeline_copy import coins
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.units import ProtectionUnit

Draw = Callable[[DrawEvent, NDArray[np.int64]], NDArray[np.int64]]
_ROWS, _COLUMNS = 12, 10
_CANARIES = 1_000
_WEEKS = 4


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """Share of the cells of a small synthetic table that each attack gets exactly right.

    Args:
        margins: tables of sums that the attack has beside the cells.
        from_cells: by rounding each noisy cell, no attack at all.
        from_least_squares: by least squares over cells and margins.
        from_linear_program: by the linear program over cells and margins, which is for Laplace
            noise; None for Gaussian noise.
    """

    margins: int
    from_cells: float
    from_least_squares: float
    from_linear_program: float | None


def reconstruction(
    fine: DrawEvent, row: DrawEvent | None = None, column: DrawEvent | None = None
) -> Reconstruction:
    """Reconstruct a synthetic table of small counts from its drawn cells and margins.

    Of a thresholded table: as if every cell were filled so far that the threshold plays no part.

    Args:
        fine: draw of the cells.
        row: draw of the row sums, of the same family; None without.
        column: draw of the column sums.
    """
    # A fixed pattern with many zeros, as at night: any table does, the noise does not depend on it.
    truth = np.add.outer(np.arange(_ROWS), np.arange(_COLUMNS)).astype(np.int64) ** 2 % 5
    noisy = NoisyMarginals(
        _drawn(fine, truth),
        _drawn(row, truth.sum(axis=1)),
        _drawn(column, truth.sum(axis=0)),
        (float(fine.scale), float((row or fine).scale), float((column or fine).scale)),
    )
    return Reconstruction(
        (row is not None) + (column is not None),
        exact_share(np.maximum(noisy.cells, 0).astype(np.float64), truth),
        exact_share(least_squares(noisy), truth),
        exact_share(linear_program(noisy), truth) if fine.noise.record.is_pure else None,
    )


def _drawn(event: DrawEvent | None, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw a dense vector; an empty one without a draw."""
    from turnstile.privacy.mechanisms.dispatch import draw

    if event is None:
        return np.zeros(0, dtype=np.int64)
    return draw(replace(event, threshold=None, delta=Fraction(0)), exact)


def membership_accuracy(
    changes: Mapping[Change, int], *, weeks: int, canaries: int, draw: Draw | None = None
) -> tuple[float, ...]:
    """Return the share of right guesses after each of so many weeks.

    Args:
        changes: that a unit makes in a week, and how many cells it changes so.
        weeks: to add up.
        canaries: units, half of them in, by coins.
        draw: event, exact cells -> noised cells; the product's own by default.
    """
    from turnstile.privacy.mechanisms import dispatch

    noised = draw or dispatch.draw
    is_in = coins(canaries)
    ratios = np.zeros(canaries)
    accuracy = []
    for _ in range(weeks):
        for change, cells in changes.items():
            event = DrawEvent("canaries", "count", change.noise, change.scale, (), ())
            exact = np.where(is_in, change.by, 0).astype(np.int64)
            value = noised(event, np.tile(exact, cells)).reshape(cells, canaries)
            ratios += log_ratios(change.noise, change.scale, value, change.by).sum(axis=0)
        guessed = np.where(ratios == 0, coins(canaries), ratios > 0)
        accuracy.append(float(np.mean(guessed == is_in)))
    return tuple(accuracy)


def simulated_membership(events: Sequence[DrawEvent], unit: ProtectionUnit) -> tuple[float, ...]:
    """Return the accuracy of membership inference after each of four weeks, for typical units.

    A thresholded cell is taken as one that others fill, where the threshold plays no part.

    Args:
        events: draws of one week.
        unit: that the programme protects, once a week.
    """
    changes = summed_up(typical_changes(events, unit))
    return membership_accuracy(changes, weeks=_WEEKS, canaries=_CANARIES)
