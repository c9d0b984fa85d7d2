"""A year of weeks that is asked for at once: one backfill through a real Airflow, in order.

`python benchmarks/airflow_year.py` generates 52 small weeks of opal and releases them as `make
release` does. It fails where a week is not published, comes before an earlier one or begins before
the last one has ended, and prints what a week takes at the beginning and at the end of the year:
each release is checked against all that came before it.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from measured import Held, measured

from turnstile.service_calendar import ServiceWeek

_FIRST = ServiceWeek(2016, 30)
_COMMAND = "import sys; from turnstile.cli import main; sys.exit(main())"
_RELEASE = ["-m", "turnstile_native.weekly_release", "--programme", "opal"]
_TIMEOUT_S = "10800"
_QUARTER = 13
_RUNS = """
    SELECT logical_date, start_date, end_date FROM dag_run
    WHERE dag_id = 'release_opal' AND state = 'success' ORDER BY logical_date"""


@dataclass(frozen=True, slots=True)
class Run:
    """The release of one week, by Airflow's clock; runs are in the order of their weeks."""

    week: datetime
    began: datetime
    ended: datetime

    @property
    def took_s(self) -> float:
        """From its first task to its last."""
        return (self.ended - self.began).total_seconds()


def runs_of(database: Path) -> list[Run]:
    """Return the runs that succeeded, in the order of their weeks."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute(_RUNS).fetchall()
    return [Run(*map(datetime.fromisoformat, times)) for times in rows]


def main() -> None:
    """Release the weeks and print what the first and the last of them took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--rows", type=int, default=20_000, help="of each week")
    asked = parser.parse_args()
    weeks = f"{_FIRST}:{_FIRST.plus(asked.weeks - 1)}"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        sample = ["sample", "opal", "--weeks", weeks, "--rows", str(asked.rows)]
        measured(["-c", _COMMAND, *sample], home)
        many = ["--weeks", str(asked.weeks), "--timeout-s", _TIMEOUT_S]
        whole = measured([*_RELEASE, *many], home)
        (database,) = home.rglob("airflow.db")
        runs = runs_of(database)
    if len(runs) != asked.weeks:
        sys.exit(f"{len(runs)} of {asked.weeks} weeks were released")
    if any(second.began < first.ended for first, second in pairwise(runs)):
        sys.exit("a week began before the one before it had ended")
    part = min(_QUARTER, asked.weeks)
    early, late = (
        statistics.median(run.took_s for run in some) for some in (runs[:part], runs[-part:])
    )
    print(
        Held(f"seconds of all {asked.weeks} weeks, in order", whole.wall_s, None),
        Held(f"seconds of a week, median of the first {part}", early, None),
        Held(f"seconds of a week, median of the last {part}", late, None),
        sep="\n",
    )


if __name__ == "__main__":
    main()
