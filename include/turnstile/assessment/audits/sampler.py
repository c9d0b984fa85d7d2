"""Goodness of fit of the production sampler, on zeros: is the noise as declared?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.goodness import DRAWS, fits, repeats
from turnstile.privacy.noise import noise_pmf

_REPEATS_MARGIN = 0.02  # many standard deviations at 100,000 draws; reuse in pairs adds near 0.5


def sampler_fits(
    event: DrawEvent, draw: Callable[[DrawEvent, NDArray[np.int64]], NDArray[np.int64]]
) -> bool:
    """Tell whether noise drawn on zeros is as declared, and no draw is used twice running.

    A chi-squared test at 1e-9 and the share of equal neighbors; neither can prove that noise is
    unpredictable, which is up to the randomness that the sampler is fed.

    Args:
        event: declared noise, dense.
        draw: of the mechanism under test.
    """
    noise = draw(event, np.zeros(DRAWS, dtype=np.int64))
    _, probabilities = noise_pmf(event.noise, event.scale, reach=int(40 * event.scale) + 1)
    is_fresh = repeats(noise) <= float(np.sum(probabilities**2)) + _REPEATS_MARGIN
    return is_fresh and fits(noise, event.noise, event.scale)
