"""CPU of every step of a generated week, and how far it is from the least: `make bench`.

Each step runs in a process of its own, imports included, as an Airflow task does, and so does the
bare work that it is held to (`bare.py`), on the same files in the same run: CPU seconds of busy
machines differ, their ratios hardly do. Fails when a limit is passed.

A week is one like the others: before it a small one is released, which pays for what a programme
costs once (small worlds, the look at a first week). That stands as `first`: of few rows the small
week by `turnstile run`, of many ingest as a programme's first week.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from measured import Cost, Held, measured
from picture import draw

from turnstile.pipeline.steps import STEPS

WEEK, WEEK_BEFORE = "2016-W30", "2016-W29"
SMALL_ROWS, LARGE_ROWS = 20_000, 20_000_000
_STEP = (
    "import sys; from turnstile.pipeline.steps import step_named; "
    "step_named(sys.argv[1])(*sys.argv[2:], 0)"
)
_COMMAND = "import sys; from turnstile.cli import main; sys.exit(main(sys.argv[1:]))"
_IMPORTS = "import duckdb, great_expectations, opendp.measurements, pandas, scipy, sqlalchemy"
_BARE = str(Path(__file__).with_name("bare.py"))
_OTHERS = str(Path(__file__).with_name("others.py"))
_LARGER = str(Path(__file__).with_name("larger_week.py"))
_ROWWISE_MOST = 1_000_000
_WHOLE = "whole week"
_WEEK_OF_COPY = {"opal": 3.3, "itms": 2.6}
_PEAK_MIB = {False: 1200, True: 4096}  # by whether there are more than `LARGE_ROWS`
_COUNT_OF_GROUPS = {"opal": 1.7, "itms": 2.0}


def one_week(programme: str, rows: int, form: str) -> dict[str, Cost]:
    """Run and print every step of one week, and what stands beside it."""
    with tempfile.TemporaryDirectory() as folder:
        home, costs = Path(folder), {}
        before = _before(programme, home)
        if rows <= SMALL_ROWS:
            costs["first"] = _printed(programme, rows, form, "first", before)
        for name, arguments in _runs(programme, rows, form, folder).items():
            costs[name] = _printed(programme, rows, form, name, measured(arguments, home))
            if name == "bare copy" and rows > SMALL_ROWS:
                costs["first"] = _printed(programme, rows, form, "first", _first(programme, home))
    if rows <= SMALL_ROWS:
        costs[_WHOLE] = _printed(programme, rows, form, _WHOLE, _in_one_process(programme, rows))
    return costs


def _before(programme: str, home: Path) -> Cost:
    """Release a small week, a programme's first, as a person does."""
    measured(_sample(programme, WEEK_BEFORE, SMALL_ROWS, "parquet"), home)
    cost = measured(["-c", _COMMAND, "run", programme, "--week", WEEK_BEFORE], home)
    for zone in ("landing", "private"):  # what else reads there finds one week
        shutil.rmtree(home / zone / programme / WEEK_BEFORE)
    return cost


def _first(programme: str, home: Path) -> Cost:
    """Ingest the files of the week in a home that has released nothing."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "landing").symlink_to(home / "landing")
        return measured(["-c", _STEP, "ingest", programme, WEEK], Path(folder))


def _printed(programme: str, rows: int, form: str, name: str, cost: Cost) -> Cost:
    """Print what a run cost."""
    print(
        f"{programme:6} {rows:>10,} {form:8} {name:10} "
        f"{cost.wall_s:8.1f} {cost.cpu_s:8.1f} {cost.peak_mib:9.0f}",
        flush=True,
    )
    return cost


def _in_one_process(programme: str, rows: int) -> Cost:
    """Run all steps of a generated week as a person does, by `turnstile run`."""
    with tempfile.TemporaryDirectory() as folder:
        _before(programme, Path(folder))
        measured(_sample(programme, WEEK, rows, "parquet"), Path(folder))
        return measured(["-c", _COMMAND, "run", programme, "--week", WEEK], Path(folder))


def _sample(programme: str, week: str, rows: int, form: str) -> list[str]:
    """Return the arguments that make a week; nested records would be JSON, whatever the form."""
    asked = ["--weeks", week, "--rows", str(rows), "--format", form, "--shape", "string"]
    return ["-c", _COMMAND, "sample", programme, *asked]


def _runs(programme: str, rows: int, form: str, folder: str) -> dict[str, list[str]]:
    """Return what is run, in its order: name and arguments of the interpreter."""
    runs = {"sample": _sample(programme, WEEK, min(rows, LARGE_ROWS), form)}
    steps = STEPS if form == "parquet" else ("ingest",)  # from there on, forms do not differ
    step_runs = {step: ["-c", _STEP, step, programme, WEEK] for step in steps}
    if rows > LARGE_ROWS:  # held to the growth from there on, and to its memory
        larger = {"larger": [_LARGER, programme, folder, str(rows // LARGE_ROWS)]}
        return runs | larger | step_runs
    runs |= {
        f"bare {work}": [_BARE, work, programme, folder] for work in ("parse", "copy")
    } | step_runs
    if form == "parquet":
        runs |= {"bare count": [_BARE, "count", programme, folder]}
        runs |= {"re-issue": ["-c", _COMMAND, "run", programme, "--week", WEEK]}
        runs |= {"imports": ["-c", _IMPORTS]}
        runs |= {"canonical": [_BARE, "canonical", programme, folder]}
        others = ["polars", "pandas", *(["rowwise"] if rows <= _ROWWISE_MOST else [])]
        runs |= {name: [_OTHERS, name, programme, folder] for name in others}
    return runs


def held(programme: str, rows: int, form: str, costs: dict[str, Cost]) -> list[Held]:
    """Return what a week is held to: ratios on many rows, its fixed cost on few."""
    title = f"{programme}, {rows:,} rows of {form}: "
    is_large = rows >= LARGE_ROWS  # below, what every process costs hides the work
    return [
        Held(title + name, figure, limit if is_large or rows <= SMALL_ROWS else None)
        for name, figure, limit in _figures(programme, rows, form, costs)
    ]


def _figures(
    programme: str, rows: int, form: str, costs: dict[str, Cost]
) -> list[tuple[str, float, float | None]]:
    """Return the name, the figure and the limit of what a week is held to."""
    if rows > LARGE_ROWS:
        return [_peak(costs, rows)]
    copy_s, ingest_s = costs["bare copy"].cpu_s, costs["ingest"].cpu_s
    if form == "csv":  # the copy parses too
        allowed_s = 1.5 * copy_s - 0.1 * costs["bare parse"].cpu_s
        return [("ingest / bare copy", ingest_s / copy_s, allowed_s / copy_s)]
    week_s = sum(costs[step].cpu_s for step in STEPS)
    if rows <= SMALL_ROWS:
        return [
            ("CPU seconds of `turnstile run`", costs[_WHOLE].cpu_s, 45),
            ("CPU seconds of it again", costs["re-issue"].cpu_s, 8),
            ("CPU seconds of a programme's first week", costs["first"].cpu_s, 70),
            ("CPU seconds of all steps, a process each", week_s, None),
            ("the same / one import of the libraries", week_s / costs["imports"].cpu_s, None),
        ]
    count_s, draw = costs["count"].cpu_s, costs["draw"]
    return [
        ("ingest / bare copy", ingest_s / copy_s, 1.5),
        ("ingest of a first week / bare copy", costs["first"].cpu_s / copy_s, 2.5),
        ("count / bare count", count_s / costs["bare count"].cpu_s, _COUNT_OF_GROUPS[programme]),
        ("count / groups of canonical rows", count_s / costs["canonical"].cpu_s, None),
        ("draw: wall / CPU", draw.wall_s / draw.cpu_s, 0.6 if programme == "opal" else None),
        ("all steps / bare copy", week_s / copy_s, _WEEK_OF_COPY[programme]),
        _peak(costs, rows),
    ] + [
        (f"{name} / count", costs[name].cpu_s / count_s, None)
        for name in ("polars", "pandas", "rowwise")
        if name in costs
    ]


def _peak(costs: dict[str, Cost], rows: int) -> tuple[str, float, float]:
    """Return the name, the figure and the limit of the memory of a week."""
    peak_mib = max(costs[step].peak_mib for step in STEPS)
    return "peak MiB of any step", peak_mib, _PEAK_MIB[rows > LARGE_ROWS]


def growth(programme: str, weeks: dict[int, dict[str, Cost]]) -> list[Held]:
    """Return the CPU of a row against that of the next smaller week: linear from 20 million on."""
    sizes = sorted(rows for rows in weeks if rows > SMALL_ROWS)
    of_row = {
        rows: sum(weeks[rows][step].cpu_s for step in ("ingest", "validate", "count")) / rows
        for rows in sizes
    }
    return [
        Held(
            f"{programme}, CPU of a row, {more:,} / {fewer:,} rows",
            of_row[more] / of_row[fewer],
            1.05 if fewer >= LARGE_ROWS else None,
        )
        for fewer, more in pairwise(sizes)
    ]


def main() -> None:
    """Read the options, print the tables, and fail where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        nargs="*",
        default=[SMALL_ROWS, 1_000_000, 5_000_000, LARGE_ROWS, 3 * LARGE_ROWS, 10 * LARGE_ROWS],
        help=f"of each week; above {LARGE_ROWS:,}, a multiple of that",
    )
    parser.add_argument("--programmes", nargs="*", default=["opal", "itms"])
    parser.add_argument("--format", default="parquet", choices=["csv", "parquet"])
    parser.add_argument("--picture", type=Path, help="SVG file to write, of the largest weeks")
    options = parser.parse_args()
    if odd := [rows for rows in options.rows if rows > LARGE_ROWS and rows % LARGE_ROWS]:
        parser.error(f"--rows {odd[0]:,}: above {LARGE_ROWS:,}, a week has a multiple of that")
    print(
        f"{'':6} {'rows':>10} {'format':8} {'step':10} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9}"
    )
    limits, largest = [], {}
    for programme in options.programmes:
        by_rows: dict[int, dict[str, Cost]] = {}
        for rows in options.rows:
            costs = by_rows[rows] = one_week(programme, rows, options.format)
            limits += held(programme, rows, options.format, costs)
        if options.format == "parquet":
            limits += growth(programme, by_rows)
        largest[f"{programme}, {max(by_rows):,} rows"] = by_rows[max(by_rows)]
    if options.picture:
        draw(largest, options.picture)
    print("", *limits, sep="\n")
    if any(limit.is_passed for limit in limits):
        sys.exit("a limit is passed")


if __name__ == "__main__":
    main()
