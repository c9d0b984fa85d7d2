"""The stated interval holds the threshold of tables like the release of 2016 as often as said.

Tables are drawn by the source's own histogram (Laplace noise of scale 2/epsilon on occupied cells,
threshold at 1 + 2 ln(2/delta)/epsilon, rounded afterwards) over made-up modes from a handful of
stops to the whole bus network.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm, poisson

from turnstile_lab.baselines import naive_laplace, uniforms
from turnstile_lab.natural_edge import lowest_start
from turnstile_lab.threshold import recover_threshold

DELTA = 1 / 8_000_000
WEEK = np.array([0.97, 1.0, 1.02, 1.03, 1.0, 0.62, 0.52])
Rates = Callable[[str], np.ndarray]


def cut_at(epsilon: float) -> float:
    """The paper's threshold: 34.18 and 17.59."""
    return 1 + 2 * math.log(2 / DELTA) / epsilon


def released(label: str, rates: np.ndarray, epsilon: float) -> np.ndarray:
    """The source's thresholded histogram of Poisson counts."""
    raw = poisson.ppf(uniforms(f"raw {label}", rates.size), rates.ravel())
    raw = raw[raw > 0]
    noisy = raw + naive_laplace(f"noise {label}", raw.size, 2 / epsilon)
    return np.rint(noisy[noisy > cut_at(epsilon)]).astype(np.int64)


def sizes(label: str, places: int, trips: float, spread: float) -> np.ndarray:
    """Daily trips of each place, lognormal."""
    weights = np.exp(spread * norm.ppf(uniforms(f"sizes {label}", places)))
    return trips * weights / weights.sum()


def profile(shift: float = 0.0) -> np.ndarray:
    """Share of a day's trips in each quarter of an hour."""
    hours = np.arange(96) / 4 - shift
    peaks = np.exp(-((hours - 8) ** 2) / 3) + np.exp(-((hours - 17.5) ** 2) / 5)
    rates = peaks + 0.25 * ((hours > 5) & (hours < 24)) + 0.004
    return np.asarray(rates / rates.sum())


def by_time_and_place(places: int, trips: float, spread: float) -> Rates:
    """Rates of a week by day, place and quarter of an hour."""

    def rates(label: str) -> np.ndarray:
        place_sizes = sizes(label, places, trips, spread)
        shifts = np.floor(6 * uniforms(f"shifts {label}", places)) / 4
        shapes = np.array([profile(shift) for shift in shifts])
        return np.asarray(WEEK[:, None, None] * (place_sizes[:, None] * shapes))

    return rates


def by_place(places: int, trips: float, spread: float, floor: float = 0.0) -> Rates:
    """Rates of a week by day and place; no place is smaller than the floor."""
    return lambda label: WEEK[:, None] * (floor + sizes(label, places, trips, spread))


def by_time(trips: float) -> Rates:
    """Rates of a week by day and quarter of an hour."""
    return lambda label: (trips + 0 * len(label)) * WEEK[:, None] * profile()


# name: rates, epsilon, share of tables that must be located, and may be at most
TABLES: dict[str, tuple[Rates, float, float, float]] = {
    "ferry, time and place": (by_time_and_place(38, 4e4, 1.3), 2, 0.99, 1),
    "light rail, time and place": (by_time_and_place(23, 2.6e4, 0.8), 2, 0.99, 1),
    "small ferry, time and place": (by_time_and_place(12, 6e3, 0.8), 2, 0.3, 1),
    # 230 of 300 at odds of 1,000 to 1, which are asked for; at 100 to 1 it was more than 9 in 10,
    # 40 of 40 against 27: so few of its numbers are near the smallest that odds do not go further
    "bus, place": (by_place(500, 9e5, 2.0), 1, 0.75, 1),
    "train, place": (by_place(300, 1.1e6, 1.6), 1, 0, 1),
    "ferry, place": (by_place(38, 4e4, 1.5), 1, 0, 1),
    "busy train, place": (by_place(178, 1.1e6, 1.2), 1, 0, 0.04),
    "every station above 1500, place": (by_place(178, 1.1e6, 1.0, 1500), 1, 0, 0.04),
    "light rail, place": (by_place(23, 2.6e4, 0.6), 1, 0, 0.04),
    "train, time": (by_time(1.1e6), 1, 0, 1),
    "ferry, time": (by_time(4e4), 1, 0, 1),
    "light rail, time": (by_time(2.6e4), 1, 0, 1),
}


def tried(name: str, seeds: int) -> tuple[int, int]:
    """How many intervals of a table miss the declared threshold, and how many have a lower end."""
    rates, epsilon, _, _ = TABLES[name]
    missed = located = 0
    for seed in range(seeds):
        label = f"{name} {seed}"
        counts = released(label, rates(label), epsilon)
        estimate = recover_threshold(counts)
        assert estimate is not None
        missed += not estimate.low <= cut_at(epsilon) <= estimate.high
        located += estimate.is_located
    return missed, located


def missed_at_most(seeds: int) -> int:
    """So many misses at 99 % have a chance of one in a thousand for one table."""
    from scipy.stats import binom

    return int(binom.isf(1e-3, seeds, 0.01))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_release_is_read_right(name: str) -> None:
    missed, located = tried(name, 8)
    _, _, least, most = TABLES[name]
    assert missed <= missed_at_most(8)
    assert 8 * least - 1 <= located <= max(1, 8 * most)


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_the_interval_holds_the_threshold_as_often_as_it_says(name: str) -> None:
    seeds = 300
    missed, located = tried(name, seeds)
    _, _, least, most = TABLES[name]
    assert missed <= missed_at_most(seeds)
    assert seeds * least <= located <= seeds * most


def test_the_paper_s_thresholds() -> None:
    assert cut_at(1) == pytest.approx(34.176, abs=1e-3)
    assert cut_at(2) == pytest.approx(17.588, abs=1e-3)


def test_a_sharp_end_is_a_threshold_and_a_blurred_one_is_none() -> None:
    """The same busy places, once threshold in their midst, once not threshold at all."""
    rates = np.repeat(np.linspace(40, 120, 60), 7)
    whole = poisson.ppf(uniforms("blurred", rates.size), rates).astype(np.int64)
    assert lowest_start(whole, last=3 * int(whole.min()), loss_most=math.log(100)) == 1
    threshold = whole[whole >= 60]
    assert 55 <= lowest_start(threshold, last=180, loss_most=math.log(100)) <= 60
