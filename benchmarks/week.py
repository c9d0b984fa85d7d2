"""CPU of every step of a generated week, and how far it is from the least: `make bench`.

Each step runs in a process of its own, imports included, as an Airflow task does, and so does the
bare work that it is held to (`bare.py`), on the same files in the same run: CPU seconds of busy
machines differ, their ratios hardly do. Fails when a limit is passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from turnstile.pipeline.steps import STEPS

WEEK = "2016-W30"
SMALL_ROWS, LARGE_ROWS = 20_000, 20_000_000
_STEP = (
    "import sys; from turnstile.pipeline.steps import step_named; "
    "step_named(sys.argv[1])(*sys.argv[2:], 0)"
)
_SAMPLE = "import sys; from turnstile.cli import main; sys.exit(main(sys.argv[1:]))"
_BARE = str(Path(__file__).with_name("bare.py"))
_KIB_PER_MIB = 1024
_WEEK_OF_COPY = {"opal": 3.3, "itms": 2.6}
_COUNT_OF_GROUPS = {"opal": 1.7, "itms": 2.0}


@dataclass(frozen=True)
class Cost:
    """Of one process tree."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Held:
    """A figure and the most that it may be; `limit` is None where it is only shown."""

    name: str
    figure: float
    limit: float | None

    def __str__(self) -> str:
        """One line; a passed limit stands out."""
        if self.limit is None:
            return f"{self.name:62} {self.figure:8.2f}"
        verdict = "PASSED ITS LIMIT" if self.figure > self.limit else "within"
        return f"{self.name:62} {self.figure:8.2f}  at most {self.limit:g}: {verdict}"


def measured(arguments: list[str], home: Path) -> Cost:
    """Run Python with some arguments in a process of its own."""
    environment = {**os.environ, "TURNSTILE_HOME": str(home)}  # noqa: TID251 - handed to a child
    started = time.perf_counter()
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - started
    if status:
        sys.exit(f"{arguments} failed")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _KIB_PER_MIB)


def one_week(programme: str, rows: int, form: str) -> list[Held]:
    """Print every step of one week; return its ratios."""
    with tempfile.TemporaryDirectory() as folder:
        home, costs = Path(folder), {}
        sample = ["sample", programme, "--weeks", WEEK, "--rows", str(rows), "--format", form]
        runs = {"sample": ["-c", _SAMPLE, *sample]}
        runs |= {"bare copy": [_BARE, "copy", programme, folder]}
        runs |= {step: ["-c", _STEP, step, programme, WEEK] for step in STEPS}
        runs |= {"bare count": [_BARE, "count", programme, folder]}
        for name, arguments in runs.items():
            costs[name] = cost = measured(arguments, home)
            print(
                f"{programme:6} {rows:>10,} {form:8} {name:10} "
                f"{cost.wall_s:8.1f} {cost.cpu_s:8.1f} {cost.peak_mib:9.0f}",
                flush=True,
            )
    return held(programme, rows, form, costs)


def held(programme: str, rows: int, form: str, costs: dict[str, Cost]) -> list[Held]:
    """Return what a week is held to: ratios on many rows, its fixed cost on few."""
    title = f"{programme}, {rows:,} rows of {form}: "
    week_s = sum(costs[step].cpu_s for step in STEPS)
    if rows <= SMALL_ROWS:
        return [Held(f"{title}CPU seconds of all steps", week_s, 25)]
    copy_s, groups_s = costs["bare copy"].cpu_s, costs["bare count"].cpu_s
    ratios = [
        ("ingest / bare copy", costs["ingest"].cpu_s / copy_s, 1.5 if form == "parquet" else None),
        ("count / bare groups", costs["count"].cpu_s / groups_s, _COUNT_OF_GROUPS[programme]),
        ("all steps / bare copy", week_s / copy_s, _WEEK_OF_COPY[programme]),
        ("peak MiB of any step", max(costs[step].peak_mib for step in STEPS), 1200),
    ]
    is_large = rows >= LARGE_ROWS  # below, what every process costs hides the work
    return [
        Held(title + name, figure, limit if is_large else None) for name, figure, limit in ratios
    ]


def main() -> None:
    """Read the options, print the tables, and fail where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[SMALL_ROWS, 1_000_000, LARGE_ROWS])
    parser.add_argument("--programmes", nargs="*", default=["opal", "itms"])
    parser.add_argument("--format", default="parquet", choices=["csv", "parquet"])
    options = parser.parse_args()
    print(
        f"{'':6} {'rows':>10} {'format':8} {'step':10} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9}"
    )
    found = [
        one
        for programme in options.programmes
        for rows in options.rows
        for one in one_week(programme, rows, options.format)
    ]
    print("", *found, sep="\n")
    if any(one.limit is not None and one.figure > one.limit for one in found):
        sys.exit("a limit is passed")


if __name__ == "__main__":
    main()
