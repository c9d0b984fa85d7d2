"""Sums of any cells of a package with their error: Python 3.9 or later, nothing to install.

    python3 sums.py tables/on_time_location mode=train tap_on_slot=08:00,08:15
    python3 sums.py measurements/on_time_location mode=train

or `Package(".").total("tables/on_time_location", lambda row: row["mode"] == "train")`.

Measurements carry independent noise, so variances add up. Reconciled numbers of `tables/` share
noise: their errors do not, and adding them up would be wrong; the variance of their sum is worked
out from the four parts (total, rows, columns, interaction) that least squares weighs. Estimates
borrow strength, and no error of theirs holds for any sum: take the sums that stand in `estimates/`,
or sum reconciled numbers. The truth lies between `low_95` and `high_95` in 95 of 100 releases.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Callable, NamedTuple

Row = dict[str, str]
Shape = tuple[int, int]
Tap = tuple[str, str]
LEVELS = {90: 1.6448536, 95: 1.9599640}  # quantiles of the normal distribution, two-sided
EXCESS_OF_LAPLACE = 3.0
KEYS = ("service_date", "mode")
TAPS = (("tap_on_slot", "tap_on_location"), ("tap_off_slot", "tap_off_location"))


class Sum(NamedTuple):
    """A sum with its error."""

    cells: int
    value: float
    standard_deviation: float
    low_90: float
    high_90: float
    low_95: float
    high_95: float


class Parts(NamedTuple):
    """Inverse variances of the four parts of a partition (0 where nothing measured one)."""

    total: float
    rows: float
    columns: float
    cells: float


def interval(cells: int, value: float, variance: float, excess: float = 0.0) -> Sum:
    """Return a sum with its intervals; `excess` is the kurtosis of its noise above a normal's."""
    deviation = math.sqrt(variance)
    halves = []
    for z in LEVELS.values():
        quantile = z + (z**3 - 3 * z) * excess / 24  # Cornish & Fisher 1938, even terms
        halves.append(quantile * deviation)
    ends = [value + sign * half for half in halves for sign in (-1, 1)]
    return Sum(cells, value, deviation, *ends)


def parts(shape: Shape, cells: float | None, rows: float | None, columns: float | None) -> Parts:
    """Return the precisions of a partition from the variances of its measured tables.

    ResidualPlanner (Xiao, He, Zhang & Kifer 2023) in closed form, for `a` rows and `b` columns.
    """
    a, b = shape
    of_cells = 1 / cells if cells else 0.0
    of_rows = b / rows if rows else 0.0
    of_columns = a / columns if columns else 0.0
    return Parts(
        of_cells + of_rows + of_columns, of_cells + of_rows, of_cells + of_columns, of_cells
    )


def with_shared_total(own: Parts, shape: Shape, other: Parts, other_shape: Shape) -> Parts:
    """Return the precisions once both taps take the weighted mean of their totals."""
    precision = own.total / (shape[0] * shape[1]) + other.total / (other_shape[0] * other_shape[1])
    return own._replace(total=precision * shape[0] * shape[1])


def variance_of_sum(
    precisions: Parts, shape: Shape, in_row: Counter[str], in_column: Counter[str]
) -> float:
    """Return the variance of the sum of cells, from how many stand in each row and column."""
    a, b = shape
    cells = sum(in_row.values())
    total = cells**2 / (a * b)
    rows = sum(n * n for n in in_row.values()) / b - total
    columns = sum(n * n for n in in_column.values()) / a - total
    lengths = Parts(total, rows, columns, cells - total - rows - columns)
    if any(length > 1e-6 and not one for length, one in zip(lengths, precisions)):
        return math.inf  # nothing measured that part
    return sum(length / one for length, one in zip(lengths, precisions) if one)


class Package:
    """A package in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.card = json.loads((self.folder / "release_card.json").read_bytes())
        self.draws = {(d["table"], d["statistic"]): d for d in self.card["draws"]}

    def rows(self, table: str) -> list[Row]:
        """Read a table by its path without suffix."""
        with (self.folder / f"{table}.csv").open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    def total(self, table: str, chosen: Callable[[Row], bool] = bool, column: str = "") -> Sum:
        """Return the sum of the chosen rows' numbers.

        Args:
            table: `measurements/NAME` or `tables/NAME`, one of the plan's own tables.
            chosen: whether a row is in the sum; every row is by default.
            column: statistic of a measured table; the only one by default.
        """
        part, _, name = table.partition("/")
        own = [statistic for drawn, statistic in self.draws if drawn == name]
        if part not in ("measurements", "tables") or not own:
            raise ValueError(f"{table}: name measurements/ or tables/ and a table of the plan")
        rows = [row for row in self.rows(table) if chosen(row)]
        if part == "tables":
            return self._reconciled(name, rows)
        column = column or own[0]
        draw = self.draws[name, column]
        variance = len(rows) * draw["standard_deviation"] ** 2
        is_laplace = draw["noise"] == "discrete_laplace"
        excess = EXCESS_OF_LAPLACE / max(1, len(rows)) if is_laplace else 0.0
        return interval(len(rows), sum(int(row[column]) for row in rows), variance, excess)

    def _reconciled(self, name: str, rows: list[Row]) -> Sum:
        """Sum reconciled numbers; partitions (a mode on a day) are independent."""
        if rows and "reconciled" not in rows[0]:
            raise ValueError(f"tables/{name} has no reconciled numbers; sum measurements/{name}")
        axes = self._axes()
        tap = next(tap for tap in TAPS if set(axes[name]) <= set(tap))
        found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in rows:
            found[tuple(row.get(key, "") for key in KEYS)].append(row)
        labels = self._labels(axes)
        variance = 0.0
        for (_, mode), own in found.items():
            precisions = self._precisions(tap, mode, axes, labels)
            variance += self._variance(axes[name], tap, own, precisions)
        value = sum(float(row["reconciled"]) for row in rows)
        return interval(len(rows), value, variance)

    def _variance(
        self, by: tuple[str, ...], tap: Tap, rows: list[Row], own: tuple[Parts, Shape]
    ) -> float:
        """Return the variance of rows of one partition; a marginal's row is a line of cells."""
        precisions, shape = own
        a, b = shape
        if len(by) > 1:
            in_row = Counter(row[tap[0]] for row in rows)
            in_column = Counter(row[tap[1]] for row in rows)
        elif by[0] == tap[0]:
            in_row = Counter({row[tap[0]]: b for row in rows})
            in_column = Counter({str(n): len(rows) for n in range(b)})
        else:
            in_row = Counter({str(n): len(rows) for n in range(a)})
            in_column = Counter({row[tap[1]]: a for row in rows})
        return variance_of_sum(precisions, shape, in_row, in_column)

    def _axes(self) -> dict[str, tuple[str, ...]]:
        """Return the taps' columns of every drawn table."""
        found = {}
        for name, _ in self.draws:
            with (self.folder / f"measurements/{name}.csv").open(encoding="utf-8") as stream:
                header = next(csv.reader(stream))
            found[name] = tuple(n for n in header if n not in KEYS and n.startswith("tap_"))
        return found

    def _labels(self, axes: dict[str, tuple[str, ...]]) -> dict[tuple[str, str], set[str]]:
        """Return the labels of every axis, by mode and axis, from the smallest tables."""
        labels: dict[tuple[str, str], set[str]] = defaultdict(set)
        for name in sorted(axes, key=lambda name: len(axes[name])):
            known = {axis for _, axis in labels}
            if set(axes[name]) - known:
                for row in self.rows(f"measurements/{name}"):
                    for axis in axes[name]:
                        labels[row.get("mode", ""), axis].add(row[axis])
        return labels

    def _precisions(
        self,
        tap: Tap,
        mode: str,
        axes: dict[str, tuple[str, ...]],
        labels: dict[tuple[str, str], set[str]],
    ) -> tuple[Parts, Shape]:
        """Return the precisions and the shape of one tap of a mode."""
        found = {}
        for one in TAPS:
            sd = {
                axes[name]: draw["standard_deviation"] ** 2
                for (name, _), draw in self.draws.items()
                if axes[name] and set(axes[name]) <= set(one)
            }
            if sd:
                slots, locations = (max(1, len(labels[mode, axis])) for axis in one)
                shape = (slots, locations)
                found[one] = (parts(shape, sd.get(one), sd.get(one[:1]), sd.get(one[1:])), shape)
        own, shape = found[tap]
        others = [value for one, value in found.items() if one != tap]
        if others and self.card["domain"]["rows_outside"].startswith("counted"):
            own = with_shared_total(own, shape, others[0][0], others[0][1])
        return own, shape


def main(arguments: list[str]) -> int:
    """Print the sum of the rows whose columns have the given values."""
    if not arguments:
        print(__doc__)
        return 2
    table, *conditions = arguments
    wanted = {
        name: set(values.split(",")) for name, _, values in (c.partition("=") for c in conditions)
    }
    package = Package(Path(__file__).parent)
    found = package.total(table, lambda row: all(row[n] in values for n, values in wanted.items()))
    for name, value in found._asdict().items():
        print(f"{name:20} {value:,.2f}" if name != "cells" else f"{name:20} {value:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
