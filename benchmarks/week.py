"""Wall time and peak memory of every step of a generated week: `python benchmarks/week.py`.

Each step runs in a process of its own, imports included, as an Airflow task does. Rows are those of
the whole week; the domain is the programme's own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turnstile.pipeline.steps import STEPS

WEEK = "2016-W30"
_STEP = (
    "import sys; from turnstile.pipeline.steps import step_named; "
    "step_named(sys.argv[1])(*sys.argv[2:], 0)"
)
_SAMPLE = "import sys; from turnstile.cli import main; sys.exit(main(sys.argv[1:]))"
_KIB_PER_MIB = 1024


def measured(code: str, arguments: list[str], home: Path) -> tuple[float, float, float]:
    """Run Python code in a process; return wall seconds, CPU seconds and peak memory in MiB."""
    environment = {**os.environ, "TURNSTILE_HOME": str(home)}  # noqa: TID251 - handed to a child
    started = time.perf_counter()
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - started
    if status:
        sys.exit(f"{arguments} failed")
    return wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _KIB_PER_MIB


def one_week(programme: str, rows: int, form: str) -> None:
    """Print every step of one week."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        sample = ["sample", programme, "--weeks", WEEK, "--rows", str(rows), "--format", form]
        total_s = 0.0
        for name in ("sample", *STEPS):
            if name == "sample":
                wall_s, cpu_s, peak_mib = measured(_SAMPLE, sample, home)
            else:
                wall_s, cpu_s, peak_mib = measured(_STEP, [name, programme, WEEK], home)
                total_s += wall_s
            print(
                f"{programme:6} {rows:>10,} {form:8} {name:10} "
                f"{wall_s:8.1f} {cpu_s:8.1f} {peak_mib:9.0f}",
                flush=True,
            )
        print(f"{programme:6} {rows:>10,} {form:8} {'all steps':10} {total_s:8.1f}", flush=True)


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--programmes", nargs="*", default=["opal", "itms"])
    parser.add_argument("--format", default="csv", choices=("csv", "parquet"))
    options = parser.parse_args()
    print(
        f"{'':6} {'rows':>10} {'format':8} {'step':10} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9}"
    )
    for programme in options.programmes:
        for rows in options.rows:
            one_week(programme, rows, options.format)


if __name__ == "__main__":
    main()
