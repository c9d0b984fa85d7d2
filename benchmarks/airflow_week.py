"""What Airflow adds to a week: `make bench` runs one of a million trips through a real one.

The run is that of `make release`: generated data, a native Airflow with a real scheduler, in a
folder of its own. Printed is, of each task, how long it waited for the scheduler and a process, and
how long it took, from Airflow's own tables; what passed between tasks; and what Airflow and the
DAG's file take to import, which each task does in a process of its own before its first line. Held
is the wall time of the whole run beside the wait for files, ingest, counting and noise; it says
something on an idle machine only.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from measured import Held, measured

_LIMIT_S = 45.0
# `wait` lasts until the files, which were made a moment ago, have been quiet for a minute
_NOT_HELD = ("wait", "ingest", "count", "draw")
_RELEASE = ["-m", "turnstile_native.weekly_release", "--programme", "opal", "--weeks", "1"]
_ROOT = Path(__file__).resolve().parents[1]
_IMPORTS = f"""
import os, runpy, sys
os.environ["AIRFLOW_HOME"] = os.environ["TURNSTILE_HOME"]
sys.path.insert(0, {str(_ROOT / "plugins")!r})
runpy.run_path({str(_ROOT / "dags" / "release_opal.py")!r})"""
_TASKS = """
    SELECT task_id, queued_dttm, start_date, end_date FROM task_instance
    WHERE dag_id = 'release_opal' AND start_date IS NOT NULL AND end_date IS NOT NULL
    ORDER BY start_date"""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the run, by Airflow's clock."""

    name: str
    queued: datetime
    began: datetime
    ended: datetime

    @property
    def waited_s(self) -> float:
        """From the queue to the first line of the task; what looks again is queued anew."""
        return max(0.0, (self.began - self.queued).total_seconds())

    @property
    def took_s(self) -> float:
        """From its first line to its last."""
        return (self.ended - self.began).total_seconds()


def tasks_of(database: Path) -> list[Task]:
    """Return the tasks of the only run, in order."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute(_TASKS).fetchall()
    return [Task(name, *map(datetime.fromisoformat, times)) for name, *times in rows]


def main() -> None:
    """Release one week, print where its time went, and fail where the limit is passed."""
    with tempfile.TemporaryDirectory() as folder:
        measured(_RELEASE, Path(folder))
        (database,) = Path(folder).rglob("airflow.db")
        tasks = tasks_of(database)
        imports = measured(["-c", _IMPORTS], Path(folder))
    print(f"{'task of opal, 1,000,000 rows':40} {'waited s':>9} {'took s':>9}")
    for task in tasks:
        print(f"{task.name:40} {task.waited_s:9.1f} {task.took_s:9.1f}")
    whole_s = (
        max(instance.ended for instance in tasks) - min(instance.began for instance in tasks)
    ).total_seconds()
    not_held_s = sum(instance.took_s for instance in tasks if instance.name in _NOT_HELD)
    between_s = whole_s - sum(instance.took_s for instance in tasks)
    held = [
        Held("wall seconds of the run", whole_s, None),
        Held("of them between tasks", between_s, None),
        Held(
            "of them waiting for the scheduler", sum(instance.waited_s for instance in tasks), None
        ),
        Held("imports of Airflow and the DAG, of each process", imports.wall_s, None),
        Held("beside the wait for files, ingest, counting, noise", whole_s - not_held_s, _LIMIT_S),
    ]
    print("", *held, sep="\n")
    if any(limit.is_passed for limit in held):
        sys.exit("a limit is passed")


if __name__ == "__main__":
    main()
