"""The noise that is drawn is the noise that is claimed: pooled chi-squared at alpha 1e-9.

OpenDP cannot be seeded, so its draws are fresh; at this alpha a false alarm is out of reach. The
negative controls must fail: 5 % off in scale both ways, a shift, even values, reused draws. The
closest, a Laplace scale of 10 that is 5 % off, escapes with a chance of 1e-4 at 100,000 draws and
of 6e-20 at 200,000.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from reference_formulas import repeats

from turnstile.assessment.audits.sampler import p_value
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms import dense
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block

FITS_FROM = 1e-10
"""A tenth of 1e-9: bins of few draws have a longer tail than the chi-squared distribution, which
would reject the right one with up to 3.4e-9 at a nominal 1e-9 (convolved bin by bin)."""
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
DISTRIBUTIONS = [(LAPLACE, 2), (LAPLACE, 10), (GAUSSIAN, 3), (GAUSSIAN, 20)]
DRAWS = 200_000
REUSES = 10  # batches of draws, each used ten times
each_distribution = pytest.mark.parametrize(("noise", "scale"), DISTRIBUTIONS)


def fits(draws: NDArray[np.int64], noise: NoiseFamily, scale: Fraction) -> bool:
    """Return whether draws fit the distribution; wrong about the right one once in 1e9."""
    return p_value(draws, noise, scale) >= FITS_FROM


@cache
def drawn(noise: NoiseFamily, scale: Fraction) -> NDArray[np.int64]:
    blocks = (Block(date(2016, 7, 25), "bus"),)
    event = DrawEvent("t", "count", noise, scale, blocks, ())
    return dense.draw(event, np.zeros(DRAWS, dtype=np.int64))


@each_distribution
def test_the_production_sampler_draws_the_claimed_distribution(
    noise: NoiseFamily, scale: int
) -> None:
    assert fits(drawn(noise, Fraction(scale)), noise, Fraction(scale))


@each_distribution
@pytest.mark.parametrize("off", [0.95, 1.05])
def test_a_scale_that_is_five_percent_off_is_rejected(
    noise: NoiseFamily, scale: int, off: float
) -> None:
    assert not fits(drawn(noise, Fraction(scale)), noise, Fraction(scale * off))


@each_distribution
def test_a_shift_by_one_count_is_rejected(noise: NoiseFamily, scale: int) -> None:
    assert not fits(drawn(noise, Fraction(scale)) + 1, noise, Fraction(scale))


@each_distribution
def test_noise_of_even_values_only_is_rejected(noise: NoiseFamily, scale: int) -> None:
    assert not fits(drawn(noise, Fraction(scale)) // 2 * 2, noise, Fraction(scale))


@each_distribution
def test_draws_that_are_used_ten_times_are_rejected(noise: NoiseFamily, scale: int) -> None:
    """Ten batches of their own, each used ten times: more than half are rejected.

    One escapes with a chance of up to 3e-3, however many draws (ten times the chi-squared of few
    bins may still be small); five of ten do with 3e-11.
    """
    batches = drawn(noise, Fraction(scale)).reshape(REUSES, -1)
    rejected = sum(not fits(np.repeat(batch, 10), noise, Fraction(scale)) for batch in batches)
    assert rejected > REUSES / 2


@each_distribution
def test_draws_that_are_used_twice_in_a_row_are_seen_by_their_repeats(
    noise: NoiseFamily, scale: int
) -> None:
    fresh = drawn(noise, Fraction(scale))
    _, mass = noise_pmf(noise, Fraction(scale), reach=20 * scale)
    by_chance = float(np.sum(mass**2))
    spread = 10 * float(np.sqrt(by_chance / DRAWS))
    assert abs(repeats(fresh) - by_chance) < spread
    assert repeats(np.repeat(fresh[: DRAWS // 2], 2)) > by_chance + spread


@pytest.mark.parametrize(("noise", "scale"), [(LAPLACE, Fraction(7, 2)), (GAUSSIAN, Fraction(3))])
def test_the_seeded_oracle_draws_the_claimed_distribution(
    exact_sampler: Callable[..., NDArray[np.int64]], noise: NoiseFamily, scale: Fraction
) -> None:
    draws = exact_sampler(noise, scale, 30_000)
    assert fits(draws, noise, scale)
    assert not fits(draws, noise, scale * Fraction(6, 5))


@each_distribution
def test_the_stated_variance_is_that_of_the_draws(noise: NoiseFamily, scale: int) -> None:
    spread = float(np.var(drawn(noise, Fraction(scale))))
    assert spread == pytest.approx(noise_variance(noise, Fraction(scale)), rel=0.06)
