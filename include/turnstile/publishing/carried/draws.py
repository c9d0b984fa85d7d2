"""An interval for any question about a package, by plausible weeks: Python 3.9 or later and NumPy.

    python3 tools/draws.py location tap=on location=Central,Redfern          a sum
    python3 tools/draws.py location tap=on mode=train --of tap=on            a share
    python3 tools/draws.py location tap=on mode=train --of tap=on mode=bus   a ratio of sums
    python3 tools/draws.py location tap=on mode=train --since ../../2016-W29/r0     a change
    python3 tools/draws.py day tap=on service_date=2016-07-26 --since . service_date=2016-07-25
    python3 tools/draws.py location tap=on mode=train --ranks location       ranks of the first
    python3 tools/draws.py speed --column mean slot=08:00 --ranks cell --lowest     the slowest

and of any other question, which is a function of the numbers of a week, in the order of `rows`:

    weeks = Weeks(".", "location")
    central = weeks.chosen(tap=["on"], location=["Central"])
    print(ask(lambda week: week[central].max(), weeks))

A plausible week is a table plus errors of the published size that go together as the release card
says, or its column `measured` less noise as it was drawn. Coins come from the digest of the
table, so everybody makes the same weeks. 90 % of their answers lie between `low_90` and `high_90`.
Numbers of plausible weeks may be negative: cut off at 0, their sums would lie too high. Weeks of
two packages are independent, which makes intervals of changes a little too wide. Values, and
changes of them above all, are biased towards the usual; `measured` is not. Ask the coarsest
table that holds the answer: its numbers are the most exact. A mean of any rows is made from the
drawn sums and bus-days: each bus-day counts alike, and nothing is borrowed from other rows.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Callable, NamedTuple

# Matrices are small: two threads would wait for each other. NumPy reads it once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 - no settings come with it
import numpy as np
from numpy.typing import NDArray

sys.dont_write_bytecode = True  # this folder holds what its manifest lists, and nothing else
from sums import (  # noqa: E402
    NO_CELL_ERROR,
    NO_VALUE,
    TAP,
    VALUE,
    Package,
    Row,
    Way,
    Where,
    conditions,
    ended,
    has_number,
    is_of_both_taps,
    labels_of,
    marked,
    ordinary,
    places_of,
    say_coarser,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WEEKS = 400
ENDS = (0.05, 0.95, 0.025, 0.975)
NO_PLACE, DAY = "UNKNOWN", "service_date"
MEAN, MEASURED = "mean", "measured"
LEAST_BUS_DAYS = 5.0  # of their noise: below, plausible means are of next to no bus
BOTH_VALUES = (
    "how far values of both taps err together is not stated: choose one, take --column measured "
    "of a table that was drawn, or tools/sums.py"
)
FEW_BUSES = "these rows have too few bus-days for a mean that was drawn: choose more rows"


class Answer(NamedTuple):
    """The answer of the published numbers, and where nine (19) of ten (20) plausible ones lie."""

    value: Any
    low_90: Any
    high_90: Any
    low_95: Any
    high_95: Any


class Block(NamedTuple):
    """Rows of a mode and tap, each in a cell of a cube of places, days and slots."""

    rows: Ints
    cube: tuple[int, int, int]
    cells: Ints
    kinds: Floats  # of day: orthonormal, shape (kinds, days)
    stretches: list[str]
    ways: list[Way]


def normals(seed: str, count: int) -> Floats:
    """Return standard normal deviates of a public text (Box & Muller 1958)."""
    half = (count + 1) // 2
    stream = np.frombuffer(hashlib.shake_256(seed.encode()).digest(8 * half), dtype="<u4")
    radius, angle = (stream.reshape(2, half) + 0.5) / 2.0**32
    radius, angle = np.sqrt(-2 * np.log(radius)), 2 * np.pi * angle
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def roots(
    shares: list[tuple[list[str], float]], places: int, days: Floats, stretches: list[str]
) -> list[list[Floats]]:
    """Return square roots of the covariance of errors, first of what all places have in common.

    Then of what each differs by; of each a matrix of what slots of the kinds of day have in common,
    and one of slots of what days differ by from others of their kind.

    Args:
        shares: ways to be alike, with the share that each takes of an error's variance.
        places: number of them.
        days: root of the number of days of each kind.
        stretches: of the day, of each slot.
    """
    slots = len(stretches)
    same = np.equal.outer(stretches, stretches).astype(float)
    matrices = []
    for of_place in (places, 0):
        alone = 1 - sum(share for _, share in shares)
        between, within = alone * np.eye(len(days) * slots), alone * np.eye(slots)
        for axes, share in shares:
            among = same if "stretch" in axes else np.ones((slots, slots))
            among = share * (np.eye(slots) if "slot" in axes else among)
            among = among * (1 if "place" in axes else of_place)
            alike_days = np.diag(days**2) if "kind" in axes else np.outer(days, days)
            between += np.kron(np.eye(len(days)) if "day" in axes else alike_days, among)
            within += among * ("day" in axes)
        matrices.append([root(between), root(within)])
    return matrices


def root(covariance: Floats) -> Floats:
    """Return the square root of a symmetric matrix."""
    lengths, vectors = np.linalg.eigh(covariance)
    matrix: Floats = vectors * np.sqrt(np.maximum(lengths, 0)) @ vectors.T
    return matrix


def drawn_shares(ways: list[Way], seed: str) -> list[tuple[list[str], float]]:
    """Return the share of every way to be alike in a plausible week: each is itself uncertain."""
    deviates = normals(f"{seed} shares", len(ways))
    return [
        (way.alike, max(way.share + way.uncertainty * float(deviate), min(way.share, 0.0)))
        for way, deviate in zip(ways, deviates)
    ]


def block(mode: list[tuple[int, Row]], ways: list[Way]) -> Block:
    """Return the rows of a mode, given by their numbers and labels, as a cube."""
    names = ("place", "day", "slot")
    labels = [sorted({row[name] for _, row in mode}) for name in names]
    codes = [{label: n for n, label in enumerate(axis_labels)} for axis_labels in labels]
    cube = (len(codes[0]), len(codes[1]), len(codes[2]))
    where = [[of[row[name]] for _, row in mode] for name, of in zip(names, codes)]
    of_slot = {row["slot"]: row["stretch"] for _, row in mode}
    of_day = {row["day"]: row["kind"] for _, row in mode}
    kinds = [of_day[label] for label in codes[1]]
    is_of_kind = np.equal.outer(sorted(set(kinds)), kinds)
    basis = is_of_kind / np.sqrt(is_of_kind.sum(axis=1, keepdims=True))
    rows = np.array([number for number, _ in mode])
    cells = np.ravel_multi_index(np.array(where), cube)
    return Block(rows, cube, cells, basis, [of_slot[label] for label in codes[2]], ways)


def alike(of_mode: Block, shares: list[tuple[list[str], float]], deviates: Floats) -> Floats:
    """Return errors of size 1 that go together, made from as many that do not."""
    _, cube, cells, kinds, stretches, _ = of_mode
    errors, variances, cubed = np.zeros(cube), np.zeros(cube[1:]), deviates.reshape(cube)
    of_all, of_one = cubed.mean(axis=0, keepdims=True), 1 / cube[0]
    matrices = roots(shares, cube[0], kinds.sum(axis=1), stretches)
    parts = ((of_all, of_one), (cubed - of_all, 1 - of_one))
    for (of_place, part), (between, within) in zip(parts, matrices):
        common = kinds @ of_place
        moved = (common.reshape(len(common), -1) @ between).reshape(common.shape)
        errors += kinds.T @ moved + (of_place - kinds.T @ common) @ within
        of_kinds = (between**2).sum(axis=1).reshape(len(kinds), -1)
        of_days = np.outer(1 - (kinds**2).sum(axis=0), (within**2).sum(axis=1))
        variances += part * (kinds.T**2 @ of_kinds + of_days)
    # Shares that add up to more than 1 are no covariance: what `root` made of them is larger.
    chosen: Floats = (errors / np.sqrt(variances)).reshape(-1)[cells]
    return chosen


class Weeks:
    """Plausible weeks of a table of a package.

    Args:
        folder: of the package.
        table: name of a table in `data/`.
        column: `value`, of any table but means; or `measured`.

    Raises:
        ValueError: the package does not say what the errors of the table are.
    """

    def __init__(self, folder: str | Path, table: str, column: str = VALUE) -> None:
        self.package = package = Package(folder)
        package.require(table, column, (VALUE, MEASURED))
        self.every, self.column = package.rows(table), column
        self.rows: list[Row] = [row for row in self.every if has_number(row, column)]
        self.values = np.array([float(row[column]) for row in self.rows])
        self.deviations = np.zeros(self.values.shape)
        self.is_laplace = np.zeros(self.values.shape, bool)
        self.blocks: list[Block] = []
        if column == VALUE:
            self._estimated(table)
        else:
            for source, rows in self._sources(table):
                draw = package.draws[tuple(source["draw"].split("/"))]
                self.is_laplace[rows] = draw["noise"] == "discrete_laplace"
                self.deviations[rows] = draw["standard_deviation"]
        if not self.rows:
            raise ValueError(NO_VALUE)
        self.seed = f"{hashlib.sha256(package.content(table)).hexdigest()} {column} plausible week"

    def _sources(self, table: str) -> list[tuple[Any, list[int]]]:
        """Return the numbers of the rows of each source."""
        place = {id(row): number for number, row in enumerate(self.rows)}
        sources = self.package.by_source(table, self.rows)
        return [(source, [place[id(row)] for row in rows]) for source, rows in sources]

    def _estimated(self, table: str) -> None:
        """Read errors of values, and how they go together."""
        for source, numbers in self._sources(table):
            error_model = self.package.together(source["estimates"])
            of_mode: dict[str, list[tuple[int, Row]]] = defaultdict(list)
            for number in numbers:
                row = self.rows[number]
                self.deviations[number] = error_model.deviation(row)
                names = [name for name in places_of(row) if name != TAP]
                of_mode[row.get("mode", "")].append((number, labels_of(row, names)))
            self.blocks += [block(mode, error_model.ways) for mode in of_mode.values()]
        if not np.isfinite(self.deviations).all():
            raise ValueError(NO_CELL_ERROR)

    def chosen(self, **labels: list[str]) -> NDArray[np.bool_]:
        """Mark the rows whose columns have one of the given labels; there must be some."""
        marks = zip(self.every, marked(self.every, labels))
        chosen = np.array([mark for row, mark in marks if has_number(row, self.column)], bool)
        if not chosen.any():
            raise ValueError(NO_VALUE)
        return chosen

    def is_told(self, rows: Ints, codes: Ints) -> NDArray[np.bool_]:
        """Mark the groups of rows that have an answer: of sums all."""
        return np.asarray(np.bincount(codes, self.deviations[rows]) >= 0)

    def of(self, week: Floats, rows: Ints, codes: Ints) -> Floats:
        """Return the sum of each group of rows of a week, by the codes of the groups."""
        return np.asarray(np.bincount(codes, week[rows]), float)

    def week(self, number: int) -> Floats:
        """Return the numbers of a plausible week, in the order of `rows`."""
        seed = f"{self.seed} {number}"
        errors = np.zeros(self.values.shape)
        if not self.blocks:
            first, other, third, last = normals(seed, 4 * errors.size).reshape(4, -1)
            errors = np.where(self.is_laplace, (first * other + third * last) / np.sqrt(2), first)
        for index, of_mode in enumerate(self.blocks):
            deviates = normals(f"{seed} {index}", int(np.prod(of_mode.cube)))
            errors[of_mode.rows] = alike(of_mode, drawn_shares(of_mode.ways, seed), deviates)
        return self.values + self.deviations * errors


class Means:
    """Plausible weeks of a table of means: sums over bus-days as drawn and, below them, bus-days.

    Raises:
        ValueError: the table is none of means, or its sums were not drawn.
    """

    def __init__(self, folder: str | Path, table: str) -> None:
        package = Package(folder)
        means = package.card["terms"]["tables"]
        if "range" not in means.get(table, {}):
            drawn = ", ".join(name for name in means if "range" in means[name]) or "none"
            raise ValueError(f"{table}: no means were drawn; tables of drawn means: {drawn}")
        self.package = package
        self.sums, self.buses = (Weeks(folder, n, MEASURED) for n in (table, f"{table}_buses"))
        self.rows, self.values = self.sums.rows, np.stack([self.sums.values, self.buses.values])
        # Speeds go up from 0, delays as far below 0 as above.
        self.middle = means[table]["range"] / 2 * (package.tables[table]["unit"] == "km/h")

    def chosen(self, **labels: list[str]) -> NDArray[np.bool_]:
        """Mark the rows whose columns have one of the given labels; there must be some."""
        return self.sums.chosen(**labels)

    def is_told(self, rows: Ints, codes: Ints) -> NDArray[np.bool_]:
        """Mark the groups of rows whose bus-days stand well out of their noise."""
        buses = np.bincount(codes, self.buses.values[rows])
        noise = np.sqrt(np.bincount(codes, self.buses.deviations[rows] ** 2))
        return np.asarray(buses > LEAST_BUS_DAYS * noise)

    def of(self, week: Floats, rows: Ints, codes: Ints) -> Floats:
        """Return the mean over the bus-days of each group of rows of a week."""
        sums, buses = (np.bincount(codes, part[rows]) for part in week)
        return np.asarray(self.middle + sums / buses / 10)

    def week(self, number: int) -> Floats:
        """Return sums and bus-days of a plausible week, in the order of `rows`."""
        return np.stack([self.sums.week(number), self.buses.week(number)])


def ask(question: Callable[..., Any], *asked: Weeks | Means, weeks: int = WEEKS) -> Answer:
    """Return the answer to a question with its intervals.

    Args:
        question: of the numbers of a week of each table asked; a number, or an array of them.
        asked: tables.
        weeks: plausible ones of each.
    """
    answers = [question(*(table.week(n) for table in asked)) for n in range(weeks)]
    ends = np.quantile(np.array(answers, float), ENDS, axis=0, method="inverted_cdf")
    return Answer(question(*(table.values for table in asked)), *ends)


def ranks(
    table: Weeks | Means,
    column: str,
    chosen: NDArray[np.bool_],
    first: int = 10,
    *,
    is_lowest: bool = False,
) -> list[tuple[str, Answer]]:
    """Return the labels with the largest numbers, and their ranks among all labels but UNKNOWN.

    A label ranks behind those that are larger beyond doubt, where differences to all others are
    in doubt together: the largest estimates are large by luck too (Mogstad, Romano, Shaikh &
    Wilhelm 2024, Inference for ranks). Labels of too few bus-days for a mean have no rank.
    """
    rows = np.flatnonzero(chosen & [row[column] != NO_PLACE for row in table.rows])
    labels, codes = np.unique([table.rows[n][column] for n in rows], return_inverse=True)
    told = table.is_told(rows, codes)
    if not told.any():
        raise ValueError(f"no label of {column} can be ranked: choose more rows")
    if not told.all():
        few = f"{np.count_nonzero(~told)} of {told.size} labels have too few bus-days for a rank"
        print(f"note: {few}", file=sys.stderr)
    rows, labels = rows[told[codes]], labels[told]
    codes = np.searchsorted(labels, [table.rows[n][column] for n in rows])
    sign = -1 if is_lowest else 1
    numbers = sign * table.of(table.values, rows, codes)
    weeks = [sign * table.of(table.week(n), rows, codes) for n in range(WEEKS)]
    errors = np.array(weeks) - numbers
    answers = []
    for rank, code in enumerate(np.argsort(-numbers, kind="stable")[:first], start=1):
        apart = errors - errors[:, [code]]
        spread = np.maximum(apart.std(axis=0), 1e-9)
        apart, doubts = (numbers - numbers[code]) / spread, np.abs(apart / spread).max(axis=1)
        ends = [
            end
            for most in np.quantile(doubts, (0.9, 0.95))
            for end in (1 + (apart > most).sum(), numbers.size - (apart < -most).sum())
        ]
        answers.append((str(labels[code]), Answer(rank, *ends)))
    return answers


def elsewhere(asked: list[Where], other: Where) -> list[Where]:
    """Return the rows of each side in the package of `--since`: other labels of named columns."""
    named = {name for where in asked for name in where}
    for name in sorted(other.keys() - named):
        raise ValueError(f"--since names {name}: say which {name} the question is of, too")
    return [{name: other.get(name, labels) for name, labels in where.items()} for where in asked]


def opened(asked: argparse.Namespace, folders: list[Path]) -> list[Weeks | Means]:
    """Open the table in each package; once, where both are the same, for its errors are too."""
    tables: dict[bytes, Weeks | Means] = {}
    of_folders = []
    for folder in folders:
        manifest = ordinary(folder / "manifest.json").read_bytes()
        is_mean = asked.column == MEAN
        if manifest not in tables:
            weeks = (folder, asked.table)
            tables[manifest] = Means(*weeks) if is_mean else Weeks(*weeks, asked.column)
        of_folders.append(tables[manifest])
    return of_folders


def days_of(table: Weeks | Means, chosen: NDArray[np.bool_]) -> dict[tuple[int, int], str]:
    """Return the days with input of the chosen rows, by weekday and which of its kind it is."""
    card, seen, days = table.package.card, Counter[int](), {}
    of_rows = {table.rows[n].get(DAY, "") for n in np.flatnonzero(chosen)}
    known = of_rows if DAY in table.rows[0] else {*card.get("service_days", [])}
    for day in sorted(known - {*card.get("gaps", [])}):
        weekday = date.fromisoformat(day).weekday()
        days[weekday, seen[weekday]] = day
        seen[weekday] += 1
    return days


def refuse_other_days(
    since: str, tables: list[Weeks | Means], chosen: list[NDArray[np.bool_]]
) -> None:
    """Refuse a change between other days of the week; warn where rows cannot be chosen by day."""
    of_here, of_there = map(days_of, tables, chosen)
    if of_here.keys() == of_there.keys():
        return
    said = f"{len(of_here)} days with input here less {len(of_there)} in {since}"
    both = sorted(of_here.keys() & of_there.keys())
    if DAY not in tables[0].rows[0] or not both:
        print(f"warning: {said}", file=sys.stderr)
        return
    asked = (f"{DAY}={','.join(days[key] for key in both)}" for days in (of_here, of_there))
    raise ValueError(f"{said}: ask for days that both have: {f' --since {since} '.join(asked)}")


def number(table: Weeks | Means, week: Floats, chosen: NDArray[np.bool_]) -> float:
    """Return what a week says of the chosen rows together."""
    rows = np.flatnonzero(chosen)
    return float(table.of(week, rows, np.zeros_like(rows))[0])


def refuse(table: Weeks | Means, marks: list[NDArray[np.bool_]]) -> None:
    """Refuse rows that hold every trip twice, shares of nothing and means of next to no bus."""
    for chosen in marks:
        ends = [table.rows[n] for n in np.flatnonzero(chosen)]
        table.package.refuse_twice(ends)
        if isinstance(table, Weeks) and table.column == VALUE and is_of_both_taps(ends):
            raise ValueError(BOTH_VALUES)
        if len(marks) > 1 and number(table, table.values, marks[1]) <= 0:
            raise ValueError("the rows after --of do not add up to more than 0: no share of them")
        rows = np.flatnonzero(chosen)
        if not table.is_told(rows, np.zeros_like(rows))[0]:
            raise ValueError(FEW_BUSES)


def sides_of(
    asked: argparse.Namespace, tables: list[Weeks | Means], wheres: list[list[Where]]
) -> list[list[NDArray[np.bool_]]]:
    """Return the rows of each side; refuse sides between which there is no change."""
    for table in tables[1:]:
        tables[0].package.refuse_other_terms(asked.table, table.package)
    sides = [[table.chosen(**where) for where in of] for table, of in zip(tables, wheres)]
    for table, marks in zip(tables, sides):
        refuse(table, marks)
    if tables[1:]:
        first = [marks[0] for marks in sides]
        if DAY not in wheres[0][0]:
            refuse_other_days(asked.since[0], tables, first)
        if first[0].sum() != first[1].sum():
            print("warning: one side has more rows than the other", file=sys.stderr)
    return sides


def answered(asked: argparse.Namespace) -> tuple[list[tuple[str, Answer]], str, str]:
    """Answer what the command line asks; say of how many rows, and in which unit."""
    is_mean, other, since = asked.column == MEAN, asked.since[:1], asked.since[1:]
    if asked.ranks and (other or asked.of is not None):
        raise ValueError("--ranks takes numbers of this package: leave out --of and --since")
    if is_mean and asked.of is not None:
        raise ValueError("--column mean adds nothing up: leave out --of")
    wheres = [[conditions(text) for text in (asked.where, asked.of) if text is not None]]
    wheres += [elsewhere(wheres[0], conditions(since)) for _ in other]
    tables = opened(asked, [Path(__file__).resolve().parents[1], *map(Path, other)])
    if tables[1:] == tables[:1] and wheres[1:] == wheres[:1]:
        raise ValueError("--since names the same rows of this same package: name others")
    sides = sides_of(asked, tables, wheres)
    counted = " less ".join(" over ".join(f"{m.sum():,}" for m in marks) for marks in sides)
    package = tables[0].package
    if not (is_mean or other):  # errors of two sides may go together in one table and not another
        with suppress(ValueError):  # sums whose error is not known
            by = asked.ranks or ""
            say_coarser(package.coarser(asked.table, asked.column, *wheres[0], by=by))
    if asked.ranks:
        ranked = ranks(tables[0], asked.ranks, sides[0][0], is_lowest=asked.lowest)
        return ranked, counted, "rank"

    def question(*weeks: Floats) -> float:
        answers = []
        for table, week, marks in zip(tables, weeks, sides):
            first, *parts = (number(table, week, chosen) for chosen in marks)
            answers.append(first / parts[0] if parts else first)
        return answers[0] - sum(answers[1:])

    unit = "ratio" if asked.of is not None else package.unit(asked.table, asked.column)
    return [("", ask(question, *tables))], counted, unit


def main(arguments: list[str]) -> int:
    """Print the answer to a question."""
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shown)
    parser.add_argument("table", help="name of a table in data/")
    parser.add_argument("--column", default=VALUE, help="value, measured, or mean of drawn means")
    parser.add_argument("where", nargs="*", help="column=label,label: rows whose sum is asked")
    parser.add_argument("--of", nargs="*", help="over the sum of these rows; of all if none")
    of_since = "less that of another package, or of other labels: FOLDER COLUMN=LABEL ..."
    parser.add_argument("--since", nargs="+", default=[], help=of_since)
    parser.add_argument("--ranks", help="of the ten labels of a column with the largest numbers")
    parser.add_argument("--lowest", action="store_true", help="ranks of the smallest numbers")
    try:
        answers, counted, unit = answered(parser.parse_intermixed_args(arguments))
    except (KeyError, StopIteration) as error:
        print(f"there is no such column or statistic: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for label, answer in answers:
        if label:
            print(label)
        for name, value in answer._asdict().items():
            print(f"{name:12} {value:,.6g}")
    print(f"{'unit':12} {unit}\n{'rows':12} {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))
