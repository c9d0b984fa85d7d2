"""What each part of the estimates of cells earns: RMSE of a cell when it is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
from compared_weeks import SEED, rmse
from estimate_weeks import Floats, Noise, dice, made_week, week_of

from turnstile.estimates.fitting import cell_fits
from turnstile.estimates.fitting.cell_fits import Weeks, fits
from turnstile.estimates.trips import tap_estimates
from turnstile.estimates.trips.trip_weeks import ModeTaps, taps_by_mode

WEEKS, SHARE = 7, 0.3
FITS = ("clipped", "departure from what all weeks have in common", "all days")


def without_fit(number: int) -> Callable[[Floats, float, Weeks | None], Floats]:
    """Return the fits without one of them."""
    return lambda *given: np.delete(fits(*given), number, axis=0)


def ablation_lines(real: Floats, noises: tuple[Noise, ...]) -> Iterator[str]:
    """Yield for each part by how much the RMSE of a cell rises without it."""
    parts = [
        *((name, tap_estimates, "fits", without_fit(n)) for n, name in enumerate(FITS)),
        ("guard", cell_fits, "guarded", lambda _values, fitted, _variance: fitted),
        ("limited translation", cell_fits, "TRANSLATION_SDS", 1e9),
        ("breaks of level", cell_fits, "without_breaks", lambda weeks, _deviations: weeks),
    ]
    for noise in noises:
        coins = dice(SEED)
        truth = made_week(coins, SHARE * real)
        before = [made_week(coins, SHARE * real) for _ in range(WEEKS)]
        (taps,) = taps_by_mode(week_of(coins, truth, before, noise))
        whole = error_of(taps, truth)
        for name, module, attribute, other in parts:
            with patch.object(module, attribute, other):
                more = 100 * (error_of(taps, truth) / whole - 1)
            yield f"| {noise.cells} | {name} | {more:+.2f} % |"


def error_of(taps: ModeTaps, truth: Floats) -> float:
    """Return the RMSE of a cell."""
    estimates = tap_estimates.estimated(taps.numbers, taps.looks, taps.earlier).numbers
    return rmse(estimates.cells - truth)
