"""One made week beside its estimates and its truth, and how far apart they are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from estimate_weeks import CELLS, LOCATION, TIME, Floats, Noise, dice, made_week, week_of

from turnstile.estimates.trips.trip_estimates import Estimates, trip_estimates
from turnstile.estimates.trips.trip_weeks import taps_by_mode
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.programme.spec import TableSpec

SEED = 2016
TOTALS, TOTALS_SD = TableSpec("totals", ()), 657.0  # those of opal_year


@dataclass(frozen=True)
class Compared:
    """One made week, its truth by table, and its estimates."""

    week: WeekToEstimate
    truth: Mapping[str, Floats]
    found: Estimates
    cpu_s: float

    def column(self, table: str, name: str = "estimate") -> Floats:
        """Return one published column, shape (days, numbers)."""
        values = self.found.tables[table].column(name).to_numpy()
        return values.reshape(len(self.week.numbers.days), -1)

    def drawn(self, table: str) -> Floats:
        """Return a table as drawn, shape (days, numbers)."""
        return np.stack(list(self.week.numbers.vectors[table, "count"].values())).astype(float)

    @property
    def gain(self) -> float:
        """How many times less the RMSE of a cell is than that of clipped numbers."""
        truth = self.truth[CELLS.name]
        clipped = rmse(np.maximum(self.drawn(CELLS.name), 0) - truth)
        return clipped / rmse(self.column(CELLS.name) - truth)

    def relative_error(self, table: str) -> float:
        """Weighted relative error of a table, per cent."""
        return weighted_relative_error(self.column(table), self.truth[table])

    def coverage(self, table: str, level: int = 90) -> Floats:
        """Whether each interval that is shown holds the truth; not a number where none is shown."""
        low, high = self.column(table, f"low_{level}"), self.column(table, f"high_{level}")
        truth = self.truth[table]
        return np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))


def rmse(errors: Floats) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def weighted_relative_error(values: Floats, truth: Floats) -> float:
    """Sum of the errors' sizes over the sum of the truth, per cent."""
    return 100 * float(np.abs(values - truth).sum() / truth.sum())


def true_tables(counts: Floats, regions: Sequence[str] = ()) -> dict[str, Floats]:
    """Return the truth of every table, each shape (days, numbers), slots first."""
    places, days, slots = counts.shape
    hours = counts.reshape(places, days, 24, slots // 24).sum(axis=3)
    by_region = {}
    if regions:
        of_regions = [
            counts[np.array(regions) == region].sum(axis=0) for region in sorted({*regions})
        ]
        region_tables = true_tables(np.stack(of_regions))
        by_region = {
            f"{CELLS.name}_regions{grain}": region_tables[f"{CELLS.name}{grain}"]
            for grain in ("", "_hourly", "_daily")
        }
    return {
        CELLS.name: counts.transpose(1, 2, 0).reshape(days, -1),
        f"{CELLS.name}_hourly": hours.transpose(1, 2, 0).reshape(days, -1),
        TIME.name: counts.sum(axis=0),
        f"{CELLS.name}_daily": counts.sum(axis=2).T,
        LOCATION.name: counts.sum(axis=2).T,
        **by_region,
    }


def compared(
    rates: Floats,
    noise: Noise,
    earlier: Sequence[Floats],
    *,
    seed: int = SEED,
    regions: Sequence[str] = (),
) -> Compared:
    """Make a week about these rates after earlier ones about theirs, and estimate it."""
    coins = dice(seed)
    counts = made_week(coins, rates)
    before = [made_week(coins, past_rates) for past_rates in earlier]
    week = week_of(coins, counts, before, noise, regions=regions)
    started = time.process_time()
    estimates = trip_estimates(week)
    return Compared(week, true_tables(counts, regions), estimates, time.process_time() - started)


def with_own_totals(
    week: Compared, left_out: float, deviation: float = TOTALS_SD, *, seed: int = SEED
) -> Compared:
    """The same week with totals under a bound of their own, which leaves out a share of the trips.

    Args:
        week: without them.
        left_out: share of the trips.
        deviation: of the noise of a total.
        seed: of that noise.
    """
    numbers = week.week.numbers
    true = week.truth[CELLS.name].sum(axis=1) * (1 - left_out)
    drawn = np.rint(true + deviation * dice(seed).standard_normal(true.size)).astype(np.int64)
    of_days = {day: drawn[n : n + 1] for n, day in enumerate(numbers.days)}
    vectors = {**numbers.vectors, (TOTALS.name, "count"): of_days}
    deviations = {**numbers.deviations, (TOTALS.name, "count"): deviation}
    known = replace(numbers, vectors=vectors, deviations=deviations)
    own = replace(week.week, numbers=known, promise=replace(week.week.promise, totals=(TOTALS,)))
    return replace(week, week=own, found=trip_estimates(own))


def reconciled_errors(week: Compared) -> dict[str, float]:
    """Weighted relative errors of the unbiased tables, per cent."""
    errors = {CELLS.name: weighted_relative_error(week.drawn(CELLS.name), week.truth[CELLS.name])}
    (taps,) = taps_by_mode(week.week)
    slots, places = taps.numbers.slots, taps.numbers.places.T
    errors[TIME.name] = weighted_relative_error(slots, week.truth[TIME.name])
    errors[LOCATION.name] = weighted_relative_error(places, week.truth[LOCATION.name])
    return errors
