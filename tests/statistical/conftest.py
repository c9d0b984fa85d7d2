"""Shared by the statistical tests: an exact seeded sampler as oracle, and confidence bounds."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from turnstile.privacy.noise_families import NoiseFamily

Sampler = Callable[[NoiseFamily, Fraction, int], NDArray[np.int64]]


def bernoulli_exp(bits: random.Random, numerator: int, denominator: int) -> bool:
    """True with probability e^(-numerator/denominator) (Canonne, Kamath & Steinke 2020, Alg. 1)."""
    while numerator > denominator:
        if not bernoulli_exp(bits, denominator, denominator):
            return False
        numerator -= denominator
    draws = 1
    while bits.randrange(denominator * draws) < numerator:
        draws += 1
    return draws % 2 == 1


def discrete_laplace(bits: random.Random, scale: Fraction) -> int:
    """Algorithm 2 of the same paper, for scale t/s."""
    t, s = scale.numerator, scale.denominator
    while True:
        remainder = bits.randrange(t)
        if not bernoulli_exp(bits, remainder, t):
            continue
        whole = 0
        while bernoulli_exp(bits, 1, 1):
            whole += 1
        size = (remainder + t * whole) // s
        if bits.randrange(2) == 0:
            return size
        if size:
            return -size


def discrete_gaussian(bits: random.Random, sigma: Fraction) -> int:
    """Algorithm 3 of the same paper, for a whole sigma."""
    squared, t = int(sigma**2), int(sigma) + 1
    while True:
        candidate = discrete_laplace(bits, Fraction(t))
        distance = abs(candidate) * t - squared
        if bernoulli_exp(bits, distance**2, 2 * squared * t**2):
            return candidate


@pytest.fixture(scope="session")
def exact_sampler() -> Sampler:
    """Seeded draws by the pure-Python sampler: slow, independent of OpenDP, the same every time."""

    def draw(noise: NoiseFamily, scale: Fraction, number: int) -> NDArray[np.int64]:
        bits = random.Random(f"turnstile {noise} {scale}")  # noqa: S311 - an oracle, not noise
        sampler = discrete_laplace if noise is NoiseFamily.DISCRETE_LAPLACE else discrete_gaussian
        return np.array([sampler(bits, scale) for _ in range(number)], dtype=np.int64)

    return draw
