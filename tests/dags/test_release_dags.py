"""What the DAGs of the release programmes promise."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from turnstile.release.interval import week_of_interval
from turnstile.release.steps import STEPS

ROOT = Path(__file__).resolve().parents[2]
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def _in_order(dag: Any) -> list[str]:
    """Follow the tasks from the first on; each must have one successor at most."""
    (task,) = dag.roots
    order = [task.task_id]
    while task.downstream_list:
        (task,) = task.downstream_list
        order.append(task.task_id)
    return order


def test_every_dag_file_parses(bag: Any) -> None:
    assert bag.import_errors == {}
    files = {path.stem for path in (ROOT / "dags").glob("*.py")}
    assert set(bag.dags) == files


def test_a_dag_of_an_unknown_programme_is_an_import_error_that_says_so(
    parse: Callable[[Path], Any], tmp_path: Path
) -> None:
    text = (ROOT / "dags/release_opal.py").read_text(encoding="utf-8")
    broken = tmp_path / "release_ferries.py"
    broken.write_text(text.replace('"opal"', '"ferries"'), encoding="utf-8")
    (error,) = parse(broken).import_errors.values()
    assert "'ferries' is no programme" in error


def test_a_new_programme_is_one_yaml_and_one_short_file(
    parse: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "include"
    shutil.copytree(ROOT / "include/programmes", include / "programmes")
    opal = (include / "programmes/opal.yaml").read_text(encoding="utf-8")
    ferries = opal.replace("name: opal", "name: ferries")
    (include / "programmes/ferries.yaml").write_text(ferries, encoding="utf-8")
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(include))
    file = tmp_path / "release_ferries.py"
    source = (ROOT / "dags/release_opal.py").read_text(encoding="utf-8")
    file.write_text(source.replace('"opal"', '"ferries"'), encoding="utf-8")
    assert set(parse(file).dags) == {"release_ferries"}


def test_the_steps_follow_each_other_after_the_wait(dag: Any) -> None:
    assert _in_order(dag) == ["wait", *STEPS]


def test_a_run_is_a_week_that_airflow_schedules_or_backfills(dag: Any) -> None:
    assert not dag.catchup
    assert dag.max_active_runs == 1
    assert set(dag.allowed_run_types) == {
        "scheduled",
        "backfill",
        "manual",
    }  # `wait` refuses manual


def test_a_draw_is_never_retried_and_the_rest_is(dag: Any) -> None:
    retries = {task.task_id: task.retries for task in dag.tasks}
    assert retries.pop("draw") == 0
    assert min(retries.values()) > 0


def test_what_charges_or_publishes_shares_one_pool(dag: Any) -> None:
    pooled = {task.task_id for task in dag.tasks if task.pool == "turnstile_ledger"}
    assert pooled == {"reserve", "draw", "publish"}


def test_no_task_logs_what_it_returns(dag: Any) -> None:
    steps = [task for task in dag.tasks if task.task_id in STEPS]
    assert len(steps) == len(STEPS)
    assert not any(task.show_return_value_in_logs for task in steps)


def test_dag_and_tasks_say_what_they_do(dag: Any, bag: Any) -> None:
    assert dag.doc_md.startswith("# ")
    assert dag.tags
    assert all(task.doc_md and task.doc_md.strip().endswith(".") for task in dag.tasks)
    shown = {Path(each.fileloc).name for each in bag.dags.values()}
    assert shown == {f"{dag_id}.py" for dag_id in bag.dags}


def test_the_schedule_gives_whole_service_weeks_over_daylight_saving(dag: Any) -> None:
    base = importlib.import_module("airflow.timetables.base")
    interval = importlib.import_module("airflow.timetables.interval")
    zone = ZoneInfo(str(dag.timetable.timezone if hasattr(dag.timetable, "timezone") else ""))
    timetable = interval.CronDataIntervalTimetable(dag.timetable.expression, timezone=zone.key)
    first = datetime(2016, 9, 19, tzinfo=zone)
    pendulum = importlib.import_module("pendulum")
    last = base.DataInterval(
        pendulum.instance(first), pendulum.instance(datetime(2016, 9, 26, tzinfo=zone))
    )
    unbounded = base.TimeRestriction(earliest=None, latest=None, catchup=True)
    weeks = []
    for _ in range(4):
        last = timetable.next_dagrun_info(
            last_automated_data_interval=last, restriction=unbounded
        ).data_interval
        weeks.append(str(week_of_interval(last.start, last.end, zone=zone, now=LATER)))
    assert weeks == ["2016-W39", "2016-W40", "2016-W41", "2016-W42"]


def test_two_parses_are_equal_when_written_down(parse: Callable[[Path], Any], bag: Any) -> None:
    serialized = importlib.import_module("airflow.serialization.serialized_objects")
    written = serialized.DagSerialization.to_dict
    again = parse(ROOT / "dags")
    for dag_id, dag in bag.dags.items():
        assert written(dag) == written(again.dags[dag_id])
    assert written(bag.dags["release_opal"]) != written(bag.dags["release_itms"])
