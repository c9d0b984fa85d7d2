"""Error of the published tables at equal privacy: the source's design, deriving, and ours.

One side (tap-on) of one mode and day: made-up days of the reference partition
(`opal_partitions.py`), a Monday of trains of the demo's generator, and with `--opal-release FOLDER`
the trains of the published release of 2016, its counts taken as if they were raw: whole days, and a
Monday thinned to the same sizes. Every noisy number comes from the product's own mechanisms, and
the loss of each design is printed from its own draw events. How many times smaller an error is, and
the errors for a card-day, are exact expectations over the noise, without a draw. Run:
`make bench-utility`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from opal_designs import (
    DESIGNS,
    TABLE_OF,
    card_errors,
    expected_of_ours,
    expected_of_source,
    loss_text,
)
from opal_partitions import (
    AIMS,
    PLACES,
    SIZES,
    SLOTS,
    Days,
    Tables,
    exact_tables,
    generated_trips,
    reference,
    released,
    thinned,
)

LEAST_DRAWS = 8


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
    draw_errors = [errors(exact, publish(exact)) for exact in islice(cycle(tables), draws)]
    means = np.mean(draw_errors, axis=0)
    return (*np.sqrt(means[:3]), *means[3:])


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
    theirs, ours = expected_of_source(days), expected_of_ours(days)
    times = " | ".join(f"{theirs[name] / ours[name]:.2f}" for name in TABLE_OF)
    yield f"| {label} | **opal_trip: times smaller, expected** | | {times} | | |"


def card_rows(bound: int) -> Iterator[str]:
    """Lines of the comparison for a card-day of at most k trips."""
    for name, table_errors in card_errors((SLOTS, PLACES), bound).items():
        figures = " | ".join(f"{error:.1f}" for error in table_errors.values())
        yield f"| {bound:>2} | {name} | {figures} |"


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
    print("\n## A card-day of k trips, replace-one, both sides (8, 7.5e-7): one side's RMSE\n")
    print("| k | design | cell | time | location |\n|---|---|---|---|---|")
    for bound in (2, 4, 10, 20):
        print(*card_rows(bound), sep="\n")


if __name__ == "__main__":
    main()
