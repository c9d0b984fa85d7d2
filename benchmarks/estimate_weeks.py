"""Weeks of train tap-ons whose truth is known, as the estimates read them: the real table, varied.

The published train table of a week of 2016 is taken as rates, thinned to a share of its taps. Made
weeks vary about it: stations by 5 %, days by 4 %, slots by 3 %, counts as counts do. The release
left out cells below 18; where intervals are judged, that hole is filled by the product of the
station's and the slot's shares, because no real table has it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from opal_partitions import released

from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    PublicDomain,
    public_domain,
)
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec
from turnstile.release.numbers import Numbers

Floats = NDArray[np.float64]
SLOT, PLACE = "tap_on_slot", "tap_on_location"
CELLS = TableSpec("on_time_location", (SLOT, PLACE))
TIME, LOCATION = TableSpec("on_time", (SLOT,)), TableSpec("on_location", (PLACE,))
FIRST_DAY = date(2016, 7, 25)
WOBBLE = (0.05, 0.04, 0.03)  # of stations, days, slots
CUT = 17
FIRST_TRAIN, LAST_TRAIN = 5, 23  # hours
Random = np.random.Generator  # noqa: TID251 - made-up data, not noise


@dataclass(frozen=True)
class Noise:
    """Standard deviations of cells and of marginals; marginals None if they are not drawn."""

    cells: float
    marginals: float | None


OPAL = Noise(9.8, 33.9)  # opal: rho 1/32 a cell table, 1/64 a marginal, six trips
YEARLY = Noise(32.3, None)  # rho 1 a card and year, all on the cells


def dice(seed: int) -> Random:
    """Return coins for made-up data; the same every time."""
    return np.random.default_rng(seed)  # noqa: TID251 - made-up data, not noise


def real_week(folder: Path) -> Floats:
    """Counts of the published train table, shape (places, days, slots)."""
    days = [day.T for day in released(folder).values()]
    return np.ascontiguousarray(np.stack(days, axis=1), dtype=np.float64)


def by_hour(counts: Floats) -> Floats:
    """The same with slots of an hour."""
    return counts.reshape(*counts.shape[:2], 24, -1).sum(axis=3)


def metro_week(file: Path, first_day: str, days: int = 7) -> Floats:
    """Counts of stations by hour, from a gzipped table of Date;Hour;Station;Ridership."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as rows:
        taps = list(csv.DictReader(rows, delimiter=";"))
    dates = sorted({row["Date"] for row in taps})
    kept = dates[dates.index(first_day) :][:days]
    stations = sorted({row["Station"] for row in taps})
    counts = np.zeros((len(stations), days, 24))
    for row in taps:
        if row["Date"] in kept:
            cell = stations.index(row["Station"]), kept.index(row["Date"]), int(row["Hour"])
            counts[cell] += float(row["Ridership"] or 0)
    return counts


def filled(counts: Floats) -> Floats:
    """The same without the hole between 0 and 18."""
    of_days = counts.sum(axis=(0, 2), keepdims=True)
    expected = counts.sum(axis=2, keepdims=True) * counts.sum(axis=0, keepdims=True) / of_days
    return np.where(counts == 0, np.minimum(0.6 * expected, CUT), counts)


def made_week(coins: Random, rates: Floats) -> Floats:
    """Counts of a week that varies about rates, shape (places, days, slots)."""
    varied = rates
    for axis, wobble in enumerate(WOBBLE):
        shape = [1, 1, 1]
        shape[axis] = rates.shape[axis]
        varied = varied * np.exp(wobble * coins.standard_normal(shape))
    return coins.poisson(varied).astype(np.float64)


def domain_of(shape: tuple[int, int, int]) -> PublicDomain:
    """Return public cells of so many places and slots."""
    places, _, slots = shape
    minutes = [24 * 60 * n // slots for n in range(slots)]
    labels = tuple(f"{m // 60:02}:{m % 60:02}" for m in minutes)
    names = tuple(f"station {n:03}" for n in range(places))
    return public_domain(
        "made", (ModeCells("train", (Dimension(SLOT, labels), Dimension(PLACE, names))),)
    )


def drawn_numbers(  # noqa: PLR0913 - what a week is
    coins: Random,
    counts: Floats,
    noise: Noise,
    domain: PublicDomain,
    *,
    week: int = 0,
    gaps: Sequence[int] = (),
) -> Numbers:
    """Return a week's noisy numbers; a rounded normal deviate stands in for the discrete one."""
    days = tuple(FIRST_DAY + timedelta(days=7 * week + n) for n in range(counts.shape[1]))

    def drawn(values: Floats, deviation: float) -> dict[date | None, NDArray[np.int64]]:
        noisy = np.rint(values + deviation * coins.standard_normal(values.shape)).astype(np.int64)
        return {day: noisy[n].ravel() for n, day in enumerate(days)}

    vectors = {(CELLS.name, "count"): drawn(counts.transpose(1, 2, 0), noise.cells)}
    deviations = {(CELLS.name, "count"): noise.cells}
    if noise.marginals is not None:
        vectors[TIME.name, "count"] = drawn(counts.sum(axis=0), noise.marginals)
        vectors[LOCATION.name, "count"] = drawn(counts.sum(axis=2).T, noise.marginals)
        deviations |= {(t.name, "count"): noise.marginals for t in (TIME, LOCATION)}
    own_gaps = tuple(days[n] for n in gaps)
    return Numbers(f"made/{week}", domain.digest, days, own_gaps, vectors, deviations)


def week_of(  # noqa: PLR0913 - what a week is
    coins: Random,
    truth: Floats,
    earlier: Sequence[Floats],
    noise: Noise,
    *,
    earlier_noise: Sequence[Noise] = (),
    earlier_gaps: Sequence[Sequence[int]] = (),
    regions: Sequence[str] = (),
) -> WeekToEstimate:
    """Return everything that the estimates of a week are made from.

    Args:
        coins: for the noise.
        truth: counts of the week, shape (places, days, slots).
        earlier: counts of earlier weeks, latest first.
        noise: of this week.
        earlier_noise: of each earlier week; empty if all have this week's.
        earlier_gaps: of each earlier week, days without input; empty if there are none.
        regions: of each place; empty if there are none.
    """
    domain = domain_of(truth.shape)
    noises = earlier_noise or [noise] * len(earlier)
    gaps = earlier_gaps or [()] * len(earlier)
    before = tuple(
        drawn_numbers(coins, counts, past_noise, domain, week=-1 - n, gaps=gaps[n])
        for n, (counts, past_noise) in enumerate(zip(earlier, noises, strict=True))
    )
    tables = (CELLS,) if noise.marginals is None else (TIME, LOCATION, CELLS)
    (places,) = (axis.labels for axis in domain.dimensions("train") if axis.name == PLACE)
    of_place = dict(zip(places, regions, strict=True)) if regions else {}
    minutes = 24 * 60 // truth.shape[2]
    promise = Promise(RowShape.TRIPS, tables, minutes, shares_total=False, regions=of_place)
    numbers = drawn_numbers(coins, truth, noise, domain)
    drawn = numbers.vectors[CELLS.name, "count"]
    seed = hashlib.sha256(b"".join(drawn[day].tobytes() for day in numbers.days)).hexdigest()
    return WeekToEstimate(promise, domain, numbers, seed, before)


def made_rates(places: int = 100, days: int = 7, slots: int = 96) -> Floats:
    """Rates of made-up stations, shape (places, days, slots): commuters out, in, and the rest."""
    hours = np.arange(slots) * 24 / slots
    morning = np.exp(-(((hours - 8.0) / 0.9) ** 2) / 2)
    evening = np.exp(-(((hours - 17.5) / 1.2) ** 2) / 2)
    rest = np.where((hours > FIRST_TRAIN) & (hours < LAST_TRAIN), 0.25, 0.02)
    ranks = (np.arange(places) + 0.5) / places
    size = np.exp(1.3 * np.array([NormalDist().inv_cdf(rank) for rank in ranks]))
    dormitory = (np.arange(places) * 0.618) % 1
    weekday = np.arange(days) % 7 < 5  # noqa: PLR2004 - Monday to Friday
    peaks = (
        dormitory[:, None, None] * morning + (1 - dormitory)[:, None, None] * evening
    ) * np.where(weekday, 1.0, 0.25)[None, :, None]
    return 12 * size[:, None, None] * (peaks + rest * np.where(weekday, 1.0, 0.8)[None, :, None])
