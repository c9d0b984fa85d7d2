"""Dense draws: integer noise on every cell of a public domain, zeros included, delta 0.

The noise is OpenDP's discrete Laplace and discrete Gaussian on vectors of 64-bit integers
(Canonne, Kamath & Steinke 2020), exact samplers fed by a generator that the operating
system seeds. OpenDP is imported here alone, and late. Proof: dense.proof.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from turnstile.errors import IntegrityError
from turnstile.privacy.accounts import Loss, loss_of
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import pure_or_concentrated

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORBIDDEN_FEATURES = ("idealized-numerics", "floating-point", "honest-but-curious")
_RELATIVE_ROUNDING = Fraction(1, 10**9)  # OpenDP's maps round up within a few ulp of float64
_CELL_LIMIT = 2**62  # counts beyond this could saturate when noise is added


def draw(event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the table with fresh noise of the event's family and scale on every cell.

    Every call draws anew, so every call costs the event's loss again (PRIVACY 6.1).

    Args:
        event: a dense draw; its scale is passed to OpenDP as the same float64.
        exact: counts or fixed-point sums, any shape, int64.

    Raises:
        ValueError: the event has a threshold.
        TypeError: the table is not int64.
        IntegrityError: OpenDP runs with a feature that voids its proofs.
    """
    if event.threshold is not None:
        raise ValueError("a thresholded event is drawn by stability_histogram, not here")
    return noised(event, exact)


def noised(event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add the event's noise to every cell, whatever is done with the cells afterwards."""
    if exact.dtype != np.int64:
        raise TypeError(f"a table of dtype {exact.dtype} cannot be drawn; give int64")
    if exact.size and max(abs(int(exact.max())), abs(int(exact.min()))) > _CELL_LIMIT:
        raise ValueError("a cell is too large for 64-bit integer noise; use smaller units")
    # An array, not a list, whose numbers would be checked one by one while other threads wait.
    noisy = _measurement(event)(exact.flatten())
    return np.asarray(noisy, dtype=np.int64).reshape(exact.shape)


def mapped_loss(event: DrawEvent, sensitivity: Sensitivity) -> Loss:
    """Return what OpenDP's own privacy map gives for this draw: the second, independent figure.

    Laplace: epsilon from the map. Gaussian: rho from the map. What a threshold adds is computed
    from the closed form in floats.
    """
    by_l2 = math.sqrt(sensitivity.l2_squared)
    moved = sensitivity.l1 if event.noise.record.is_pure else by_l2
    figure = Fraction(_measurement(event).map(moved))
    epsilon, rho = pure_or_concentrated(event.noise.record.is_pure, figure)
    return Loss(epsilon, rho, _delta_in_floats(event, sensitivity))


def agree(event: DrawEvent) -> None:
    """Check the plan's loss against the mechanism's own map, for every bounded unit.

    Raises:
        IntegrityError: they differ by more than float rounding; nothing may be drawn.
    """
    for unit, sensitivity in event.sensitivities:
        if sensitivity is None:
            continue
        planned, mapped = loss_of(event, sensitivity), mapped_loss(event, sensitivity)
        pairs = ((planned.epsilon, mapped.epsilon), (planned.rho, mapped.rho))
        if not all(_close(*pair) for pair in pairs) or not _close(planned.delta, mapped.delta):
            raise IntegrityError(
                f"{event.label}: the planned loss of unit {unit} is not the loss that the "
                "mechanism's own map returns; nothing was drawn; call the maintainers"
            )


def _measurement(event: DrawEvent) -> Any:  # noqa: ANN401 - OpenDP's measurement has no usable type
    """Build OpenDP's measurement on integer vectors, with the features that void proofs off."""
    # Not by `opendp.prelude`, which loads frames and frameworks that nothing here uses.
    from opendp import measurements
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import GLOBAL_FEATURES, enable_features

    on = GLOBAL_FEATURES.intersection(_FORBIDDEN_FEATURES)
    if on:
        raise IntegrityError(f"OpenDP features {sorted(on)} void its proofs; turn them off")
    enable_features("contrib")  # everything in OpenDP's library that has no vetted proof yet
    domain = vector_domain(atom_domain(T="i64"))
    scale = float(event.scale)
    distance = l1_distance(T="i64") if event.noise.record.is_pure else l2_distance(T="f64")
    return getattr(measurements, event.noise.record.drawn_by)(domain, distance, scale=scale)


def _delta_in_floats(event: DrawEvent, sensitivity: Sensitivity) -> Fraction:
    """Delta of a threshold from the cumulative distribution, independent of the exact path."""
    if event.threshold is None:
        return Fraction(0)
    if sensitivity.linf >= event.threshold:
        return Fraction(1)
    ratio = math.exp(-1 / float(event.scale))
    per_record = max(
        ratio ** (event.threshold - held) / (1 + ratio) / held
        for held in range(1, sensitivity.linf + 1)
    )
    return Fraction(min(1.0, sensitivity.l1 * per_record))


def _close(left: Fraction | None, right: Fraction | None) -> bool:
    """Return whether two amounts are the same up to float rounding."""
    if left is None or right is None:
        return left is right
    return abs(left - right) <= _RELATIVE_ROUNDING * max(left, right)
