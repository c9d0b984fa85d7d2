"""One noisy table of counts by place and slot, estimated by itself: without marginals or days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.cell_fits import Earlier, fits
from turnstile.estimates.error_model import OF_CELLS, ErrorModel, Judged, Numbers, calibrated
from turnstile.estimates.fission import FITTED_TIMES, JUDGED_TIMES, split
from turnstile.estimates.fit_weights import Look, class_weights, size_classes, weighted
from turnstile.estimates.sum_errors import JudgedBlocks, correlations, stretches_of
from turnstile.estimates.tap_estimates import SIZE_EDGES, SMALLEST_RATE
from turnstile.estimates.trip_weeks import FISSIONS

Floats = NDArray[np.float64]
_CLASSES = len(SIZE_EDGES) + 1


@dataclass(frozen=True, slots=True, eq=False)
class CellEstimates:
    """Estimated counts; each shape (places, slots).

    Args:
        estimates: >= 0.
        variances: of their errors.
        uncertainty: of the error itself, relative, by the size class of each cell.
        correlations: how far the errors go together (`sum_errors`); empty where it is not known.
    """

    estimates: Floats
    variances: Floats
    uncertainty: Floats
    correlations: Sequence[dict[str, Any]] = ()


def estimated_cells(
    values: Floats,
    deviation: float,
    seed: str,
    earlier: Earlier | None,
    slots: Sequence[str] = (),
) -> CellEstimates:
    """Return the estimates of one table.

    Args:
        values: drawn numbers, shape (places, slots).
        deviation: standard deviation of their noise.
        seed: of the public randomness.
        earlier: the prior from earlier weeks, shape (places, 1, slots), if there are any.
        slots: labels; without them nothing is said of sums.
    """
    cube = values[:, None, :]
    looks = []
    for number in range(FISSIONS):
        fitted, judge = split(cube, deviation, f"{seed}/{number}")
        found = fits(fitted, deviation * FITTED_TIMES**0.5, earlier)
        looks.append(Look(found, judge, size_classes(found[-1], SIZE_EDGES)))
    weights = class_weights(looks, _CLASSES, deviation**2 * JUDGED_TIMES)
    judged = [
        Judged(_numbers(weighted(look.fits, look.classes, weights), deviation), look.judge.ravel())
        for look in looks
    ]
    model = calibrated(judged, OF_CELLS, classes=_CLASSES, days=1, places=len(values))
    found = fits(cube, deviation, earlier)
    estimates = weighted(found, size_classes(found[-1], SIZE_EDGES), weights)
    numbers = _numbers(estimates, deviation)
    return CellEstimates(
        estimates[:, 0],
        model.variances(numbers).reshape(values.shape),
        model.class_uncertainty[numbers.classes].reshape(values.shape),
        correlations([[_blocks(one, model, deviation, slots)] for one in judged]) if slots else (),
    )


def _blocks(one: Judged, model: ErrorModel, deviation: float, slots: Sequence[str]) -> JudgedBlocks:
    """Return one look's estimates, places by one day by slots, against the other look."""
    shape = (-1, 1, len(slots))
    seen = replace(one.numbers, noise_variance=one.numbers.noise_variance * FITTED_TIMES)
    return JudgedBlocks(
        errors=(one.numbers.estimates - one.judge).reshape(shape),
        variances=model.variances(seen).reshape(shape),
        stretches=stretches_of(slots),
        slot_sizes=np.ones(len(slots), dtype=np.int64),
        judging=lambda places, count: places * count * deviation**2 * JUDGED_TIMES,
    )


def _numbers(estimates: Floats, deviation: float) -> Numbers:
    """Return estimates, flat, with what their errors depend on."""
    places, days, _ = np.indices(estimates.shape)
    return Numbers(
        estimates=estimates.ravel(),
        rates=np.maximum(estimates.ravel(), SMALLEST_RATE),
        noise_variance=np.full(estimates.size, deviation**2),
        classes=size_classes(estimates.ravel(), SIZE_EDGES),
        days=days.ravel(),
        places=places.ravel(),
    )
