"""Error of the published tables at equal privacy: the source's design, deriving, and ours.

One side (tap-on) of one mode and day: a made-up partition (two peaks, a thin night service, 40
lognormal places), a Monday of trains of the demo's generator, and with `--opal-release FOLDER` the
trains of the published release of 2016, its counts taken as if they were raw. Every noisy number
comes from the product's own mechanisms, scales and thresholds from the plans of the Opal
programmes; the loss of each design is printed from its own draw events. Errors are those of the
noise: trips beyond a card-day's bound are not simulated (`turnstile report` measures those). Run:
`make bench-utility`.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.accounts import Loss, losses
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity
from turnstile.privacy.guarantees import Zcdp, epsilon_tight, rho_for
from turnstile.privacy.mechanisms import dense, stability_histogram
from turnstile.privacy.mechanisms.bounded_mean import mean_sd_kmh, sum_sensitivity
from turnstile.privacy.mechanisms.calibration import gaussian_scale, laplace_scale
from turnstile.privacy.mechanisms.thresholds import source_parameters
from turnstile.privacy.noise import noise_variance
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
MINUTES_PER_SLOT = 15
GENERATED_ROWS = 1_500_000  # of a week, so that a day of trains has more than 100,000 trips
TRAIN, MONDAY = 3, 0
REPEATS = 8
INCLUDE = Path(__file__).parents[1] / "include"
WEEK = ServiceWeek(2016, 30)
TABLE_OF = {"cells": "on_time_location", "time": "on_time", "location": "on_location"}
DELTA = Fraction(75, 10**8)  # 7.5e-7, the source's for one release
TABLE_DELTA = Fraction(1, 8_000_000)
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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


def made_up(number: int) -> Ints:
    """Counts of so many trips over two peaks, a thin night service and lognormal places."""
    hours = np.arange(SLOTS) / 4
    by_day = np.where((hours > NIGHT_ENDS) & (hours < NIGHT_BEGINS), 0.08, 0.013)
    slots = np.exp(-((hours - 8.25) ** 2) / 2.5) + np.exp(-((hours - 17.5) ** 2) / 4) + by_day
    dice = np.random.default_rng(20160725)  # noqa: TID251 - made-up data, not noise
    places = np.exp(dice.normal(0, 1.2, PLACES))
    chances = np.outer(slots / slots.sum(), places / places.sum())
    return dice.multinomial(number, chances.ravel()).reshape(SLOTS, PLACES).astype(np.int64)


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
    """RMSE of cells, time, location; mean error of sums of cells by place; share of mass lost."""

    def rmse(name: str) -> float:
        return float(np.sqrt(np.mean((getattr(published, name) - getattr(exact, name)) ** 2)))

    sums = float(np.mean(np.abs(published.cells.sum(axis=0) - exact.location)))
    lost = 1 - float(published.cells.sum() / exact.cells.sum())
    return rmse("cells"), rmse("time"), rmse("location"), sums, abs(lost)


def mean_errors(exact: Tables, publish: Callable[[], Tables]) -> tuple[float, ...]:
    """Errors of a design, averaged over fresh draws."""
    return tuple(np.mean([errors(exact, publish()) for _ in range(REPEATS)], axis=0))


DESIGNS: tuple[tuple[str, Callable[[Tables], tuple[Tables, list[DrawEvent]]]], ...] = (
    ("opal_2017: thresholded", source),
    ("thresholded, then derive", derived),
    ("opal_trip: full domain, least squares", ours),
    ("opal_trip, presentation tables", presented),
)


def trip_errors(cells: Ints) -> dict[str, tuple[float, ...]]:
    """Errors of every design for the trip unit."""
    exact = exact_tables(cells)
    return {
        name: mean_errors(exact, lambda design=design: design(exact)[0])  # type: ignore[misc]
        for name, design in DESIGNS
    }


def trip_rows(label: str, cells: Ints) -> Iterator[str]:
    """Lines of the comparison for the trip unit."""
    losses_of = {name: loss_text(design(exact_tables(cells))[1]) for name, design in DESIGNS}
    for name, (cell, time, location, sums, lost) in trip_errors(cells).items():
        yield (
            f"| {label} | {name} | {losses_of[name]} | {cell:.2f} | {time:.2f} | "
            f"{location:.2f} | {sums:.1f} | {lost:.2%} |"
        )


def card_errors(bound: int) -> dict[str, tuple[float, ...]]:
    """Errors for a card-day of at most k trips, both sides together (8, 7.5e-7) replace-one."""
    exact = exact_tables(made_up(20_000))
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
    designs: dict[str, Callable[[], Tables]] = {
        "source's split, full domain, as drawn": lambda: raw(exact, split),
        "same, least squares": lambda: reconciled(exact, split),
        "opal: Gaussian, once in finest cells, least squares": lambda: reconciled(exact, finest),
        "Gaussian, once in every table, least squares": lambda: reconciled(exact, every),
    }
    return {name: mean_errors(exact, publish) for name, publish in designs.items()}


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


def _print_trips(title: str, partitions: dict[str, Ints]) -> None:
    """Print the comparison for the trip unit on some partitions."""
    print(f"\n## {title}\n")
    print("| trips | design | (epsilon, delta) | cell | time | location | sums | mass lost |")
    print("|---|---|---|---|---|---|---|---|")
    for label, cells in partitions.items():
        print(*trip_rows(label, cells), sep="\n")


def main() -> None:
    """Print the comparisons."""
    parser = argparse.ArgumentParser(description="error of the published tables at equal privacy")
    parser.add_argument("--opal-release", type=Path, help="folder of the published release of 2016")
    folder = parser.parse_args().opal_release
    print("# One trip, replace-one, one side, equal budget (RMSE)")
    sizes = (3_000, 20_000, 100_000)
    _print_trips("made-up partition", {f"{n:,}": made_up(n) for n in sizes})
    _print_trips("a generated Monday of trains", {f"{n:,}": generated_trips(n) for n in sizes})
    if folder is None:
        print("no folder of the published release was given (--opal-release)", file=sys.stderr)
    else:
        days = {f"{day}: {cells.sum():,}": cells for day, cells in released(folder).items()}
        _print_trips("trains of the published release, as if it were raw", days)
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
