"""Error of the published tables at equal privacy: the source's design, deriving, and ours.

One side (tap-on) of one mode and day: made-up days of the reference partition (below), a Monday of
trains of the demo's generator, and with `--opal-release FOLDER` the trains of the published release
of 2016, its counts taken as if they were raw: whole days, and a Monday thinned to the same sizes.
Every noisy number comes from the product's own mechanisms, scales and thresholds from the plans of
the Opal programmes; the loss of each design is printed from its own draw events. How many times
smaller an error is, is exact expectation over the noise, without a draw. Errors are those of the
noise: trips beyond a card-day's bound are not simulated (`turnstile report` measures those). Run:
`make bench-utility`.

The reference partition has two peaks and 40 lognormal places. Its six parameters are fitted, in
expectation, to figures of the source's design that were found before this one was built (RMSE of
cells, time and location, error of sums, mass lost; at 3,000 trips 1.88, 12.4, 12.8, 68.7, 92 %; at
20,000 4.48, 6.91, 5.67, 229, 46 %), each met within 4 %. With them stood the aim: at 20,000 trips,
cells at least 3 times, time and location at least 2 times better, less than 0.1 % of the mass lost.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.accounts import Loss, losses
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity
from turnstile.privacy.guarantees import Zcdp, epsilon_tight, rho_for
from turnstile.privacy.mechanisms import dense, stability_histogram
from turnstile.privacy.mechanisms.bounded_mean import mean_sd_kmh, sum_sensitivity
from turnstile.privacy.mechanisms.calibration import gaussian_scale, laplace_scale
from turnstile.privacy.mechanisms.thresholds import source_parameters
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.presentation import presentation_of
from turnstile.privacy.reconciliation import Measured, Partition, reconcile
from turnstile.privacy.sensitivities import cells_at_most, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.domain_files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.samples import opal

SLOTS, PLACES = 96, 40
NIGHT_ENDS, NIGHT_BEGINS = 5, 22  # hours
SIZES = (3_000, 20_000, 100_000)
AIMS = {"cell": 3, "time": 2, "location": 2}  # times smaller, at 20,000 trips
MINUTES_PER_SLOT = 15
GENERATED_ROWS = 1_500_000  # of a week, so that a day of trains has more than 100,000 trips
TRAIN, MONDAY = 3, 0
REFERENCE_DAYS = 60  # one day's places may happen to lie beside the cut, or all far from it
LEAST_DRAWS = 8
INCLUDE = Path(__file__).parents[1] / "include"
WEEK = ServiceWeek(2016, 30)
TABLE_OF = {"cells": "on_time_location", "time": "on_time", "location": "on_location"}
DELTA = Fraction(75, 10**8)  # 7.5e-7, the source's for one release
TABLE_DELTA = Fraction(1, 8_000_000)
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Days = tuple[Ints, ...]  # of one shape


@dataclass(frozen=True)
class Tables:
    """Cells, row sums (time) and column sums (location) as published."""

    cells: Floats
    time: Floats
    location: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Slots and places."""
        return self.time.size, self.location.size


def reference(number: int) -> Days:
    """Days of so many trips over two peaks, a thin night service and lognormal places."""
    hours = np.arange(SLOTS) / 4
    by_day = np.where((hours > NIGHT_ENDS) & (hours < NIGHT_BEGINS), 0.13, 0.015)
    morning = np.exp(-(((hours - 8.25) / 0.8) ** 2) / 2)
    evening = 0.85 * np.exp(-(((hours - 17.5) / 1.1) ** 2) / 2)
    ranks = (np.arange(PLACES) + 0.5) / PLACES
    places = np.exp(1.16 * np.array([NormalDist().inv_cdf(rank) for rank in ranks]))
    return thinned(np.outer(morning + evening + by_day, places), number, REFERENCE_DAYS)


def thinned(cells: NDArray[np.generic], number: int, days: int = 1) -> Days:
    """Days of so many trips in the proportions of a table; the same every time."""
    chances = cells.astype(float).ravel()
    dice = np.random.default_rng(20160725)  # noqa: TID251 - made-up data, not noise
    drawn = dice.multinomial(number, chances / chances.sum(), size=days)
    return tuple(day.reshape(cells.shape).astype(np.int64) for day in drawn)


@cache
def generated() -> tuple[Ints, Ints, int]:
    """Slots and places of the generated tap-ons of a Monday's trains, and the number of places."""
    places = opal.read_places(INCLUDE / "domains/opal_locations.csv")
    rows = opal.opal_rows(WEEK, GENERATED_ROWS, 1, places=places, dirt=frozenset())
    chosen = (rows["mode"] == TRAIN) & (rows["day"] == MONDAY)
    first, end = places.first[TRAIN], places.first[TRAIN + 1]
    slots = rows["on_minute"][chosen] // MINUTES_PER_SLOT
    return slots, rows["on_place"][chosen] - first, end - first


def generated_trips(number: int) -> Ints:
    """Counts of so many generated trips; the same every time."""
    slots, places, width = generated()
    picked = np.random.default_rng(20160725).permutation(slots.size)[:number]  # noqa: TID251 - made-up data
    cells = np.zeros((SLOTS, width), dtype=np.int64)
    np.add.at(cells, (slots[picked], places[picked]), 1)
    return cells


def released(folder: Path) -> dict[str, Ints]:
    """Counts of each day of the published train table, taken as if they were raw."""
    (path,) = folder.glob("time-loc_train_on*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if ":" in row["time"]]
    stations = {name: n for n, name in enumerate(sorted({row["loc"] for row in rows}))}
    days: dict[str, Ints] = {}
    for row in rows:
        hour, minute = map(int, row["time"].split(":"))
        slot = (60 * hour + minute) // MINUTES_PER_SLOT
        cells = days.setdefault(row["date"], np.zeros((SLOTS, len(stations)), dtype=np.int64))
        cells[slot, stations[row["loc"]]] += int(row["count"])
    return dict(sorted(days.items()))


@cache
def planned(programme: str) -> dict[str, DrawEvent]:
    """Return the draws of one day of a programme, by table."""
    spec = load_programme(programme, INCLUDE)
    events = make_plan(spec, load_domain(spec, INCLUDE), WEEK).events
    return {one.table: one for one in events}


def side_events(programme: str) -> list[DrawEvent]:
    """Return the tap-on draws of a programme under the names of this benchmark."""
    found = [(name, planned(programme)[table]) for name, table in TABLE_OF.items()]
    unit = records_at_most(1)
    return [event(name, one.noise, one.scale, unit, one.threshold) for name, one in found]


def event(
    table: str, noise: NoiseFamily, scale: Fraction, unit: Sensitivity, threshold: int | None = None
) -> DrawEvent:
    """Describe a draw of one table of the side."""
    blocks = (Block(date(2016, 7, 25), "bus"),)
    units = ((ProtectionUnit.TRIP, unit),)
    return DrawEvent(table, "count", noise, scale, blocks, units, threshold=threshold)


def loss_text(events: list[DrawEvent]) -> str:
    """State what a design costs its unit, replace-one, from its events."""
    (loss,) = losses(events).values()
    return replaced_text(loss)


def replaced_text(loss: Loss) -> str:
    """State a loss as (epsilon, delta) for replacing one unit."""
    if loss.epsilon is not None:
        return f"({float(2 * loss.epsilon):.3f}, {float(loss.delta):.1e})"
    assert loss.rho is not None  # noqa: S101 - every design here is bounded
    # Each unit counts at most once in a cell here: replacing it costs 2 rho.
    epsilon = epsilon_tight(Zcdp(loss.rho).replaced_counts(), DELTA / 2)
    return f"({float(epsilon or 0):.3f}, {float(DELTA / 2):.1e})"


def source(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """The source: three thresholded histograms, as `opal_2017` plans them."""
    events = side_events("opal_2017")
    drawn = {
        one.table: stability_histogram.draw(one, whole(getattr(exact, one.table))).astype(float)
        for one in events
    }
    return Tables(**drawn), events


def derived(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """The assessment's advice: one thresholded table of budget 4, the coarser ones from it."""
    found = source_parameters(Fraction(4), 3 * TABLE_DELTA)
    one = event("cells", LAPLACE, found.scale, records_at_most(1), found.threshold)
    cells = stability_histogram.draw(one, whole(exact.cells)).astype(float)
    return Tables(cells, cells.sum(axis=1), cells.sum(axis=0)), [one]


def ours(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """Full public domain and least squares, as `opal_trip` plans them."""
    events = side_events("opal_trip")
    return reconciled(exact, events), events


def presented(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """The presentation tables of the same design: what clipping costs."""
    _, events = ours(exact)
    shown = presentation_of(reconcile(partition(exact, events)))
    found = (shown.cells, shown.rows, shown.columns)
    return Tables(*(np.asarray(table, dtype=float) for table in found)), events


def partition(exact: Tables, events: list[DrawEvent]) -> Partition:
    """Draw every event on its exact table."""
    measured = {
        one.table: Measured(
            dense.draw(one, whole(getattr(exact, one.table))), noise_variance(one.noise, one.scale)
        )
        for one in events
    }
    return Partition(exact.shape, measured["cells"], measured["time"], measured["location"])


def reconciled(exact: Tables, events: list[DrawEvent]) -> Tables:
    """Draw and reconcile."""
    found = reconcile(partition(exact, events))
    tables = (found.cells, found.rows, found.columns)
    return Tables(*(np.asarray(table) for table in tables))


def raw(exact: Tables, events: list[DrawEvent]) -> Tables:
    """Draw and leave as it is."""
    found = partition(exact, events)
    tables = (found.cells, found.rows, found.columns)
    return Tables(*(table.values.astype(float) for table in tables if table is not None))


def whole(table: Floats) -> Ints:
    """Counts as int64."""
    return table.astype(np.int64)


def exact_tables(cells: Ints) -> Tables:
    """Cells and their marginals."""
    found = cells.astype(float)
    return Tables(found, found.sum(axis=1), found.sum(axis=0))


def errors(exact: Tables, published: Tables) -> tuple[float, ...]:
    """Mean squares of cells, time, location; mean error of sums by place; share of mass lost."""

    def square(name: str) -> float:
        return float(np.mean((getattr(published, name) - getattr(exact, name)) ** 2))

    sums = float(np.mean(np.abs(published.cells.sum(axis=0) - exact.location)))
    lost = 1 - float(published.cells.sum() / exact.cells.sum())
    return square("cells"), square("time"), square("location"), sums, abs(lost)


def mean_errors(days: Days, publish: Callable[[Tables], Tables]) -> tuple[float, ...]:
    """RMSE of cells, time, location; error of sums; mass lost: over days and fresh draws."""
    tables = [exact_tables(day) for day in days]
    draws = max(LEAST_DRAWS, len(tables))
    found = [errors(exact, publish(exact)) for exact in islice(cycle(tables), draws)]
    means = np.mean(found, axis=0)
    return (*np.sqrt(means[:3]), *means[3:])


def cut_law(counts: NDArray[np.generic], one: DrawEvent) -> tuple[float, float]:
    """Expected mean square of a thresholded table, and the share of its records left out."""
    if one.threshold is None:
        raise ValueError(f"{one.table} has no threshold")
    noise, chance = noise_pmf(one.noise, one.scale, reach=200)
    found, times = np.unique(counts.astype(np.int64), return_counts=True)
    shown = (found[:, None] > 0) & (found[:, None] + noise >= one.threshold)
    squares = np.where(shown, noise**2, found[:, None] ** 2) @ chance
    kept = (np.where(shown, found[:, None] + noise, 0) @ chance * times).sum()
    return float((squares * times).sum() / times.sum()), float(1 - kept / counts.sum())


def expected_of_source(days: Days) -> dict[str, float]:
    """Expected RMSE of each table of the thresholded design, and the mass lost from cells."""
    laws: dict[str, list[tuple[float, float]]] = {name: [] for name in TABLE_OF}
    for exact in map(exact_tables, days):
        for one in side_events("opal_2017"):
            laws[one.table].append(cut_law(getattr(exact, one.table), one))
    means = {name: np.mean(found, axis=0) for name, found in laws.items()}
    return {
        **{name: float(mean[0]) ** 0.5 for name, mean in means.items()},
        "lost": float(means["cells"][1]),
    }


def expected_of_ours(days: Days) -> dict[str, float]:
    """Expected RMSE of each table of the reconciled design: its noise, whatever the counts are."""
    variance = {one.table: noise_variance(one.noise, one.scale) for one in side_events("opal_trip")}
    zeros = exact_tables(days[0] * 0)
    tables = [Measured(whole(getattr(zeros, name)), variance[name]) for name in TABLE_OF]
    found = reconcile(Partition(zeros.shape, *tables))
    squares = (found.cell_variance, found.row_variance, found.column_variance)
    return {name: square**0.5 for name, square in zip(TABLE_OF, squares, strict=True)}


DESIGNS: tuple[tuple[str, Callable[[Tables], tuple[Tables, list[DrawEvent]]]], ...] = (
    ("opal_2017: thresholded", source),
    ("thresholded, then derive", derived),
    ("opal_trip: full domain, least squares", ours),
    ("opal_trip, presentation tables", presented),
)


def trip_errors(days: Days) -> dict[str, tuple[float, ...]]:
    """Errors of every design for the trip unit."""
    return {
        name: mean_errors(days, lambda exact, design=design: design(exact)[0])  # type: ignore[misc]
        for name, design in DESIGNS
    }


def trip_rows(label: str, days: Days) -> Iterator[str]:
    """Lines of the comparison for the trip unit."""
    losses_of = {name: loss_text(design(exact_tables(days[0]))[1]) for name, design in DESIGNS}
    for name, (cell, time, location, sums, lost) in trip_errors(days).items():
        yield (
            f"| {label} | {name} | {losses_of[name]} | {cell:.2f} | {time:.2f} | "
            f"{location:.2f} | {sums:.1f} | {lost:.2%} |"
        )
    theirs, own = expected_of_source(days), expected_of_ours(days)
    times = " | ".join(f"{theirs[name] / own[name]:.2f}" for name in TABLE_OF)
    yield f"| {label} | **opal_trip: times smaller, expected** | | {times} | | |"


def card_errors(bound: int) -> dict[str, tuple[float, ...]]:
    """Errors for a card-day of at most k trips, both sides together (8, 7.5e-7) replace-one."""
    days = reference(20_000)[:LEAST_DRAWS]  # dense noise is the same whatever is counted
    names = ("cells", "time", "location")
    any_cells, once = records_at_most(bound), cells_at_most(bound)
    budgets = {"cells": Fraction(1), "time": Fraction(1, 2), "location": Fraction(1, 2)}
    split = [event(n, LAPLACE, laplace_scale(budgets[n], bound), any_cells) for n in names]
    # Both sides together meet epsilon 8 at 7.5e-7; a side has half of rho (replace: 2 rho).
    rho = rho_for(Fraction(8), DELTA) / 2 / 6
    every = [event(n, GAUSSIAN, gaussian_scale(rho, once.l2_squared), once) for n in names]
    coarse = [
        event(n, GAUSSIAN, gaussian_scale(rho, any_cells.l2_squared), any_cells) for n in names[1:]
    ]
    finest = [every[0], *coarse]
    designs: dict[str, Callable[[Tables], Tables]] = {
        "source's split, full domain, as drawn": lambda exact: raw(exact, split),
        "same, least squares": lambda exact: reconciled(exact, split),
        "opal: Gaussian, once in finest cells, least squares": lambda e: reconciled(e, finest),
        "Gaussian, once in every table, least squares": lambda exact: reconciled(exact, every),
    }
    return {name: mean_errors(days, publish) for name, publish in designs.items()}


def card_rows(bound: int) -> Iterator[str]:
    """Lines of the comparison for a card-day of at most k trips."""
    for name, (cell, time, location, *_) in card_errors(bound).items():
        yield f"| {bound:>2} | {name} | {cell:.1f} | {time:.1f} | {location:.1f} |"


def speed_rows() -> Iterator[str]:
    """Error bars of the speed release at the source's figure, for a month (by formula)."""
    count, mean, days, clamp = 468, 20.0, 31, 65
    for epsilon, cells in (("15.232", 89), ("15.232", 20), ("4", 20), ("2", 20)):
        rho = rho_for(Fraction(epsilon), Fraction(1, 10**6))
        shares = (Fraction(45, 100), Fraction(15, 100), Fraction(40, 100))
        units = (sum_sensitivity(cells, clamp), cells_at_most(cells), cells_at_most(cells))
        sums, buses, over = (
            float(gaussian_scale(share * rho, unit.l2_squared))
            for share, unit in zip(shares, units, strict=True)
        )
        bar = mean_sd_kmh(
            np.array([float(count)]), np.array([mean]), clamp_kmh=clamp, scales=(sums, buses)
        )
        yield f"| {epsilon} | {cells} | {float(bar[0]):.2f} | {over / days:.2f} |"


def _print_trips(title: str, partitions: Mapping[str, Days]) -> None:
    """Print the comparison for the trip unit on some partitions, each of one day or several."""
    print(f"\n## {title}\n")
    print("| trips | design | (epsilon, delta) | cell | time | location | sums | mass lost |")
    print("|---|---|---|---|---|---|---|---|")
    for label, days in partitions.items():
        print(*trip_rows(label, days), sep="\n")


def main() -> None:
    """Print the comparisons."""
    parser = argparse.ArgumentParser(description="error of the published tables at equal privacy")
    parser.add_argument("--opal-release", type=Path, help="folder of the published release of 2016")
    folder = parser.parse_args().opal_release
    print("# One trip, replace-one, one side, equal budget (RMSE)")
    aims = ", ".join(f"{name} {times} times" for name, times in AIMS.items())
    print(f"\nAim at 20,000 trips: smaller by {aims}; less than 0.1 % of the mass lost.")
    _print_trips("reference partition", {f"{n:,}": reference(n) for n in SIZES})
    _print_trips("a generated Monday of trains", {f"{n:,}": (generated_trips(n),) for n in SIZES})
    if folder is None:
        print("no folder of the published release was given (--opal-release)", file=sys.stderr)
    else:
        whole_days = released(folder)
        days = {f"{day}: {cells.sum():,}": (cells,) for day, cells in whole_days.items()}
        _print_trips("trains of the published release, as if it were raw", days)
        monday = next(iter(whole_days.values()))
        _print_trips("its Monday, thinned", {f"{n:,}": thinned(monday, n) for n in SIZES})
    print("\n## One card-day of k trips, replace-one, both sides (8, 7.5e-7), one shown (RMSE)\n")
    print("| k | design | cell | time | location |\n|---|---|---|---|---|")
    for bound in (2, 4, 10, 20):
        print(*card_rows(bound), sep="\n")
    print(
        "\n## Speeds: 468 bus-days a cell and month, add/remove of a bus-day at delta 1e-6 (sd)\n"
    )
    print(
        "| epsilon | cells a bus-day | mean km/h | buses a day over the limit |\n|---|---|---|---|"
    )
    print(*speed_rows(), sep="\n")


if __name__ == "__main__":
    main()
