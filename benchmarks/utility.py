"""Error of the published tables at equal privacy: the source's design, deriving, and ours.

One side (tap-on) of one mode and day: 96 slots by 40 places, made-up trips with two peaks and
lognormal places. Every noisy number comes from the product's own mechanisms; the loss of each
design is printed from its own draw events. Errors are those of the noise: trips beyond a card-day's
bound are not simulated, and no card-day has two trips in one slot or place. Run: `make
bench-utility`.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.accounts import Loss, losses
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity
from turnstile.privacy.guarantees import Zcdp, epsilon_tight, rho_for
from turnstile.privacy.mechanisms import dense, stability_histogram
from turnstile.privacy.mechanisms.bounded_mean import mean_sd_kmh, sum_sensitivity
from turnstile.privacy.mechanisms.calibration import gaussian_scale, laplace_scale
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.presentation import presentation_of
from turnstile.privacy.reconciliation import Measured, Partition, reconcile
from turnstile.privacy.sensitivities import cells_at_most, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit

SLOTS, PLACES = 96, 40
REPEATS = 4
FIRST_SERVICE_HOUR = 5
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


def trips(number: int) -> Ints:
    """Counts of made-up trips: two peaks a day, lognormal places; the same every time."""
    dice = random.Random(20160725)  # noqa: S311 - made-up data, not noise
    hours = [slot / 4 for slot in range(SLOTS)]
    peaks = [
        math.exp(-((h - 8.25) ** 2) / 2.5)
        + math.exp(-((h - 17.5) ** 2) / 4)
        + 0.08 * (h > FIRST_SERVICE_HOUR)
        for h in hours
    ]
    places = [math.exp(dice.gauss(0, 1.2)) for _ in range(PLACES)]
    slots = dice.choices(range(SLOTS), peaks, k=number)
    counted = Counter(zip(slots, dice.choices(range(PLACES), places, k=number), strict=True))
    cells = np.zeros((SLOTS, PLACES), dtype=np.int64)
    for (slot, place), count in counted.items():
        cells[slot, place] = count
    return cells


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
    """The source: three thresholded histograms, budgets 1, 1, 2."""
    budgets = (("cells", 2), ("time", 1), ("location", 1))
    drawn, events = {}, []
    for name, epsilon in budgets:
        found = stability_histogram.source_parameters(Fraction(epsilon), TABLE_DELTA)
        one = event(name, LAPLACE, found.scale, records_at_most(1), found.threshold)
        drawn[name] = stability_histogram.draw(one, whole(getattr(exact, name))).astype(float)
        events.append(one)
    return Tables(**drawn), events


def derived(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """The assessment's advice: one thresholded table of budget 4, the coarser ones from it."""
    found = stability_histogram.source_parameters(Fraction(4), 3 * TABLE_DELTA)
    one = event("cells", LAPLACE, found.scale, records_at_most(1), found.threshold)
    cells = stability_histogram.draw(one, whole(exact.cells)).astype(float)
    return Tables(cells, cells.sum(axis=1), cells.sum(axis=0)), [one]


def ours(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """Full public domain, three tables with the source's budgets, least squares."""
    unit = records_at_most(1)
    shares = {"cells": Fraction(1), "time": Fraction(1, 2), "location": Fraction(1, 2)}
    events = [
        event(name, LAPLACE, laplace_scale(share, unit.l1), unit) for name, share in shares.items()
    ]
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
    return Partition((SLOTS, PLACES), measured["cells"], measured["time"], measured["location"])


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


def trip_rows(number: int) -> Iterator[str]:
    """Lines of the comparison for the trip unit."""
    exact = exact_tables(trips(number))
    designs = (
        ("source: thresholded", source),
        ("thresholded, then derive", derived),
        ("ours: full domain, least squares", ours),
        ("ours, presentation tables", presented),
    )
    for name, design in designs:
        _, events = design(exact)
        cell, time, location, sums, lost = mean_errors(exact, lambda: design(exact)[0])  # noqa: B023
        yield (
            f"| {number:>7,} | {name} | {loss_text(events)} | {cell:.2f} | {time:.2f} | "
            f"{location:.2f} | {sums:.1f} | {lost:.2%} |"
        )


def card_rows(bound: int) -> Iterator[str]:
    """Lines of the comparison for a card-day of at most k trips, one side of (8, 7.5e-7)."""
    exact = exact_tables(trips(20_000))
    names = ("cells", "time", "location")
    any_cells, once = records_at_most(bound), cells_at_most(bound)
    budgets = {"cells": Fraction(1), "time": Fraction(1, 2), "location": Fraction(1, 2)}
    split = [event(n, LAPLACE, laplace_scale(budgets[n], bound), any_cells) for n in names]
    # Both sides together meet epsilon 8 at 7.5e-7; a side has half of rho (replace: 2 rho).
    rho = rho_for(Fraction(8), DELTA) / 2 / 6
    curved = [event(n, GAUSSIAN, gaussian_scale(rho, once.l2_squared), once) for n in names]
    designs = (
        ("source's split, full domain, as drawn", lambda: raw(exact, split)),
        ("same, least squares", lambda: reconciled(exact, split)),
        ("Gaussian once a cell, least squares", lambda: reconciled(exact, curved)),
    )
    for name, publish in designs:
        cell, time, location, *_ = mean_errors(exact, publish)
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


def main() -> None:
    """Print the three comparisons."""
    print("## One trip, replace-one, one side, equal budget (RMSE)\n")
    print("| trips | design | (epsilon, delta) | cell | time | location | sums | mass lost |")
    print("|---|---|---|---|---|---|---|---|")
    for number in (3_000, 20_000, 100_000):
        print(*trip_rows(number), sep="\n")
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
