"""Goodness of fit of the production sampler: is the noise as declared?"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.audits.pipeline_copy import Draw
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.goodness import p_value
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.tail_probabilities import binomial_at_least

DRAWS = 20_000
_POWER = 0.99
_SHARE_OF_ALPHA = 0.1  # the chi-squared limit is short in the tail (`privacy.goodness`)
_BINS = 40  # about: what a misfit is spread over


def misfit(event: DrawEvent, draw: Draw, *, alpha: float, draws: int = DRAWS) -> str | None:
    """Return what is wrong with noise drawn on zeros; None if it has the declared distribution.

    Args:
        event: declared noise; a threshold is left away.
        draw: of the pipeline under test: event, cells -> every vector that it publishes.
        alpha: chance that the right noise is found wrong.
        draws: on zeros.
    """
    dense = replace(event, threshold=None, delta=Fraction(0))
    noise = np.concatenate(draw(dense, np.zeros(draws, dtype=np.int64)))
    return misfit_of(noise, event, alpha=alpha)


def misfit_of(noise: NDArray[np.int64], event: DrawEvent, *, alpha: float) -> str | None:
    """Return what is wrong with noise; None if it has the declared distribution.

    A chi-squared test and the number of equal neighbors; neither can prove that noise is
    unpredictable, which is up to the randomness that the sampler is fed.

    Args:
        noise: that was added to cells, in the order of drawing.
        event: that declares it.
        alpha: chance that the right noise is found wrong.
    """
    fit = p_value(noise, event.noise, event.scale)
    if fit < alpha / 2 * _SHARE_OF_ALPHA:
        return f"does not fit (p = {fit:.1g})"
    _, probabilities = noise_pmf(event.noise, event.scale, reach=int(40 * event.scale) + 1)
    same = float(np.sum(probabilities**2))
    for start in (0, 1):  # disjoint pairs of neighbors are independent of each other
        pairs = noise[start : noise.size - (noise.size - start) % 2].reshape(-1, 2)
        equal = int((pairs[:, 0] == pairs[:, 1]).sum())
        if binomial_at_least(equal, len(pairs), same) < alpha / 4:
            return f"{equal} of {len(pairs)} pairs of draws are equal"
    return None


def shift_found(alpha: float, *, draws: int = DRAWS) -> float:
    """Return by how many scales noise must be shifted to be found with 99 %, about.

    The statistic grows by n d^2 for a shift by d scales (Fisher information of a location).
    """
    deviates = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(_POWER)
    return float((deviates * (2 * _BINS) ** 0.5 / draws) ** 0.5)


def scale_found(alpha: float, *, draws: int = DRAWS) -> float:
    """Return how far off a scale must be to be found with 99 %, by the chi-squared test, about.

    The statistic grows by 2 n d^2 for a relative error d of the scale (Fisher information of a
    normal scale), and scatters by the root of twice its bins.
    """
    deviates = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(_POWER)
    return float((deviates * (2 * _BINS) ** 0.5 / (2 * draws)) ** 0.5)
