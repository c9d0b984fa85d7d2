"""Sums of any rows of a package with their error: Python 3.9 or later, nothing to install.

    python3 tools/sums.py location tap=on location=Central
    python3 tools/sums.py location_slot tap=on slot=08:00,08:15 --column unbiased
    python3 tools/sums.py location_slot tap=on --column measured

or `Package(".").total("location", lambda row: row["tap"] == "on")`.

Measured numbers carry independent noise, so variances add up; what was drawn of a day without input
is noise alone, and in no sum. Unbiased numbers share noise: their
errors do not, and adding them up would be wrong; the variance of their sum is worked out from the
four parts (total, rows, columns, interaction) that least squares weighs. Values are estimates that
borrow strength, so their errors go together: how far is stated in the release card, by place, day
and slot, and is added to what each interval says. Where it is not known well enough, no interval
is given, and `no_interval` says why. The truth lies between `low_95` and `high_95` in 95 of 100
releases; sums of values are biased towards the usual, as their parts are, and their intervals end
at 0. Buses are counted anew in each row, so over slots they add up to bus-slots. Boardings and
alightings that nothing joins add up, and their values as if errors of both were all the same.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import os
import re
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import date
from functools import cache
from itertools import compress
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple

Row = dict[str, str]
Where = dict[str, list[str]]
Shape = tuple[int, int]
LEVELS = {90: 1.6448536, 95: 1.9599640}  # quantiles of the normal distribution, two-sided
ABOVE_90 = 1.2815516  # the same of the upper side alone: of an interval that begins at 0
EXCESS_OF_LAPLACE = 3.0
KEYS = ("service_date", "mode")
VALUE, LOW_90, HIGH_90 = "value", "low_90", "high_90"
USABLE, GAP = "usable", "gap"
TAP, TIMES = "tap", ("slot", "hour")
STRETCH_HOURS = 4
WEEKEND = (5, 6)
MOST_UNKNOWN = 0.5  # of a variance: above, no interval
NO_CELL_ERROR = "most of these cells have no interval of their own: they carry too little signal"
NO_VALUE = "there is no value of these cells: no row was chosen, or their days are gaps"
LESS = 0.99  # of an error: what is as exact answers nothing more exactly
SHOWN = 5  # labels that a refusal names
NO_SUM_ERROR = "how far these errors go together is not known well enough"
BOTH_TAPS = "every trip is in tap=on and in tap=off: choose one"
NESTED = "limit_kmh"  # a bus above one is above each lower one, too
BOTH_LIMITS = f"a bus above one {NESTED} is above each lower one, too: choose one"
RIDES = "rides"  # records of the card, of which nothing joins a boarding to an alighting
AXES = ("slot", "location")
COUNTED_IN = ("service_date", "mode", TAP)  # labels that no public cell decides
BOUNDS = ("bounded", "records_at_most", "limits", "range")


PLACE = re.compile(r"\b\d{4}-[^/]*/r\d+$")  # of a period and a revision
LATEST = re.compile(r"[^/]+/(latest|\.latest-[0-9a-f]{8,16}) (?!\.)[^/]+/r\d+")
OF_LOG = re.compile(
    r"(ledger-log/\w+/)(log\.pub|checkpoint(s/\d+)?|steps/\d+|cosignatures/[\d.a-f]+)"
)
COSIGNED = r"— \S+ [\w+/=]+\n"
SIGNED = r"(\S+)\n\d+\n\S+\n\n— \1 [\w+/=]{92}\n"  # by the log alone
IN_LOG = {
    "checkpoint": f"{SIGNED}({COSIGNED})*",
    "checkpoints": SIGNED,
    "steps": rf"old \d+\n([\w+/=]{{44}}\n){{0,63}}\n{SIGNED.replace('1', '2')}",
    "cosignatures": COSIGNED,
}


class Sum(NamedTuple):
    """A sum with its error; where that is not known, `no_interval` says why."""

    cells: int
    value: float
    standard_deviation: float
    low_90: float
    high_90: float
    low_95: float
    high_95: float
    no_interval: str = ""


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


def with_shared_total(precisions: Parts, shape: Shape, other: Parts, other_shape: Shape) -> Parts:
    """Return the precisions once both taps take the weighted mean of their totals."""
    precision = precisions.total / (shape[0] * shape[1]) + other.total / (
        other_shape[0] * other_shape[1]
    )
    return precisions._replace(total=precision * shape[0] * shape[1])


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
    if any(length > 1e-6 and not precision for length, precision in zip(lengths, precisions)):
        return math.inf  # nothing measured that part
    return sum(length / precision for length, precision in zip(lengths, precisions) if precision)


class Way(NamedTuple):
    """One way to be alike, such as of one place and day; how far errors then go together."""

    alike: list[str]
    share: float
    uncertainty: float


class Together(NamedTuple):
    """How far the errors of a table of estimates go together, as the release card says."""

    ways: list[Way]
    where_unknown: float  # variance of a number whose interval is unknown
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
        return min(variance, sum(deviations) ** 2), ""  # errors that are all the same add up

    def deviation(self, row: Row) -> float:
        """Return the standard deviation that the end of an interval was made from."""
        if not row[HIGH_90]:
            return math.sqrt(self.where_unknown)
        reach = float(row[HIGH_90]) - float(row[VALUE])
        if float(row[LOW_90]) > 0:
            return reach / LEVELS[90]
        small = (reach - self.beyond) / ABOVE_90
        if small <= 1:
            return max(small, 0.0)
        rest = max(reach**2 - 4 * ABOVE_90 * self.beyond, 0.0)
        return (reach + math.sqrt(rest)) / (2 * ABOVE_90)


def conditions(given: list[str]) -> Where:
    """Return labels by column from `column=label,label`; refuse other words."""
    where: Where = {}
    for text in given:
        name, is_said, labels = text.partition("=")
        if not is_said:
            raise ValueError(f"{text}: write COLUMN=LABEL,LABEL, such as tap=on")
        if name in where:
            raise ValueError(f"{name} is named twice: write {name}=LABEL,LABEL once")
        where[name] = labels.split(",")
    return where


def marked(rows: list[Row], where: Where) -> list[bool]:
    """Mark the rows that have the labels; refuse a column or label that no row has."""
    wanted = {}
    for name, parts_of_labels in where.items() if rows else ():
        if name not in rows[0]:
            raise ValueError(f"there is no column {name}; there are {', '.join(rows[0])}")
        known = {row[name] for row in rows}
        wanted[name] = labels = with_commas(parts_of_labels, known)
        for label in sorted(labels - known):
            some = ", ".join(sorted(known)[:SHOWN]) + ", ..." * (len(known) > SHOWN)
            raise ValueError(f"no row has {name}={label}; labels of {name} are {some}")
    marks = [all(row[name] in labels for name, labels in wanted.items()) for row in rows]
    if not any(marks):
        raise ValueError("no row has all of these labels: leave out a condition")
    return marks


def with_commas(cut: list[str], known: set[str]) -> set[str]:
    """Return labels that were cut at their commas, as the longest that are known."""
    labels, start = set(), 0
    most = 1 + max(label.count(",") for label in known)
    while start < len(cut):
        ends = range(min(start + most, len(cut)), start, -1)
        end = next((n for n in ends if ",".join(cut[start:n]) in known), start + 1)
        labels.add(",".join(cut[start:end]))
        start = end
    return labels


def is_of_both_taps(rows: Iterable[Row]) -> bool:
    """Whether rows are of both ends of trips."""
    return len({row.get(TAP) for row in rows}) > 1


def terms_of(card: Any, labels: Iterable[str], made_of: Iterable[str]) -> dict[str, str]:
    """Return what decides which records a row of a table counts: rows of other terms are others.

    Bounds that hold in public cells, such as one trip of a card in each slot and location, make
    what is counted depend on the cells too, in tables of days as well.

    Args:
        card: release card.
        labels: columns that say what a row is of.
        made_of: drawn tables that it is made of, or what these are added up to (`on_time_daily`).
    """
    stated, guarantee = card.get("terms", {}), card.get("guarantee", {})
    drawn, names = stated.get("tables", {}), set()
    for name in made_of:
        names.add(max((table for table in drawn if name.startswith(table)), key=len, default=""))
    rules = [drawn[name] for name in sorted(names & drawn.keys())]
    terms = {
        "rows": ", ".join(labels),
        "records": stated.get("records", ""),
        "rows_outside": stated.get("rows_outside", ""),
        "without_card": guarantee.get("without_card", ""),
        "time_zone": card.get("time_zone", ""),
        # Cards of before service days could begin at another hour state none.
        "day_starts": (re.findall(r"\d\d:\d\d", guarantee.get("service_day", "")) or ["00:00"])[0],
    }
    for bound in BOUNDS:
        values = {json.dumps(rule[bound], sort_keys=True) for rule in rules if rule.get(bound)}
        terms[bound] = " and ".join(sorted(values)).replace('"', "")
    if terms["limits"] or terms["rows_outside"] != "unknown" or {*labels} - {*COUNTED_IN}:
        terms["public_cells"] = card.get("domain", {}).get("sha256", "")
        promise = (card.get("estimates") or {}).get("promise", {})
        if "slot" in terms["rows"] + terms["limits"]:
            terms["slot_minutes"] = str(promise.get("slot_minutes", ""))
        if "region" in labels:
            regions = json.dumps(promise.get("regions"), sort_keys=True)
            terms["regions"] = hashlib.sha256(regions.encode()).hexdigest()
    return {name: value for name, value in terms.items() if value}


def say_coarser(table: str) -> None:
    """Say which table answers a question more exactly, where there is one."""
    if table:
        print(f"note: the table {table} answers this more exactly", file=sys.stderr)


def _added(rows: list[Row]) -> float:
    """Return the sum of the values of rows, in tenths as they are published."""
    return round(sum(float(row[VALUE] or 0) for row in rows), 1)


def has_number(row: Row, column: str) -> bool:
    """Whether a row has a number of its trips: what was drawn of a gap is noise alone."""
    return bool(row[column]) and row.get(USABLE) != GAP


def places_of(row: Row) -> list[str]:
    """Return the columns that say where, when or what a row is of."""
    names = list(row)
    return [name for name in names[: names.index(VALUE)] if name != "mode"]


def axes_of_rows(source: Any, row: Row, axes: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return tap, slot and location that rows are of, also where they were drawn for the other tap.

    Then they are sums of cells of their own tap, and share the noise of these.

    Raises:
        ValueError: they are of other labels.
    """
    if "draw" in source:
        return axes[source["draw"].partition("/")[0]]
    tap = row.get(TAP, "")
    known = {axis for drawn in axes.values() if drawn[:1] == (tap,) for axis in drawn[1:]}
    by = {name for name in places_of(row) if name not in (TAP, *KEYS)}
    if not by or not by <= known:
        raise ValueError(f"no unbiased sums of tap={tap} here: it was drawn by other labels")
    return (tap, *(axis for axis in AXES if axis in by))


def labels_of(row: Row, names: list[str]) -> Row:
    """Return place, day, kind of day, slot, stretch of the day and mode of a row."""
    slot = next((row[name] for name in names if name in TIMES), "")
    place = "/".join(row[n] for n in names if n not in (*TIMES, *KEYS))
    hour = slot[:2]
    stretch = str(int(hour) // STRETCH_HOURS) if hour.isdigit() else slot
    day, mode = row.get("service_date", ""), row.get("mode", "")
    kind = str(day != "" and date.fromisoformat(day).weekday() in WEEKEND)
    ways = {"place": place, "day": day, "kind": kind, "slot": slot, "stretch": stretch}
    return {**ways, "mode": mode}


def standing(release: str, names: set[str]) -> str:
    """Say that a release was withdrawn or superseded, if it was; `verify_package.py` asks it too.

    Args:
        release: its key.
        names: of files of its zone.
    """
    period, _, revision = release.rpartition("/")
    gone = {name for name in names if name.startswith(f"{period}/withdrawn-")}
    here = [
        int(name.split("/")[2][1:])
        for name in names
        if name.startswith(f"{period}/r") and name.split("/")[2][1:].isdigit()
    ]
    newest = max((n for n in here if f"{period}/withdrawn-r{n}.json" not in gone), default=-1)
    in_force = f"{period}/r{newest} is in force" if newest >= 0 else "no revision of it is in force"
    if (record := f"{period}/withdrawn-{revision}.json") in gone:
        return f"{release} was withdrawn, see {record}; {in_force}"
    is_older = revision[1:].isdigit() and int(revision[1:]) < newest
    return f"{release} was superseded: {in_force}" if is_older else ""


def names_beside(folder: Path, release: str) -> set[str]:
    """Return the names of records and packages that lie beside one in its place, as in its zone."""
    at, period = folder.resolve(), release.rpartition("/")[0]
    if f"{at.parent.name}/{at.name}" != release.partition("/")[2]:
        return set()
    beside = (*at.parent.glob("withdrawn-*.json"), *at.parent.glob("r*/manifest.json"))
    return {f"{period}/{path.relative_to(at.parent).as_posix()}" for path in beside}


def files_in(folder: Path) -> dict[str, bool]:
    """Return the paths of all below a folder that is no folder, without opening any.

    Of each it says whether it is a foreign link, or no file: whoever opens a pipe waits for ever.
    """
    files = {}
    for path in folder.rglob("*"):
        name, is_link = path.relative_to(folder).as_posix(), path.is_symlink()
        if is_link or not path.is_dir():
            is_foreign = is_link and not LATEST.fullmatch(f"{name} {path.readlink()}")
            files[name] = is_foreign or not (is_link or path.is_file())
    return files


def is_of_log(name: str, listed: Any, read: Callable[[str], str], opened: Any) -> bool:
    """Whether a file of a zone is what a log that the zone's list names has signed.

    By whom a cosignature is made is not known here; it holds one line of one.
    """
    match = OF_LOG.fullmatch(name)
    keys = [path for path in listed if path.endswith("/log.pub")]
    if match is None or (keys and f"{match[1]}log.pub" not in keys):
        return False
    if match[2] == "log.pub":
        return True  # the list is of before it named keys
    with suppress(OSError, ValueError):
        text, kind = read(name), match[2].partition("/")[0]
        note = text.partition("\n\n")[2] if kind == "steps" else text
        is_of_form = re.fullmatch(IN_LOG[kind], text) is not None
        is_said = kind == "cosignatures" or is_opened(opened, note, read(f"{match[1]}log.pub"))
        return is_of_form and is_said
    return False


@cache
def is_opened(opened: Callable[[str, str], Any], note: str, key: str) -> bool:
    """Whether a log signed a note: asked once, however many packages of its zone are checked."""
    return bool(opened(note, key))


def elsewhere(folder: Path) -> str:
    """Say which release lies in the place of another; a folder may have any other name."""
    release = json.loads((folder / "manifest.json").read_bytes())["key"]
    at = folder.resolve()
    is_zone = (at.parent.parent.parent / "ledger.pub").is_file()
    place = "/".join(at.parts[-3 if is_zone else -2 :])
    is_other = PLACE.search(place) and not f"/{release}".endswith(f"/{place}")
    return f"; it is {release}, and lies in the place of {place}" if is_other else ""


def ordinary(path: Path) -> Path:
    """Return the path of a file to open; refuse what is none: a pipe is waited for, for ever."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path.name} is no ordinary file, so it was not opened")
    return path


class Package:
    """A package in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.card = self.stated()
        self.draws = {(d["table"], d["statistic"]): d for d in self.card["draws"]}
        if "data" not in self.card:
            raise ValueError(f"{folder}: of package version 1; its own programs read it")
        self.tables = {table["name"]: table for table in self.card["data"]}
        release = str(self.card.get("release", ""))
        names, at = names_beside(self.folder, release), self.folder.resolve()
        with suppress(OSError, ValueError):
            lines = ordinary(at / "../../../zone-index.txt").read_text("utf-8").splitlines()
            names |= {line.partition("  ")[2] for line in lines}
        if said := standing(release, names):
            print(f"note: {said}", file=sys.stderr)

    def stated(self) -> Any:
        """Return the release card."""
        return json.loads(ordinary(self.folder / "release_card.json").read_bytes())

    def _opened(self, table: str) -> Any:
        """Open the CSV file of a table, unpacked."""
        path = ordinary(self.folder / f"data/{table}.csv")
        packed = path.with_name(f"{path.name}.gz")
        return path.open("rb") if path.is_file() else gzip.open(ordinary(packed))

    def content(self, table: str) -> bytes:
        """Return the CSV file of a table, unpacked."""
        with self._opened(table) as file:
            return bytes(file.read())

    def _labels_of_rows(self, table: str) -> list[str]:
        """Return the columns that say what a row of a table is of."""
        with self._opened(table) as file:
            names = next(csv.reader([file.readline().decode()]))
        return names[: names.index(VALUE)] if VALUE in names else []

    def terms(self, table: str) -> dict[str, str]:
        """Return what decides which records a row of a table counts (`terms_of`)."""
        made_of = [
            source.get("draw", "").partition("/")[0]
            or source.get("unbiased")
            or source["estimates"]
            for source in self.tables[table]["sources"]
        ]
        return terms_of(self.card, self._labels_of_rows(table), made_of)

    def refuse_other_terms(self, table: str, other: Package) -> None:
        """Refuse to compare rows of a table with those of another package that count others."""
        here, there = self.terms(table), other.terms(table)
        if here == there:
            return
        shown = []
        for name in dict.fromkeys((*here, *there)):
            if here.get(name) != there.get(name):
                values = [terms.get(name, "not stated") for terms in (here, there)]
                if name == "public_cells":
                    cells = [package.card["domain"] for package in (self, other)]
                    values = [
                        f"{domain.get('version')} ({domain['sha256'][:12]})" for domain in cells
                    ]
                shown.append(f"{name} is {values[0]} here and {values[1]} there")
        comparable = [
            name
            for name in self.tables
            if name in other.tables and self.terms(name) == other.terms(name)
        ]
        raise ValueError(
            f"rows of {table} count other records in {other.folder}: {'; '.join(shown)}; tables "
            "that count the same in both: "
            f"{', '.join(comparable) or 'none, so ask each package by itself'}"
        )

    def unit(self, table: str, column: str) -> str:
        """Return the unit of a sum."""
        record = self.tables[table]
        unit = str(record["measured_unit" if column == "measured" else "unit"])
        return unit + ", a bus once in each row" * unit.startswith("bus")

    def rows(self, table: str) -> list[Row]:
        """Read a table by its name."""
        text = io.TextIOWrapper(io.BytesIO(self.content(table)), "utf-8", newline="")
        return list(csv.DictReader(text))

    def total(self, table: str, chosen: Callable[[Row], bool] = bool, column: str = VALUE) -> Sum:
        """Return the sum of the chosen rows' numbers.

        Args:
            table: name of a table in `data/`.
            chosen: whether a row is in the sum; every row is by default.
            column: `value`, `unbiased` or `measured`.
        """
        self.require(table, column)
        return self.total_of(table, list(filter(chosen, self.rows(table))), column)

    def refuse_twice(self, rows: list[Row]) -> None:
        """Refuse rows that hold trips or buses twice; boardings that nothing joins are others."""
        if self.card.get("terms", {}).get("records") != RIDES and is_of_both_taps(rows):
            raise ValueError(BOTH_TAPS)
        if len({row.get(NESTED) for row in rows}) > 1:
            raise ValueError(BOTH_LIMITS)

    def total_of(self, table: str, rows: list[Row], column: str) -> Sum:
        """Return the same of rows of a table that were read."""
        self.refuse_twice(rows)
        of = {VALUE: self.estimated, "unbiased": self.reconciled, "measured": self.measured}
        return of[column](table, rows)

    def coarser(self, table: str, column: str, *asked: Where, by: str = "") -> str:
        """Return the table whose fewer rows add up to the same, more exactly; empty without one.

        Args:
            table: that was asked.
            column: of it.
            asked: labels of the rows of each sum, by column.
            by: a further column that the question needs.
        """
        labels = set(self._labels_of_rows(table))
        needed = {by} - {""} | {name for where in asked for name in where}
        rows = self.rows(table)
        chosen = [[*compress(rows, marked(rows, where))] for where in asked]
        least, best = self.total_of(table, chosen[0], column).standard_deviation, ""
        least = math.inf if math.isnan(least) else least
        for other, record in self.tables.items():
            is_of_same = record["unit"] == self.tables[table]["unit"]
            if not is_of_same or not needed <= set(self._labels_of_rows(other)) < labels:
                continue
            with suppress(ValueError):  # no sums of this column, or other labels
                self.require(other, column)
                rows = self.rows(other)
                sides = [[*compress(rows, marked(rows, where))] for where in asked]
                error = self.total_of(other, sides[0], column).standard_deviation
                if [*map(_added, sides)] == [*map(_added, chosen)] and error < LESS * least:
                    least, best = error, other
        return best

    def sums_of(self, table: str) -> set[str]:
        """Return the columns of a table whose sums have an error.

        Of what a threshold let through none has; with a `step`, multiples of counts were drawn.
        """
        sources = self.tables[table]["sources"]
        ways = (self.card.get("estimates") or {}).get("correlations", {})
        drawn = [self.draws[tuple(s["draw"].split("/"))] for s in sources if "draw" in s]
        whole = [draw for draw in drawn if draw.get("threshold") is None]
        has_sums = {
            VALUE: any(source["estimates"] in ways for source in sources),
            "unbiased": any(draw["statistic"] == "count" for draw in whole),
            "measured": any("step" not in draw for draw in whole),
        }
        return {name for name, has in has_sums.items() if has}

    def require(
        self,
        table: str,
        column: str,
        among: Iterable[str] = (VALUE, "unbiased", "measured"),
        labels: Iterable[str] = (),
    ) -> None:
        """Refuse a table that is not there, and a column whose numbers have no sums.

        Args:
            table: asked.
            column: of it.
            among: columns that the question may be asked of.
            labels: that rows are chosen by; a table without them answers another question.
        """
        if table not in self.tables:
            raise ValueError(f"there is no table {table}; there are {', '.join(self.tables)}")
        has_sums = self.sums_of(table)
        if column in (can := [name for name in among if name in has_sums]):
            return
        means = [name for name, record in self.tables.items() if record["what"].startswith("mean")]
        if table in means:
            rule = f"means do not add up; the tables of means are {', '.join(means)}"
            drawn = [name for name in means if "draw" in self.tables[name]["sources"][0]]
            rule += f"; draws.py --column mean has means of rows of {', '.join(drawn)}" * any(drawn)
        else:
            rule = (
                f"no sums of the column {column} with their error here; columns that can be "
                f"summed: {', '.join(can) or 'none, so take a table that was drawn, all of it'}"
            )
            sums = {
                name: [other for other in among if other in self.sums_of(name)]
                for name in self.tables
                if name != table and {*labels} <= set(self._labels_of_rows(name))
            }
            if others := [name for name, columns in sums.items() if column in columns]:
                rule += f"; tables in which {column} can be: {', '.join(others)}"
            elif others := [f"{name} ({', '.join(sums[name])})" for name in sums if sums[name]]:
                rule += f"; tables of these labels with others that can be: {', '.join(others)}"
        raise ValueError(f"{table}: {rule}")

    def by_source(self, table: str, rows: list[Row]) -> list[tuple[Any, list[Row]]]:
        """Return the rows of each source of a table: of a tap, of a limit."""
        sources = []
        for source in self.tables[table]["sources"]:
            wanted = source["where"].items()
            source_rows = [row for row in rows if all(row[name] == label for name, label in wanted)]
            if source_rows:
                sources.append((source, source_rows))
        return sources

    def measured(self, table: str, rows: list[Row]) -> Sum:
        """Sum numbers as they were drawn."""
        seen = [row for row in rows if has_number(row, "measured")]
        if not seen:
            return interval(0, math.nan, math.nan)._replace(no_interval=NO_VALUE)
        variance = fourth = 0.0
        for source, source_rows in self.by_source(table, seen):
            if "draw" not in source:
                raise ValueError(f"{table}: these rows were not drawn")
            draw = self.draws[tuple(source["draw"].split("/"))]
            of_row = draw["standard_deviation"] ** 2
            variance += len(source_rows) * of_row
            fourth += len(source_rows) * of_row**2 * (draw["noise"] == "discrete_laplace")
        excess = EXCESS_OF_LAPLACE * fourth / variance**2 if variance else 0.0
        value = sum(int(row["measured"]) for row in seen)
        return interval(len(seen), value, variance, excess)

    def together(self, name: str) -> Together:
        """Return how far the errors of a table of estimates go together.

        Raises:
            ValueError: the package says nothing of their sums.
        """
        record = self.card.get("estimates") or {}
        ways = record.get("correlations", {}).get(name)
        if ways is None:
            raise ValueError("no sums of these values: it is not stated how errors go together")
        hidden = [line for line in record["errors"][name] if not line["intervals_shown"]]
        most = max((line["rmse_estimated"] for line in hidden), default=math.inf)
        is_whole = not any("unit" in line for line in record["errors"][name])
        beyond = record.get("beyond_0", 0.0) if is_whole else 0.0
        return Together([Way(**way) for way in ways], most**2, beyond)

    def estimated(self, table: str, rows: list[Row]) -> Sum:
        """Sum values; errors as those of `together`, of both taps as if they were all the same."""
        self.refuse_twice(rows)
        seen = [row for row in rows if row[VALUE]]  # none on a gap
        if not seen:
            return interval(0, math.nan, math.nan)._replace(no_interval=NO_VALUE)
        sources = self.by_source(table, seen)
        if len(sources) > 1 and TAP not in seen[0]:
            raise ValueError(NO_SUM_ERROR)
        deviation, no_interval = 0.0, ""
        for source, source_rows in sources:
            variance, unknown = self.together(source["estimates"]).error(source_rows)
            deviation, no_interval = deviation + math.sqrt(variance), no_interval or unknown
        if no_interval == NO_SUM_ERROR and "measured" in self.sums_of(table):
            no_interval += "; sum the column measured"
        value = sum(float(row[VALUE]) for row in seen)
        estimate = interval(len(seen), value, deviation**2)
        return estimate._replace(
            low_90=max(estimate.low_90, 0.0) if not no_interval else math.nan,
            low_95=max(estimate.low_95, 0.0) if not no_interval else math.nan,
            no_interval=no_interval,
        )

    def reconciled(self, table: str, rows: list[Row]) -> Sum:
        """Sum unbiased numbers; partitions (a mode on a day) are independent."""
        seen = [row for row in rows if row["unbiased"]]
        if not seen:
            return interval(0, math.nan, math.nan)._replace(no_interval=NO_VALUE)
        variance, axes = 0.0, self._axes()
        labels = self._labels(axes)
        for source, source_rows in self.by_source(table, seen):
            by = axes_of_rows(source, source_rows[0], axes)
            if not by:  # drawn by itself, and reconciled with nothing
                variance += sum(float(row["unbiased_sd"]) ** 2 for row in source_rows)
            partitions: dict[tuple[str, ...], list[Row]] = defaultdict(list)
            for row in source_rows if by else ():
                partitions[tuple(row.get(key, "") for key in KEYS)].append(row)
            for (_, mode), partition in partitions.items():
                precisions = self._precisions(partition[0][TAP], mode, axes, labels)
                variance += self._variance(by[1:], partition, precisions)
        return interval(len(seen), sum(float(row["unbiased"]) for row in seen), variance)

    def _variance(
        self, by: tuple[str, ...], rows: list[Row], partition: tuple[Parts, Shape]
    ) -> float:
        """Return the variance of rows of one partition; a marginal's row is a line of cells."""
        precisions, shape = partition
        a, b = shape
        if len(by) > 1:
            in_row = Counter(row[AXES[0]] for row in rows)
            in_column = Counter(row[AXES[1]] for row in rows)
        elif by[0] == AXES[0]:
            in_row = Counter({row[AXES[0]]: b for row in rows})
            in_column = Counter({str(n): len(rows) for n in range(b)})
        else:
            in_row = Counter({str(n): len(rows) for n in range(a)})
            in_column = Counter({row[AXES[1]]: a for row in rows})
        return variance_of_sum(precisions, shape, in_row, in_column)

    def _axes(self) -> dict[str, tuple[str, ...]]:
        """Return tap, slot and location that label each drawn table of counts.

        None for tables that are reconciled with no other: of other dimensions, or that count the
        trips of a bound of their own.
        """
        events = json.loads(ordinary(self.folder / "plan.json").read_bytes())["events"]
        separate_tables = {event["table"] for event in events if event.get("own_records")}
        table_axes = {}
        for table in self.tables.values():
            for source in table["sources"]:
                name, tap = source.get("draw", "").partition("/")[0], source["where"].get(TAP, "")
                by = self.card["terms"]["tables"][name]["by"] if name else ()
                axes = tuple(axis for axis in AXES if f"tap_{tap}_{axis}" in by)
                table_axes[name] = (tap, *axes) if axes and name not in separate_tables else ()
        return table_axes

    def _labels(
        self, axes: dict[str, tuple[str, ...]]
    ) -> dict[tuple[str, str], dict[str, set[str]]]:
        """Return the labels of every axis, by tap and axis and then by mode."""
        labels: dict[tuple[str, str], dict[str, set[str]]] = {}
        for table, record in sorted(self.tables.items(), key=lambda named: len(named[0])):
            drawn = [axes.get(s.get("draw", "").partition("/")[0], ()) for s in record["sources"]]
            wanted = {
                (draw_axes[0], axis) for draw_axes in drawn for axis in draw_axes[1:]
            } - labels.keys()
            if not wanted:
                continue
            labels |= {key: defaultdict(set) for key in wanted}
            for row in self.rows(table):
                for tap, axis in wanted:
                    if row[TAP] == tap:
                        labels[tap, axis][row.get("mode", "")].add(row[axis])
        return labels

    def _precisions(
        self,
        tap: str,
        mode: str,
        axes: dict[str, tuple[str, ...]],
        labels: dict[tuple[str, str], dict[str, set[str]]],
    ) -> tuple[Parts, Shape]:
        """Return the precisions and the shape of one tap of a mode."""
        by_tap = {}
        for side in ("on", "off"):
            sd = {
                axes[name][1:]: draw["standard_deviation"] ** 2
                for (name, _), draw in self.draws.items()
                if axes.get(name, ())[:1] == (side,)
            }
            if sd:
                slots, locations = (
                    max(1, len(labels.get((side, axis), {}).get(mode, ()))) for axis in AXES
                )
                shape = (slots, locations)
                known = parts(shape, sd.get(AXES), sd.get(AXES[:1]), sd.get(AXES[1:]))
                by_tap[side] = (known, shape)
        precisions, shape = by_tap[tap]
        others = [value for end, value in by_tap.items() if end != tap]
        if others and self.card["domain"]["rows_outside"].startswith("counted"):
            precisions = with_shared_total(precisions, shape, others[0][0], others[0][1])
        return precisions, shape


def ended(program: Callable[[list[str]], int]) -> int:
    """Run a program; where whoever reads its output has enough, as `head`, it ends as that does."""
    try:
        code = program(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as a shell reports it
    return code


def main(arguments: list[str]) -> int:
    """Print the sum of the rows whose columns have the given values."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    table, *words = arguments
    column = VALUE
    if "--column" in words[:-1]:
        at = words.index("--column")
        column, words = words[at + 1], words[:at] + words[at + 2 :]
    try:
        package = Package(Path(__file__).resolve().parents[1])
        wanted = conditions(words)
        package.require(table, column, labels=wanted)
        rows = package.rows(table)
        total = package.total_of(table, [*compress(rows, marked(rows, wanted))], column)
        if math.isnan(total.value):
            raise ValueError(total.no_interval)
        better = package.coarser(table, column, wanted)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, value in total._asdict().items():
        if name == "no_interval":
            print(f"{name:20} {value}" if value else "", end="\n" if value else "")
        else:
            print(f"{name:20} {value:,.2f}" if name != "cells" else f"{name:20} {value:,}")
    print(f"{'unit':20} {package.unit(table, column)}")
    say_coarser(better)
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))
