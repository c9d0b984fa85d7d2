"""Laws of integer noise: what is declared, what a fault makes of it, and what that tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from assessment_releases import Ints
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, stdtr

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import uniforms

Floats = NDArray[np.float64]
_REACH = {True: 90, False: 28}  # scales; of Laplace noise and of others: no chance is 0 in there
NATS = math.log(1e9)
_ONE_IN_100 = 2.3263  # normal deviates


class Gain(NamedTuple):
    """The log likelihood ratio of a fault against what is declared, where the fault is there."""

    mean: float
    variance: float = 0.0

    @property
    def is_seen(self) -> bool:
        """Whether the ratio is as large with 99 % as it is without the fault with 1e-9.

        Of many cells the ratio L is normal. Its chance to pass t without the fault is
        E e^-L 1{L >= t} with it, and at most e^-t.
        """
        if self.mean == math.inf:
            return True
        spread = math.sqrt(max(0.0, self.variance))
        limit = self.mean - _ONE_IN_100 * spread
        beyond = spread**2 / 2 - self.mean + float(log_ndtr(_ONE_IN_100 - spread))
        return min(-limit, beyond) <= -NATS

    def times(self, cells: float) -> Gain:
        """Return the ratio of so many cells."""
        return Gain(self.mean * cells, self.variance * cells)

    def plus(self, other: Gain) -> Gain:
        """Return the ratio of both together."""
        return Gain(self.mean + other.mean, self.variance + other.variance)


NONE, CERTAIN = Gain(0.0), Gain(math.inf)


class Law(NamedTuple):
    """Chances of consecutive integers."""

    values: Ints
    chances: Floats

    def sampled(self, label: str, number: int) -> Ints:
        """Return noise that depends on a label alone."""
        indices = np.searchsorted(np.cumsum(self.chances), uniforms(label, number))
        return np.asarray(self.values[indices.clip(0, self.values.size - 1)])

    def against(self, other: Law) -> Gain:
        """Return what one number of this law tells against another law of the same integers."""
        held = self.chances > 1e-300  # noqa: PLR2004 - what is never drawn
        if not np.all(other.chances[held] > 0):
            return CERTAIN
        logs = np.log(self.chances[held] / other.chances[held])
        mean = float(self.chances[held] @ logs)
        return Gain(mean, float(self.chances[held] @ logs**2) - mean**2)

    @property
    def surprise(self) -> Gain:
        """What one number tells that had to be what it is."""
        held = self.chances > 1e-300  # noqa: PLR2004 - what is never drawn
        logs = -np.log(self.chances[held])
        mean = float(self.chances[held] @ logs)
        return Gain(mean, float(self.chances[held] @ logs**2) - mean**2)

    @property
    def variance(self) -> float:
        """The mean square."""
        return float(self.values.astype(np.float64) ** 2 @ self.chances)

    def put(self, change: Callable[[Ints], Ints]) -> Law:
        """Return the law of changed noise, on the same integers."""
        places = np.clip(change(self.values) - self.values[0], 0, self.values.size - 1)
        return Law(self.values, np.bincount(places, self.chances, self.values.size))


def deviation(event: DrawEvent) -> float:
    """Return the declared standard deviation."""
    return float(noise_variance(event.noise, event.scale) ** 0.5)


def declared(event: DrawEvent, times: float = 1.0) -> Law:
    """Return the declared law, or that of so many times its scale."""
    reach = math.ceil(_REACH[event.noise.record.is_pure] * float(event.scale)) + 1
    scale = event.scale if times == 1 else Fraction(float(event.scale) * times)
    return Law(*noise_pmf(event.noise, scale, reach=reach))


def bare(event: DrawEvent) -> Law:
    """Return no noise."""
    return declared(event).put(np.zeros_like)


def bare_in_part(event: DrawEvent, share: float) -> Law:
    """Return noise that a share of the cells lacks, nobody knows which."""
    law = declared(event)
    return Law(law.values, share * bare(event).chances + (1 - share) * law.chances)


def clipped(event: DrawEvent, deviations: float, *, above_alone: bool = False) -> Law:
    """Return noise that is cut at so many deviations."""
    most = round(deviations * deviation(event))
    return declared(event).put(lambda z: np.clip(z, z.min() if above_alone else -most, most))


def moved(event: DrawEvent, deviations: float) -> Law:
    """Return noise whose mean is so many deviations above 0."""
    whole, part = divmod(deviations * deviation(event), 1)
    low, high = (declared(event).put(lambda z, by=by: z + int(whole) + by) for by in (0, 1))
    return Law(low.values, (1 - part) * low.chances + part * high.chances)


def _rounded(event: DrawEvent, below: Callable[[Floats], Floats]) -> Law:
    """Return the law of a continuous number, rounded."""
    values = declared(event).values
    return Law(values, np.diff(below(np.append(values - 0.5, values[-1] + 0.5))).clip(0))


def laplace(event: DrawEvent) -> Law:
    """Return rounded Laplace noise of the declared scale, or variance."""
    is_own = event.noise is NoiseFamily.DISCRETE_LAPLACE
    scale = float(event.scale) if is_own else deviation(event) / 2**0.5
    return _rounded(
        event, lambda x: np.where(x < 0, np.exp(-abs(x) / scale), 2 - np.exp(-abs(x) / scale)) / 2
    )


def normal(event: DrawEvent) -> Law:
    """Return rounded normal noise of the declared variance."""
    return _rounded(event, lambda x: ndtr(x / deviation(event)))


def uniform(event: DrawEvent) -> Law:
    """Return rounded uniform noise of the declared variance."""
    return _rounded(event, lambda x: (x / deviation(event) / 12**0.5 + 0.5).clip(0, 1))


def one_sided(event: DrawEvent) -> Law:
    """Return rounded exponential noise of the declared variance, centered."""
    return _rounded(event, lambda x: 1 - np.exp(-(x / deviation(event) + 1).clip(0)))


def student(event: DrawEvent) -> Law:
    """Return rounded Student noise of 3 degrees and the declared variance."""
    return _rounded(event, lambda x: stdtr(3, x / deviation(event) * 3**0.5))


def two_points(event: DrawEvent) -> Law:
    """Return plus or minus the declared deviation."""
    point = round(deviation(event))
    return declared(event).put(lambda z: np.where(z < 0, -point, point))


def opposite(noise: Ints) -> Ints:
    """Give every second cell the noise of its neighbor with the sign turned."""
    turned = noise.copy()
    turned[1::2] = -noise[: noise.size // 2 * 2 : 2]
    return turned
