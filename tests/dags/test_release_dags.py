"""What the DAGs of the release programmes promise."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from turnstile.errors import InputError
from turnstile.pipeline.landing.fetching import Address
from turnstile.pipeline.steps import STEPS
from turnstile.programme.calendar.release_schedule import period_of_interval
from turnstile.programme.loading import load_programme

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


def test_every_programme_has_a_dag(bag: Any) -> None:
    assert bag.import_errors == {}
    programmes = {path.stem for path in (ROOT / "include/programmes").glob("*.yaml")}
    examples = {"itms_delays", "opal_2017", "opal_flows", "opal_sums", "opal_trip", "opal_year"}
    assert examples < programmes
    programmes -= examples  # until somebody adopts them
    expected = {f"release_{name}" for name in programmes} | {
        "audit_ledger",
        "retention",
        "watchdog",
        "weekly_digest",
    }
    assert set(bag.dags) == expected


def test_a_dag_of_an_unknown_programme_is_an_import_error_that_says_so(
    parse: Callable[[Path], Any], tmp_path: Path
) -> None:
    text = (ROOT / "dags/release_opal.py").read_text(encoding="utf-8")
    broken = tmp_path / "release_ferries.py"
    broken.write_text(text.replace('"opal"', '"ferries"'), encoding="utf-8")
    (error,) = parse(broken).import_errors.values()
    assert "'ferries' is no programme" in error


@pytest.fixture
def programmes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment's own programmes: the shipped ones, and `ferries`, which is new."""
    folder = tmp_path / "include/programmes"
    shutil.copytree(ROOT / "include/programmes", folder)
    shutil.copy(ROOT / "include/examples.yaml", folder.parent)
    opal = (folder / "opal.yaml").read_text(encoding="utf-8")
    ferries = opal.replace("name: opal", "name: ferries")
    (folder / "ferries.yaml").write_text(ferries, encoding="utf-8")
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(folder.parent))
    return folder


def test_a_new_programme_is_one_yaml(
    programmes: Path, parse: Callable[[Path], Any], bag: Any
) -> None:
    assert (programmes / "ferries.yaml").exists()
    parsed_bag = parse(ROOT / "dags")
    assert parsed_bag.import_errors == {}
    assert set(parsed_bag.dags) - set(bag.dags) == {"release_ferries"}
    assert _in_order(parsed_bag.dags["release_ferries"]) == _in_order(
        parsed_bag.dags["release_opal"]
    )


def test_an_example_has_a_dag_only_where_the_deployment_adopts_it(
    parse: Callable[[Path], Any], bag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "release_opal_year" not in bag.dags
    monkeypatch.setenv("TURNSTILE_ADOPTED", "opal_year:itms")  # itms has one anyway
    assert set(parse(ROOT / "dags").dags) - set(bag.dags) == {"release_opal_year"}


def test_files_are_fetched_before_the_wait_where_the_deployment_says_from_where(
    parse: Callable[[Path], Any], bag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = "opal=sftp://authority/out/{week} itms=s3://authority"
    monkeypatch.setenv("TURNSTILE_LANDING_FROM", given)
    parsed_bag = parse(ROOT / "dags")
    (error,) = parsed_bag.import_errors.values()
    assert "'s3://authority' is no address" in error
    assert _in_order(parsed_bag.dags["release_opal"]) == [
        "fetch",
        *_in_order(bag.dags["release_opal"]),
    ]
    fetch = parsed_bag.dags["release_opal"].get_task("fetch")
    assert fetch.queue == parsed_bag.dags["release_opal"].get_task("ingest").queue == "private"


@pytest.mark.parametrize(
    ("kind", "provider"),
    [("sftp", "sftp"), ("s3", "amazon"), ("gs", "google"), ("wasb", "microsoft-azure")],
)
def test_a_server_whose_provider_is_missing_says_which(bag: Any, kind: str, provider: str) -> None:
    assert bag.dags
    servers = importlib.import_module("landing_servers")
    with pytest.raises(InputError, match=f"needs apache-airflow-providers-{provider}, "):
        servers.server_of(Address(kind, "authority", "/out/{week}"))
    with pytest.raises(InputError, match="is no kind of server; use one of sftp"):
        servers.server_of(Address("ftp", "authority", "/out/{week}"))


def test_a_broken_programme_is_named_and_takes_no_other_down(
    programmes: Path, parse: Callable[[Path], Any], bag: Any
) -> None:
    (programmes / "trams.yaml").write_text("name: trains\n", encoding="utf-8")
    (programmes / "rubbish.yaml").write_bytes(b"\xff\xfe: [")
    parsed_bag = parse(ROOT / "dags")
    assert set(parsed_bag.dags) == {*bag.dags, "release_ferries"}
    ((file, error),) = parsed_bag.import_errors.items()
    assert Path(file).name == "check_programmes.py"  # a file of no DAG: none goes stale with it
    assert "trams.yaml:1: title: is missing; add it" in error
    assert "rubbish.yaml: encoding: is not UTF-8" in error


def test_a_programme_whose_dag_cannot_be_made_leaves_no_half_of_one(
    programmes: Path,
    parse: Callable[[Path], Any],
    bag: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (programmes / "ferries.yaml").exists()
    module = importlib.import_module("release_dag")

    def fail(programme: Any) -> tuple[()]:
        if programme.name == "ferries":
            raise ValueError("no questions")
        return ()

    monkeypatch.setattr(module, "questions", fail)
    parsed_bag = parse(ROOT / "dags")
    assert set(parsed_bag.dags) == set(bag.dags)
    (error,) = parsed_bag.import_errors.values()
    assert "ferries.yaml: ValueError: no questions" in error


def test_a_broken_list_of_people_is_reported_and_takes_no_dag_down(
    programmes: Path, parse: Callable[[Path], Any], bag: Any
) -> None:
    (programmes.parent / "people.yaml").write_text("release_officer: ada\n", encoding="utf-8")
    parsed_bag = parse(ROOT / "dags")
    assert set(parsed_bag.dags) == {*bag.dags, "release_ferries"}
    (error,) = parsed_bag.import_errors.values()
    assert "people.yaml: role" in error


def test_a_broken_list_of_examples_is_reported_and_takes_no_dag_down(
    programmes: Path, parse: Callable[[Path], Any], bag: Any
) -> None:
    (programmes.parent / "examples.yaml").write_text("opal: yes\n", encoding="utf-8")
    parsed_bag = parse(ROOT / "dags")
    assert set(parsed_bag.dags) > {*bag.dags, "release_ferries"}
    (error,) = parsed_bag.import_errors.values()
    assert "write a list of programmes' names" in error


def test_a_programme_with_a_file_of_its_own_is_not_made_twice(
    programmes: Path, parse: Callable[[Path], Any], tmp_path: Path
) -> None:
    assert (programmes / "ferries.yaml").exists()
    folder = tmp_path / "dags"
    shutil.copytree(ROOT / "dags", folder)
    text = (folder / "release_opal.py").read_text(encoding="utf-8")
    dag_file = folder / "release_ferries.py"
    dag_file.write_text(text.replace('"opal"', '"ferries"'), encoding="utf-8")
    parsed_bag = parse(folder)
    assert parsed_bag.import_errors == {}
    assert parsed_bag.dags["release_ferries"].fileloc == str(dag_file)


def test_a_task_reads_the_programme_of_its_own_dag_only(
    programmes: Path, parse: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (programmes / "ferries.yaml").exists()
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "release_ferries")
    assert set(parse(ROOT / "dags/release_programmes.py").dags) == {"release_ferries"}


def test_the_steps_follow_each_other_after_the_wait(dag: Any) -> None:
    assert _in_order(dag) == ["wait", "ask_revision", *STEPS]


def test_a_run_is_a_week_that_airflow_schedules_or_backfills(dag: Any) -> None:
    assert not dag.catchup
    assert dag.max_active_runs == 1
    assert set(dag.allowed_run_types) == {
        "scheduled",
        "backfill",
        "manual",
    }  # `wait` refuses manual


def test_who_watches_is_not_paused_at_first_and_a_release_is(bag: Any) -> None:
    for name in ("audit_ledger", "retention", "watchdog", "weekly_digest"):
        assert bag.dags[name].is_paused_upon_creation is False
    assert bag.dags["release_opal"].is_paused_upon_creation is True


def test_a_draw_is_never_retried_and_the_rest_is(dag: Any) -> None:
    retries = {task.task_id: task.retries for task in dag.tasks}
    assert retries.pop("draw") == 0
    assert min(retries.values()) > 0


def test_what_charges_or_publishes_shares_one_pool(dag: Any) -> None:
    pooled = {task.task_id for task in dag.tasks if task.pool == "turnstile_ledger"}
    assert pooled == {"reserve", "draw", "publish"}


def test_each_zones_output_is_an_asset_that_others_may_wait_for(dag: Any) -> None:
    name = dag.dag_id.removeprefix("release_")
    read = {task.task_id: [inlet.name for inlet in task.inlets] for task in dag.tasks}
    name = dag.dag_id.removeprefix("release_")
    assert {step: zones for step, zones in read.items() if zones} == {
        "ingest": [f"{name}_landing"],
        "draw": [f"{name}_private"],
        "publish": [f"{name}_embargoed"],
    }
    made = {task.task_id: [outlet.name for outlet in task.outlets] for task in dag.tasks}
    assert {step: names for step, names in made.items() if names} == {
        "ingest": [f"{name}_private"],
        "draw": [f"{name}_embargoed"],
        "publish": [f"{name}_public"],
    }


def test_owner_time_outs_and_the_version_of_repeated_runs_are_set_on_purpose(dag: Any) -> None:
    assert {task.owner for task in dag.tasks} == {"Example Transport Authority"}
    limited = {task.task_id for task in dag.tasks if task.execution_timeout}
    assert limited == set(STEPS)  # and no wait and no question, which may take days
    assert dag.rerun_with_latest_version
    assert "final at 10:00" in dag.description


def test_the_field_for_a_week_may_stay_empty_and_takes_no_rubbish(dag: Any) -> None:
    field = dag.params.get_param("week")
    assert field.resolve() is None  # an empty text would hold the button of Airflow's dialogs
    exceptions = importlib.import_module("airflow.sdk.exceptions")
    with pytest.raises(exceptions.ParamValidationError):
        field.resolve("next week")


def test_no_task_logs_what_it_returns(dag: Any) -> None:
    steps = [task for task in dag.tasks if task.task_id in STEPS]
    assert len(steps) == len(STEPS)
    assert not any(task.show_return_value_in_logs for task in steps)


def test_dag_and_tasks_say_what_they_do(dag: Any, bag: Any) -> None:
    assert dag.doc_md.startswith("# ")
    assert dag.tags
    assert all(task.doc_md and task.doc_md.strip().endswith(".") for task in dag.tasks)
    files = {path.stem for path in (ROOT / "dags").glob("*.py")}
    for dag_id, each in bag.dags.items():
        stem = dag_id if dag_id in files else "release_programmes"
        assert Path(each.fileloc).name == f"{stem}.py"


def _next_periods(dag: Any, after: datetime, number: int) -> list[str]:
    """Return the periods that Airflow's scheduler runs after a moment, oldest first."""
    base = importlib.import_module("airflow.timetables.base")
    serialized = importlib.import_module("airflow.serialization.serialized_objects")
    pendulum = importlib.import_module("pendulum")
    read_back = serialized.DagSerialization.from_dict(serialized.DagSerialization.to_dict(dag))
    programme = load_programme(dag.dag_id.removeprefix("release_"), ROOT / "include")
    everything = base.TimeRestriction(pendulum.instance(after), None, catchup=True)
    periods, last = [], None
    for _ in range(number):
        info = read_back.timetable.next_dagrun_info(
            last_automated_data_interval=last, restriction=everything
        )
        last = info.data_interval
        assert info.run_after == last.end
        zone, schedule = programme.time.zone, programme.schedule
        period = period_of_interval(last.start, last.end, schedule, zone=zone, now=LATER)
        periods.append(str(period))
    return periods


@pytest.mark.parametrize("name", ["release_opal", "release_itms"])
def test_the_schedule_gives_full_service_weeks_over_daylight_saving(bag: Any, name: str) -> None:
    after = datetime(2016, 9, 20, tzinfo=UTC)
    expected = ["2016-W39", "2016-W40", "2016-W41", "2016-W42"]
    assert _next_periods(bag.dags[name], after, 4) == expected


def test_the_schedule_of_a_month_gives_the_programmes_own_periods(bag: Any) -> None:
    after = datetime(2021, 10, 16, tzinfo=UTC)
    expected = ["2021-11-15..2021-12-15", "2021-12-16..2022-01-15", "2022-01-16..2022-02-15"]
    assert _next_periods(bag.dags["release_itms_month"], after, 3) == expected


def test_periods_over_daylight_saving_begin_at_local_midnight(bag: Any) -> None:
    assert bag.dags
    periods = importlib.import_module("service_periods").ServicePeriods
    pendulum = importlib.import_module("pendulum")
    sydney = ZoneInfo("Australia/Sydney")
    timetable = periods("ferries", date(2022, 9, 1), 10, sydney)
    on_grid = pendulum.datetime(2022, 9, 20, 14)  # midnight of the 21st in Sydney
    interval = timetable.infer_manual_data_interval(run_after=on_grid.add(days=20))
    assert [interval.start.astimezone(sydney), interval.end.astimezone(sydney)] == [
        datetime(2022, 10, 1, tzinfo=sydney),
        datetime(2022, 10, 11, tzinfo=sydney),
    ]
    assert interval.end - interval.start == timedelta(days=10, hours=-1)


def test_runs_are_called_by_programme_and_period(bag: Any) -> None:
    types = importlib.import_module("airflow.utils.types").DagRunType
    pendulum = importlib.import_module("pendulum")
    base = importlib.import_module("airflow.timetables.base")

    def name(dag: str, run_type: str, start: Any) -> str:
        timetable = bag.dags[f"release_{dag}"].timetable
        interval = timetable.infer_manual_data_interval(run_after=start)
        assert interval.start == start
        run_id = timetable.generate_run_id(
            run_type=types(run_type), run_after=interval.end, data_interval=interval
        )
        return str(run_id)

    monday = pendulum.datetime(2016, 8, 14, 14)
    assert name("opal", "scheduled", monday) == "opal_2016-W33"
    assert name("opal", "manual", monday) == "opal_by_hand_20160821T140000.000000"
    month = pendulum.datetime(2021, 11, 14, 18, 30)
    assert name("itms_month", "scheduled", month) == "itms_month_2021-11-15_to_2021-12-15"
    later = bag.dags["release_opal"].timetable.infer_manual_data_interval(
        run_after=monday.add(days=7, seconds=1)
    )
    assert later == base.DataInterval(monday, monday.add(days=7))  # the last week that is over


def test_a_logical_date_that_lies_ahead_is_refused_where_it_is_asked_for(bag: Any) -> None:
    """Airflow begins such a run, does nothing of it, and begins no other run of the DAG."""
    pendulum = importlib.import_module("pendulum")
    bodies = importlib.import_module("airflow.api_fastapi.core_api.datamodels.dag_run")
    timetable = bag.dags["release_opal"].timetable
    dag = SimpleNamespace(
        timetable=timetable,
        validate_partition_key=lambda _: None,
        resolve_partition_date=lambda _: None,
    )

    def asked(**ahead: int) -> Any:
        moment = pendulum.now("UTC").add(**ahead)
        return bodies.TriggerDAGRunPostBody(logical_date=moment).validate_context(dag)

    with pytest.raises(ValueError, match="lies ahead; leave it empty, and name the week in the"):
        asked(days=1)
    assert asked(minutes=5)["data_interval"] == asked(minutes=-5)["data_interval"]


def test_a_dag_that_is_unpaused_late_begins_with_the_period_under_way(
    bag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = importlib.import_module("airflow.timetables.base")
    module = importlib.import_module("service_periods")
    monkeypatch.setattr(module, "system_clock", lambda: datetime(2022, 2, 1, tzinfo=UTC))
    timetable = bag.dags["release_itms_month"].timetable
    pendulum = importlib.import_module("pendulum")
    restriction = base.TimeRestriction(pendulum.datetime(2016, 1, 1), None, catchup=False)
    under_way = datetime(2022, 1, 15, 18, 30, tzinfo=UTC)

    def following(last: Any) -> Any:
        return timetable.next_dagrun_info(
            last_automated_data_interval=last, restriction=restriction
        ).data_interval

    assert following(None).start == under_way
    assert following(following(None)).start == following(None).end
    # What stood still while one period ended goes on with that one; a longer pause is a pause.
    over = timetable.infer_manual_data_interval(run_after=pendulum.datetime(2021, 12, 15, 18, 30))
    before, earlier = (
        timetable._interval(timetable._at(over.start.subtract(days=days))) for days in (1, 32)
    )
    assert (before.end, earlier.end) == (over.start, before.start)
    assert following(before) == over
    assert following(earlier).start == under_way


def test_the_first_period_is_not_lost_if_airflow_asks_at_its_end_before_it_makes_the_run(
    bag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = importlib.import_module("airflow.timetables.base")
    module = importlib.import_module("service_periods")
    pendulum = importlib.import_module("pendulum")
    timetable = bag.dags["release_opal"].timetable
    restriction = base.TimeRestriction(pendulum.datetime(2016, 1, 1), None, catchup=False)
    start, end = pendulum.datetime(2016, 7, 24, 14), pendulum.datetime(2016, 7, 31, 14)
    week = base.DataInterval(start, end)
    paused_long = base.DataInterval(start.subtract(days=70), end.subtract(days=70))

    def first(moment: Any, last: Any) -> Any:
        monkeypatch.setattr(module, "system_clock", lambda: moment)
        return timetable.next_dagrun_info(
            last_automated_data_interval=last, restriction=restriction
        ).data_interval

    for last in (None, paused_long):
        assert first(end.subtract(seconds=1), last) == week
        assert first(end, last) == week
        assert first(end.add(minutes=59), last) == week
        assert first(end.add(minutes=61), last).start == end  # so long ago nobody asked for it
    assert first(end.add(minutes=1), week).start == end  # made once


def test_two_parses_are_equal_when_written_down(parse: Callable[[Path], Any], bag: Any) -> None:
    serialized = importlib.import_module("airflow.serialization.serialized_objects")
    written = serialized.DagSerialization.to_dict
    again = parse(ROOT / "dags")
    for dag_id, dag in bag.dags.items():
        assert written(dag) == written(again.dags[dag_id])
    assert written(bag.dags["release_opal"]) != written(bag.dags["release_itms"])
