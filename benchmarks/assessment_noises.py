"""Noise of other kinds than what is declared, and what may be done to noise afterwards."""

from __future__ import annotations

import numpy as np
from assessment_releases import Ints
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import uniforms


def deviation(event: DrawEvent) -> float:
    """Return the declared standard deviation."""
    return float(noise_variance(event.noise, event.scale) ** 0.5)


def laplace(event: DrawEvent, label: str, number: int) -> NDArray[np.float64]:
    """Return continuous Laplace noise of the declared scale, or variance."""
    is_own = event.noise is NoiseFamily.DISCRETE_LAPLACE
    scale = float(event.scale) if is_own else deviation(event) / 2**0.5
    centered = uniforms(label, number) - 0.5
    return np.asarray(-scale * np.sign(centered) * np.log1p(-2 * np.abs(centered)))


def normal(event: DrawEvent, label: str, number: int) -> NDArray[np.float64]:
    """Return normal noise of the declared variance."""
    from scipy.stats import norm

    return np.asarray(deviation(event) * norm.ppf(uniforms(label, number)))


def uniform(event: DrawEvent, label: str, number: int) -> NDArray[np.float64]:
    """Return uniform noise of the declared variance."""
    return np.asarray(deviation(event) * 12**0.5 * (uniforms(label, number) - 0.5))


def one_sided(event: DrawEvent, label: str, number: int) -> NDArray[np.float64]:
    """Return exponential noise of the declared variance, centered."""
    return np.asarray(deviation(event) * (-np.log(uniforms(label, number)) - 1))


def student(event: DrawEvent, label: str, number: int) -> NDArray[np.float64]:
    """Return Student noise of 3 degrees and the declared variance."""
    from scipy.stats import t

    return np.asarray(deviation(event) / 3**0.5 * t.ppf(uniforms(label, number), 3))


def two_points(event: DrawEvent, label: str, number: int) -> NDArray[np.float64]:
    """Return plus or minus the declared deviation."""
    return np.asarray(deviation(event) * np.sign(uniforms(label, number) - 0.5))


def opposite(noise: Ints) -> Ints:
    """Give every second cell the noise of its neighbor with the sign turned."""
    turned = noise.copy()
    turned[1::2] = -noise[: noise.size // 2 * 2 : 2]
    return turned


def clipped_above(noise: Ints, deviations: float) -> Ints:
    """Clip the noise at so many deviations above zero."""
    return np.minimum(noise, round(deviations * float(noise.std())))
