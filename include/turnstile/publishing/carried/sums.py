"""Sums of any cells of a package with their error: Python 3.9 or later, nothing to install.

    python3 sums.py tables/on_time_location mode=train tap_on_slot=08:00,08:15
    python3 sums.py measurements/on_time_location mode=train
    python3 sums.py estimates/on_location tap_on_location=Central

or `Package(".").total("tables/on_time_location", lambda row: row["mode"] == "train")`.

Measurements carry independent noise, so variances add up. Reconciled numbers of `tables/` share
noise: their errors do not, and adding them up would be wrong; the variance of their sum is worked
out from the four parts (total, rows, columns, interaction) that least squares weighs. Estimates
borrow strength, so their errors go together: how far is stated in the release card, by place, day
and slot, and is added to what each interval says. Where it is not known well enough, no interval
is given, and `withheld` says why. The truth lies between `low_95` and `high_95` in 95 of 100
releases; sums of estimates are biased towards the usual, as their parts are.
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
ABOVE_90 = 1.2815516  # the same of the upper side alone: of an interval that begins at 0
EXCESS_OF_LAPLACE = 3.0
KEYS = ("service_date", "mode")
NO_LABELS = ("mode", "gap_days")
ESTIMATE, LOW_90, HIGH_90 = "estimate", "low_90", "high_90"
STRETCH_HOURS = 4
MOST_UNKNOWN = 0.5  # of a variance: above, no interval
NO_CELL_ERROR = "most of these cells have no interval of their own: they carry too little signal"
NO_ESTIMATE = "there is no estimate of these cells: no row was chosen, or their days are gaps"
NO_SUM_ERROR = (
    "how far these errors go together is not known well enough; take a table whose numbers "
    "already add up these cells, or sum measurements"
)
TAPS = (("tap_on_slot", "tap_on_location"), ("tap_off_slot", "tap_off_location"))


class Sum(NamedTuple):
    """A sum with its error; not a number, with the reason, where it is withheld."""

    cells: int
    value: float
    standard_deviation: float
    low_90: float
    high_90: float
    low_95: float
    high_95: float
    withheld: str = ""


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
    of_90, of_95 = halves
    low_90, high_90, low_95, high_95 = value - of_90, value + of_90, value - of_95, value + of_95
    return Sum(cells, value, deviation, low_90, high_90, low_95, high_95)


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


class Way(NamedTuple):
    """One way to be alike, such as of one place and day; how far errors then go together."""

    alike: list[str]
    share: float
    uncertainty: float


class Together(NamedTuple):
    """How far the errors of a table of estimates go together, as the release card says."""

    ways: list[Way]
    where_withheld: float  # variance of a number whose interval is withheld
    beyond: float = 0.0  # how much further out an end is whose interval begins at 0

    def error(self, rows: list[Row]) -> tuple[float, str]:
        """Return the variance of the sum of rows, and why it is not known where it is not."""
        places = places_of(rows[0])
        deviations = [self.deviation(row) for row in rows]
        unknown = sum(d * d for row, d in zip(rows, deviations) if not row[HIGH_90])
        alone = sum(d * d for d in deviations)
        if unknown > MOST_UNKNOWN * alone or not math.isfinite(alone):
            return math.nan, NO_CELL_ERROR
        variance, uncertainty = alone, 0.0
        labels = [labels_of(row, places) for row in rows]
        for way in self.ways:
            blocks: dict[tuple[str, ...], float] = defaultdict(float)
            for row, deviation in zip(labels, deviations):
                blocks[(row["mode"], *(row[name] for name in way.alike))] += deviation
            more = sum(total * total for total in blocks.values()) - alone
            variance += way.share * more
            uncertainty += (way.uncertainty * more) ** 2
        variance += math.sqrt(uncertainty)  # on the safe side: places differ in what they share
        if math.sqrt(uncertainty) > MOST_UNKNOWN * variance:
            return math.nan, NO_SUM_ERROR
        return variance, ""

    def deviation(self, row: Row) -> float:
        """Return the standard deviation that the end of an interval was made from."""
        if not row[HIGH_90]:
            return math.sqrt(self.where_withheld)
        reach = float(row[HIGH_90]) - float(row[ESTIMATE])
        if float(row[LOW_90]) > 0:
            return reach / LEVELS[90]
        small = (reach - self.beyond) / ABOVE_90
        if small <= 1:
            return max(small, 0.0)
        rest = max(reach**2 - 4 * ABOVE_90 * self.beyond, 0.0)
        return (reach + math.sqrt(rest)) / (2 * ABOVE_90)


def places_of(row: Row) -> list[str]:
    """Return the columns that say where, when or what a row of estimates is of."""
    names = list(row)
    return [name for name in names[: names.index(ESTIMATE)] if name not in NO_LABELS]


def labels_of(row: Row, names: list[str]) -> Row:
    """Return place, day, slot, stretch of the day and mode of a row of estimates."""
    slot = next((row[name] for name in names if name.endswith("slot")), "")
    place = "/".join(row[n] for n in names if not n.endswith("slot") and n not in KEYS)
    hour = slot[:2]
    stretch = str(int(hour) // STRETCH_HOURS) if hour.isdigit() else slot
    day, mode = row.get("service_date", ""), row.get("mode", "")
    return {"place": place, "day": day, "slot": slot, "stretch": stretch, "mode": mode}


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
            table: `measurements/NAME` or `tables/NAME`, one of the plan's own tables; or
                `estimates/NAME`, any of them but means.
            chosen: whether a row is in the sum; every row is by default.
            column: statistic of a measured table; the only one by default.
        """
        part, _, name = table.partition("/")
        if part == "estimates":
            return self.estimated(name, [row for row in self.rows(table) if chosen(row)])
        own = [statistic for drawn, statistic in self.draws if drawn == name]
        if part not in ("measurements", "tables") or not own:
            raise ValueError(
                f"{table}: name estimates/, or measurements/ or tables/ and a drawn table"
            )
        rows = [row for row in self.rows(table) if chosen(row)]
        if part == "tables":
            return self.reconciled(name, rows)
        column = column or own[0]
        draw = self.draws[name, column]
        variance = len(rows) * draw["standard_deviation"] ** 2
        is_laplace = draw["noise"] == "discrete_laplace"
        excess = EXCESS_OF_LAPLACE / max(1, len(rows)) if is_laplace else 0.0
        return interval(len(rows), sum(int(row[column]) for row in rows), variance, excess)

    def together(self, name: str) -> Together:
        """Return how far the errors of a table of estimates go together.

        Raises:
            ValueError: its numbers do not add up, or the package says nothing of sums.
        """
        record = self.card.get("estimates", {})
        ways = record.get("correlations", {}).get(name)
        if ways is None:
            raise ValueError(
                f"estimates/{name}: no sums: means do not add up, nor is it known how far errors "
                f"of buses above limits go together; sum measurements/"
            )
        hidden = [line for line in record["errors"][name] if not line["intervals_shown"]]
        most = max((line["rmse_estimated"] for line in hidden), default=math.inf)
        is_whole = not any("unit" in line for line in record["errors"][name])
        beyond = record.get("beyond_0", 0.0) if is_whole else 0.0
        return Together([Way(**way) for way in ways], most**2, beyond)

    def estimated(self, name: str, rows: list[Row]) -> Sum:
        """Sum rows of a table of estimates; errors as those of `together`."""
        together = self.together(name)
        seen = [row for row in rows if row[ESTIMATE]]  # none on a gap
        if not seen:
            return interval(0, math.nan, math.nan)._replace(withheld=NO_ESTIMATE)
        value = sum(float(row[ESTIMATE]) for row in seen)
        variance, withheld = together.error(seen)
        found = interval(len(seen), value, variance)
        return found._replace(
            low_90=max(found.low_90, 0.0) if not withheld else math.nan,
            low_95=max(found.low_95, 0.0) if not withheld else math.nan,
            withheld=withheld,
        )

    def reconciled(self, name: str, rows: list[Row]) -> Sum:
        """Sum reconciled numbers; partitions (a mode on a day) are independent."""
        if rows and "reconciled" not in rows[0]:
            raise ValueError(f"tables/{name} has no reconciled numbers; sum measurements/{name}")
        axes = self._axes()
        if not axes[name]:  # drawn by itself, and reconciled with nothing
            variance = len(rows) * self.draws[name, "count"]["standard_deviation"] ** 2
            return interval(len(rows), sum(float(row["reconciled"]) for row in rows), variance)
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
        """Return the slot and location of a tap that label each drawn table.

        None for tables that are reconciled with no other: of other dimensions, or that count the
        trips of a bound of their own.
        """
        events = json.loads((self.folder / "plan.json").read_bytes())["events"]
        own = {event["table"] for event in events if event.get("own_records")}
        found = {}
        for name, _ in self.draws:
            with (self.folder / f"measurements/{name}.csv").open(encoding="utf-8") as stream:
                header = next(csv.reader(stream))
            labels = tuple(n for n in header if n not in KEYS and n.startswith("tap_"))
            found[name] = () if name in own else labels
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
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    table, *conditions = arguments
    wanted = {
        name: set(values.split(",")) for name, _, values in (c.partition("=") for c in conditions)
    }
    package = Package(Path(__file__).parent)
    try:
        found = package.total(table, lambda row: all(row[n] in of for n, of in wanted.items()))
    except KeyError as error:
        print(f"{table} has no column {error}; it has those of {table}.csv", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, value in found._asdict().items():
        if name == "withheld":
            print(f"{name:20} {value}" if value else "", end="\n" if value else "")
        else:
            print(f"{name:20} {value:,.2f}" if name != "cells" else f"{name:20} {value:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
