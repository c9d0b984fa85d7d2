"""A step in a task: its identifier travels, a refusal is reported once, and no raw value leaves."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from socket import gaierror
from ssl import SSLCertVerificationError
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from small_deployment import Deployment
from sqlalchemy.exc import OperationalError

from turnstile.errors import BudgetExceeded, StoreError, StoreObjectGone, TurnstileError
from turnstile.pipeline import steps
from turnstile.pipeline.landing import fetching
from turnstile.pipeline.landing.fetching import Elsewhere

CANARY = "3085220012345678"
SYDNEY = ZoneInfo("Australia/Sydney")
START = datetime(2016, 7, 25, tzinfo=SYDNEY).astimezone(UTC)
END = START + timedelta(weeks=1)
INTERVAL = {"data_interval_start": START, "data_interval_end": END}


@pytest.fixture
def wait_task(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("wait_task")


@pytest.fixture
def exceptions(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("airflow.sdk.exceptions")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    return tmp_path


def _step_that_raises(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(programme: str, week: str, revision: int) -> str:
        assert (programme, week, revision) == ("opal", "2016-W30", 0)
        raise error

    monkeypatch.setattr(steps, "step_named", lambda _: fail)


def test_only_an_identifier_travels(step_task: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "step_named", lambda name: lambda *key: f"{name}:{key}")
    answer = step_task.run_step("count", "opal", **INTERVAL)
    assert answer == "count:('opal', '2016-W30', 0)"


def test_a_step_says_its_whole_sentence_how_far_it_is_and_what_comes_next(
    step_task: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(steps, "step_named", lambda name: getattr(steps, name))
    monkeypatch.setattr(steps, "count", lambda *_: "digest")
    with caplog.at_level("INFO", logger="turnstile"):
        step_task.run_step("count", "opal", **INTERVAL)
    number, of = steps.STEPS.index("count") + 1, len(steps.STEPS)
    following = steps.STEPS[number]
    said = f"opal/2016-W30/r0: count is done, {number} of {of} steps; next is {following}: "
    assert said + (getattr(steps, following).__doc__ or "").split("\n")[0] in caplog.text


@pytest.mark.parametrize(
    ("step", "said"),
    [("ingest", {}), ("draw", {"sealed_digest": "d16"}), ("publish", {"manifest_digest": "d16"})],
)
def test_an_asset_event_names_week_revision_and_a_public_digest_alone(
    step: str, said: dict[str, str], step_task: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "step_named", lambda _: lambda *_: "d16")
    monkeypatch.setattr(step_task, "draw_apart", lambda *_: "d16")
    events = importlib.import_module("airflow.sdk.execution_time.context").OutletEventAccessors()
    step_task.run_step(step, "opal", outlet_events=events, **INTERVAL)
    (asset,) = step_task._assets("opal", step, 1)
    assert events[asset].extra == {"week": "2016-W30", "revision": 0} | said


def test_a_refusal_is_final_and_carries_its_sentence(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step_that_raises(monkeypatch, BudgetExceeded("asks for 2, 1 is left"))
    with pytest.raises(exceptions.AirflowFailException, match="asks for 2, 1 is left"):
        step_task.run_step("reserve", "opal", **INTERVAL)


def test_no_raw_value_travels_in_an_unforeseen_failure(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    _step_that_raises(monkeypatch, ValueError("could not convert card 3085220012345678"))
    with pytest.raises(exceptions.AirflowFailException) as caught:
        step_task.run_step("ingest", "opal", **INTERVAL)
    assert "3085220012345678" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    (report,) = (home / "private/failures").iterdir()
    assert "3085220012345678" in report.read_text(encoding="utf-8")
    assert report.name in str(caught.value)


def test_no_raw_value_travels_where_no_report_can_be_written(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    _step_that_raises(monkeypatch, ValueError(f"could not convert card {CANARY}"))
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(exceptions.AirflowFailException, match="No space left on device") as caught:
        step_task.run_step("ingest", "opal", **INTERVAL)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert not list((home / "private/failures").iterdir())


def test_a_fault_of_the_infrastructure_is_tried_again(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step_that_raises(monkeypatch, ConnectionResetError("10.0.0.1"))
    with pytest.raises(exceptions.AirflowException) as caught:
        step_task.run_step("ingest", "opal", **INTERVAL)
    assert not isinstance(caught.value, exceptions.AirflowFailException)
    assert "10.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [StoreObjectGone("bucket", "a unit is gone", ("a unit",)), OSError()]
)
@pytest.mark.parametrize(("try_number", "is_told"), [(3, False), (4, True)])
def test_an_outage_that_outlasted_its_tries_is_told_by_its_kind(
    step_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    error: Exception,
    try_number: int,
    *,
    is_told: bool,
) -> None:
    """It was told as a run that died, without the step and without a word of the store."""
    _step_that_raises(monkeypatch, error)
    instance = SimpleNamespace(try_number=try_number, max_tries=3, xcom_push=lambda *_: None)
    with pytest.raises(exceptions.AirflowException) as caught:
        step_task.run_step("count", "opal", **INTERVAL, ti=instance)
    assert not isinstance(caught.value, exceptions.AirflowFailException)
    lines = _journal(home) if (home / "operations/journal/opal").exists() else []
    said = [(line["happening"], line["told"]["kind"]) for line in lines]
    assert said == [("failed", type(error).__name__)] * is_told


def test_a_run_that_stands_for_no_week_is_refused(
    step_task: ModuleType, exceptions: ModuleType
) -> None:
    with pytest.raises(exceptions.AirflowFailException, match="data interval: the run has none"):
        step_task.run_step("ingest", "opal")


def _wait(
    wait_task: ModuleType,
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
    started: datetime | None = None,
) -> Any:
    for name in ("wait_task", "period_of_run"):
        monkeypatch.setattr(importlib.import_module(name), "system_clock", lambda: now)
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    context = {"data_interval_start": START, "data_interval_end": END, "run_id": "backfill__1"}
    return task.execute(context | {"dag_run": SimpleNamespace(start_date=started or END)})


def test_a_week_that_is_over_but_not_final_waits_without_a_worker(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        _wait(wait_task, END + timedelta(minutes=1), monkeypatch)
    assert deferred.value.trigger.moment == datetime(2016, 8, 1, 10, tzinfo=SYDNEY)


def test_a_final_week_without_files_waits_for_them_and_not_for_ever(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        _wait(wait_task, END + timedelta(days=1), monkeypatch)
    assert deferred.value.trigger.moment == END + timedelta(days=1, minutes=10)
    waits = _journal(home)[-1]
    assert (waits["happening"], waits["told"]["sentence"]) == (
        "waits",
        "no file in landing/opal/2016-W30",
    )
    missing = "Week 2016-W30 did not arrive: no file in landing/opal/2016-W30"
    with pytest.raises(exceptions.AirflowFailException, match=missing):
        _wait(wait_task, END + timedelta(days=3), monkeypatch)
    assert _journal(home)[-1]["told"]["kind"] == "NotArrived"


def _server_raises(monkeypatch: pytest.MonkeyPatch, error: Exception, **answers: Any) -> None:
    """Let the server of the files answer with an error, as the library of its hook raises it."""

    def files(_: str) -> Any:
        raise error

    server = SimpleNamespace(**{"files": files} | answers)
    servers = importlib.import_module("landing_servers")
    monkeypatch.setenv("TURNSTILE_LANDING_FROM", "opal=sftp://authority/out/{week}")
    monkeypatch.setattr(servers, "server_of", lambda _: server)


def _of_library(name: str, **told: Any) -> Exception:
    """Return an error of a provider's library, which is not here, as far as it tells of itself."""
    error = type(name, (Exception,), {"__module__": "library"})("10.0.0.1, user opal")
    error.args = told.pop("args", error.args)
    vars(error).update(told)
    return error


_AMAZON_LATE = {"ResponseMetadata": {"HTTPStatusCode": 400}, "Error": {"Code": "RequestTimeout"}}
_AMAZON_MOVED = {
    "ResponseMetadata": {"HTTPStatusCode": 301},
    "Error": {"Code": "PermanentRedirect"},
}
_AMAZON_NO_BUCKET = {
    "ResponseMetadata": {"HTTPStatusCode": 404},
    "Error": {"Code": "NoSuchBucket"},
}
_AMAZON_NO_KEY = {"ResponseMetadata": {"HTTPStatusCode": 404}, "Error": {"Code": "NoSuchKey"}}
_UNTRUSTED = "SSL validation failed for 10.0.0.1 [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"


class _OfAzure(StrEnum):
    """Codes as Azure's library tells them."""

    OBJECT = "BlobNotFound"
    ARCHIVED = "BlobArchived"


_AMAZON = {"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": {"Code": "AccessDenied"}}


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        TimeoutError("timed out"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
        EOFError(),
        _of_library("SSHException"),
        _of_library("HTTPClientError"),
        _of_library("RetriesExceededError"),
        _of_library("DataCorruption", response=object()),
        _of_library("RefreshError", retryable=True),
        _of_library("ServiceUnavailable", code=503),
        _of_library("ClientError", response=_AMAZON_LATE),
        _of_library("HttpResponseError", status_code=429),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_server_that_is_away_is_waited_for_and_not_for_ever(
    wait_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    error: Exception,
) -> None:
    """The run failed within four minutes, of a server that was away over a night."""
    _server_raises(monkeypatch, error)
    landed = home / "landing/opal/2016-W30/opal.csv"
    landed.parent.mkdir(parents=True)
    landed.touch()  # what else it holds nobody knows
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        _wait(wait_task, END + timedelta(days=1), monkeypatch)
    assert deferred.value.trigger.moment == END + timedelta(days=1, minutes=10)
    said = f"the server of the files is away, or writes to one ({type(error).__name__})"
    assert _journal(home)[-1]["told"]["sentence"] == said
    late = END + timedelta(days=30)
    with pytest.raises(exceptions.TaskDeferred):
        _wait(wait_task, late, monkeypatch, started=late - timedelta(days=1))
    stopped = re.escape(f"Week 2016-W30 did not arrive: {said}")
    with pytest.raises(exceptions.AirflowFailException, match=stopped):
        _wait(wait_task, late, monkeypatch, started=late - timedelta(days=2))


@pytest.mark.parametrize(
    "gone",
    [
        FileNotFoundError(errno.ENOENT, "No such file"),
        _of_library("NotFound", code=404),
        _of_library("ClientError", response={"ResponseMetadata": {"HTTPStatusCode": 404}}),
        _of_library("ResourceNotFoundError", status_code=404),
        _of_library("ClientError", response=_AMAZON_NO_KEY),
        _of_library("ResourceNotFoundError", status_code=404, error_code=_OfAzure.OBJECT),
        _of_library("ResourceModifiedError", status_code=412),
        _of_library("S3DownloadFailedError"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_object_that_goes_between_list_and_copy_is_a_delivery_that_changes(
    wait_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    gone: Exception,
) -> None:
    """It was told as a refusal of settings, and stopped the run."""

    def copy(*_: object) -> None:
        raise gone

    _server_raises(monkeypatch, gone, files=lambda _: [Elsewhere("a.csv", 1, 0)], copy=copy)
    with pytest.raises(exceptions.TaskDeferred):
        _wait(wait_task, END + timedelta(days=1), monkeypatch)
    said = "(what it had listed is gone or other; the delivery changes while it is read)"
    assert _journal(home)[-1]["told"]["sentence"].endswith(said)
    fetch = importlib.import_module("fetch_task").FetchNew(task_id="fetch", programme="opal")
    assert said in fetch.execute(INTERVAL)


@pytest.mark.parametrize(
    "refused",
    [
        _of_library("ClientError", response=_AMAZON_NO_BUCKET),
        _of_library("ResourceExistsError", status_code=409, error_code=_OfAzure.ARCHIVED),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_that_no_wait_makes_possible_is_no_delivery_that_changes(
    wait_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    refused: Exception,
) -> None:
    """A bucket that is gone, or an object in an archive, was waited for two days."""

    def copy(*_: object) -> None:
        raise refused

    _server_raises(monkeypatch, refused, files=lambda _: [Elsewhere("a.csv", 1, 0)], copy=copy)
    with pytest.raises(exceptions.AirflowFailException, match="says is refused"):
        _wait(wait_task, END + timedelta(days=1), monkeypatch)


def _wrapped(by: str) -> Exception:
    """Return what a library makes of a name that has no address."""
    try:
        try:
            raise gaierror(-2, "Name or service not known: 10.0.0.1")
        except gaierror:
            raise _of_library("NewConnectionError")  # noqa: B904 - as some do
    except Exception as error:  # noqa: BLE001 - which has no class here
        wrapped = _of_library(by)
        wrapped.__cause__ = error
        return wrapped


@pytest.mark.parametrize(
    ("address", "set_in", "error"),
    [
        ("sftp://authority/out/{week}", "host", gaierror(-2, "Name or service not known")),
        (
            "s3://authority/b/{week}",
            "endpoint_url or region_name",
            _wrapped("EndpointConnectionError"),
        ),
        ("wasb://authority/b/{week}", "host or the login", _wrapped("ServiceRequestError")),
    ],
)
def test_a_name_without_an_address_is_told_at_once_with_where_it_is_set(
    wait_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    set_in: str,
    error: Exception,
) -> None:
    """A mistyped host was two days of a server that is away."""
    _server_raises(monkeypatch, error)
    monkeypatch.setenv("TURNSTILE_LANDING_FROM", f"opal={address}")
    said = (
        "its name has no address: unless the name service is away, it is mistyped in the "
        f"{set_in} of the connection 'authority', in Admin, Connections"
    )
    fetch = importlib.import_module("fetch_task").FetchNew(task_id="fetch", programme="opal")
    assert said in fetch.execute(INTERVAL)
    with pytest.raises(exceptions.TaskDeferred):
        _wait(wait_task, END + timedelta(days=1), monkeypatch)
    with pytest.raises(exceptions.AirflowFailException, match=re.escape(said)):
        _wait(wait_task, END + timedelta(days=30), monkeypatch)


@pytest.mark.parametrize(
    "ours",
    [StoreError("s3://private", "is away"), OperationalError("", None, Exception("10.0.0.1"))],
)
def test_what_is_away_of_our_own_is_no_server_of_files(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, ours: Exception
) -> None:
    """A ledger or a store that is away is tried again, and not said to be the authority's."""
    _server_raises(monkeypatch, ours, files=lambda _: [])
    monkeypatch.setattr(fetching, "is_deleted", Mock(side_effect=ours))
    with pytest.raises(exceptions.AirflowException) as stopped:
        _wait(wait_task, END + timedelta(days=30), monkeypatch)
    assert not isinstance(stopped.value, exceptions.AirflowFailException)
    assert "the server of the files" not in str(stopped.value)
    fetch = importlib.import_module("fetch_task").FetchNew(task_id="fetch", programme="opal")
    with pytest.raises(exceptions.AirflowException):
        fetch.execute(INTERVAL)


@pytest.mark.parametrize(
    "error",
    [
        None,  # there is no such connection
        PermissionError(errno.EACCES, "Permission denied"),
        _of_library("AuthenticationException"),
        _of_library("ClientError", response=_AMAZON),
        _of_library("NoCredentialsError"),
        _of_library("NoRegionError"),
        _of_library("SSLError", args=(_UNTRUSTED,)),
        SSLCertVerificationError(1, _UNTRUSTED),
        _of_library("IncompatiblePeer"),
        _of_library("RefreshError"),
        _of_library("SSHException", args=("Server '10.0.0.1' not found in known_hosts",)),
        _of_library("ClientError", response=_AMAZON_MOVED),
        _of_library("NotFound", code=404),
        _of_library("ResourceNotFoundError", status_code=404),
    ],
    ids=lambda error: type(error).__name__,
)
def test_settings_that_a_server_refuses_stop_the_run_at_once_and_say_what_to_see_to(
    wait_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
) -> None:
    error = error or exceptions.AirflowNotFoundException("The conn_id `10.0.0.1` isn't defined")
    _server_raises(monkeypatch, error)
    kind = type(error).__name__
    fetch = importlib.import_module("fetch_task").FetchNew(task_id="fetch", programme="opal")
    said = rf"connection 'authority' \(sftp\) says is refused \({kind}\); see in Admin, Connections"
    with pytest.raises(exceptions.AirflowFailException, match=said) as refused:
        fetch.execute(INTERVAL)
    assert "10.0.0.1" not in str(refused.value)
    with pytest.raises(exceptions.AirflowFailException, match=said):
        _wait(wait_task, END + timedelta(days=1), monkeypatch)


def test_a_full_disk_is_no_server_that_is_away(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _server_raises(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(exceptions.AirflowException, match="OSError; an operator"):
        _wait(wait_task, END + timedelta(days=1), monkeypatch)


def test_a_final_week_with_files_goes_on_at_once_and_says_what_it_costs(
    wait_task: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    landed = home / "landing/opal/2016-W30/opal.csv"
    landed.parent.mkdir(parents=True)
    landed.touch()
    later = datetime.fromtimestamp(landed.stat().st_ctime, UTC) + timedelta(minutes=2)
    note = _wait(wait_task, later, monkeypatch)
    assert note.startswith("opal/2016-W30/r0: never drawn: once its rows pass validation, ")
    (line,) = _journal(home)
    assert line["run_id"] == "backfill__1"
    assert line["told"]["note"] == note


def test_a_week_whose_files_are_written_to_waits_until_they_are_quiet(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    landed = home / "landing/opal/2016-W30/opal.csv"
    landed.parent.mkdir(parents=True)
    landed.touch()
    changed = datetime.fromtimestamp(landed.stat().st_ctime, UTC)
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        _wait(wait_task, changed + timedelta(seconds=59), monkeypatch)
    assert deferred.value.trigger.moment == changed + timedelta(minutes=1)


@pytest.mark.parametrize("is_written_again", [False, True])
def test_files_that_are_written_to_are_not_read_whoever_marked_the_wait(
    step_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    *,
    is_written_again: bool,
) -> None:
    landed = home / "landing/opal/2016-W30/opal.csv"
    landed.parent.mkdir(parents=True)
    landed.touch()
    changed, slept = datetime.fromtimestamp(landed.stat().st_ctime, UTC), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if is_written_again:
            landed.write_text("x")

    monkeypatch.setattr(
        step_task, "system_clock", lambda: changed + timedelta(seconds=20 + sum(slept))
    )
    monkeypatch.setattr(step_task.time, "sleep", sleep)
    monkeypatch.setattr(steps, "step_named", lambda _: lambda *_: "read")
    if is_written_again:
        said = "opal/2016-W30/r0: files are still written to; read from"
        with pytest.raises(exceptions.AirflowFailException, match=said):
            step_task.run_step("ingest", "opal", **INTERVAL)
    else:
        assert step_task.run_step("ingest", "opal", **INTERVAL) == "read"
        assert step_task.run_step("ingest", "opal", **INTERVAL) == "read"
    assert slept == [40]


def _journal(home: Path) -> list[dict[str, Any]]:
    text = (home / "operations/journal/opal/2016-W30.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def _by_hand(week: str, logical: datetime | None) -> dict[str, Any]:
    dag_run = SimpleNamespace(run_type="manual", triggering_user_name="admin", logical_date=logical)
    return {"dag_run": dag_run, "params": {"week": week}, "run_id": "by_hand", **INTERVAL}


def test_a_run_by_hand_without_a_week_is_refused_before_anything(
    wait_task: ModuleType, exceptions: ModuleType, home: Path
) -> None:
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    with pytest.raises(exceptions.AirflowFailException, match="fill the form's field `week`"):
        task.execute(_by_hand("", END + timedelta(days=2)))
    with pytest.raises(exceptions.AirflowFailException, match="2099-W01 is not over"):
        task.execute(_by_hand("2099-W01", None))
    assert not (home / "operations").exists()


@pytest.mark.parametrize(
    ("officers", "is_refused"), [("[admin, ada]", True), ("[grace, ada]", False)]
)
def test_a_week_that_nobody_could_approve_is_refused_before_it_is_read(
    wait_task: ModuleType,
    exceptions: ModuleType,
    deployment: Deployment,
    officers: str,
    *,
    is_refused: bool,
) -> None:
    deployment.edit("opal", "{required: false}", "{required: true, persons: 2}")
    people = deployment.include / "people.yaml"
    people.write_text(f"release_officer: {officers}\n", encoding="utf-8")
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    with pytest.raises((exceptions.AirflowFailException, exceptions.TaskDeferred)) as said:
        task.execute(_by_hand("2016-W30", None))
    assert ("set this week going may not approve it (admin)" in str(said.value)) == is_refused
    assert (
        "people.yaml: release_officer: opal/2016-W30/r0 has 0 of 2" in str(said.value)
    ) == is_refused


def _unreadable() -> Any:
    raise TurnstileError("Airflow answers 403 to GET /api/v2/eventLogs")


@pytest.mark.parametrize(
    ("asked", "is_refused"),
    [
        ("required: true, persons: 2", True),
        ("required: true, persons: 1, not_the_starter: true", True),
        ("required: true, persons: 2, not_the_starter: false", False),
        ("required: false", False),
    ],
)
def test_a_week_whose_answers_would_count_for_nothing_is_refused_before_it_is_read(
    wait_task: ModuleType,
    exceptions: ModuleType,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    *,
    is_refused: bool,
) -> None:
    """Nobody may say yes where who cleared the run has to be known, and its log is shut."""
    deployment.edit("opal", "{required: false}", f"{{{asked}}}")
    people = deployment.include / "people.yaml"
    people.write_text("release_officer: [grace, ada]\n", encoding="utf-8")
    monkeypatch.setattr(importlib.import_module("audit_log"), "airflow_api", _unreadable)
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    with pytest.raises((exceptions.AirflowFailException, exceptions.TaskDeferred)) as said:
        task.execute(_by_hand("2016-W30", None))
    assert ("cannot be read from Airflow's audit log" in str(said.value)) == is_refused


@pytest.mark.parametrize(
    ("week", "logical", "expected"),
    [
        ("2016-W31", None, "2016-W31"),
        ("2016-W31", END + timedelta(hours=3), "2016-W31"),
        ("2016-W30", START, "2016-W30"),
        ("", START, "2016-W30"),
    ],
)
def test_a_run_by_hand_names_its_week_in_the_form_or_by_the_weeks_first_instant(
    step_task: ModuleType, week: str, logical: datetime | None, expected: str
) -> None:
    assert step_task
    module = importlib.import_module("period_of_run")
    _, period = module.programme_and_period("opal", _by_hand(week, logical))
    assert str(period) == expected


def test_a_run_by_hand_does_not_take_the_place_of_another_weeks_run(
    wait_task: ModuleType, exceptions: ModuleType, home: Path
) -> None:
    # Release weeks finds the run of a week by its date: it would clear this one for 2016-W30.
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    told = "it names 2016-W31, and its logical date is that of 2016-W30"
    with pytest.raises(exceptions.AirflowFailException, match=told):
        task.execute(_by_hand("2016-W31", START))
    assert not (home / "operations").exists()


@pytest.mark.parametrize(
    ("week", "what"), [("", "goes on"), ("2016-W30", "goes on"), ("2016-W31", "stops")]
)
def test_a_backfill_whose_field_names_another_week_than_its_date_releases_nothing(
    week: str,
    what: str,
    step_task: ModuleType,
    exceptions: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    monkeypatch.setattr(steps, "step_named", lambda _: lambda *key: f"{key}")
    of_backfill = SimpleNamespace(run_type="backfill", logical_date=START)
    context = _by_hand(week, START) | {"dag_run": of_backfill}
    if what == "goes on":
        assert step_task.run_step("count", "opal", **context) == "('opal', '2016-W30', 0)"
        return
    with pytest.raises(exceptions.AirflowFailException, match="stands for 2016-W30 by its dates"):
        step_task.run_step("count", "opal", **context)
    assert not (home / "operations").exists()


def _lineage(home: Path) -> list[dict[str, Any]]:
    text = (home / "operations/lineage.ndjson").read_text()
    return [json.loads(line) for line in text.splitlines()]


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for child in value.values() for leaf in _leaves(child)]
    return (
        [leaf for child in value for leaf in _leaves(child)] if isinstance(value, list) else [value]
    )


def test_lineage_names_the_zones_and_nothing_of_the_rows(
    step_task: ModuleType, exceptions: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fine:
        fine.setattr(steps, "step_named", lambda _: lambda *_key: CANARY)
        fine.setattr(step_task, "draw_apart", lambda *_key: CANARY)
        for step in steps.STEPS:
            step_task.run_step(step, "opal", run_id="opal_2016-W30", **INTERVAL)
    _step_that_raises(monkeypatch, ValueError(CANARY))
    with pytest.raises(exceptions.AirflowFailException):
        step_task.run_step("ingest", "opal", run_id="opal_2016-W30", **INTERVAL)
    events = _lineage(home)
    ends = [run_event for run_event in events if run_event["eventType"] != "START"]
    assert [
        (end["eventType"], end["inputs"][0]["name"], [made["name"] for made in end["outputs"]])
        for end in ends
    ] == [
        ("COMPLETE", "opal_landing", ["opal_private"]),
        ("COMPLETE", "opal_private", ["opal_embargoed"]),
        ("COMPLETE", "opal_embargoed", ["opal_public"]),
        ("FAIL", "opal_landing", []),
    ]
    assert len({end["run"]["runId"] for end in ends}) == 4
    assert [
        run_event["run"]["runId"] for run_event in events if run_event["eventType"] == "START"
    ] == [end["run"]["runId"] for end in ends]
    for event in events:
        assert event["eventType"] in {"START", "COMPLETE", "FAIL"}
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        assert UUID(event["run"]["runId"])
        assert event["job"]["name"].startswith("release_opal.")
        assert {"_producer", "_schemaURL"} <= event["run"]["facets"]["nominalTime"].keys()
        assert all(CANARY not in leaf for leaf in _leaves(event))
        assert not any(
            key in json.dumps(event) for key in ("Statistics", "rowCount", "errorMessage")
        )


def test_a_step_whose_lineage_cannot_be_written_goes_on(
    step_task: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "operations").mkdir()
    (home / "operations/lineage.ndjson").mkdir()
    monkeypatch.setattr(steps, "step_named", lambda _: lambda *_key: "done")
    assert step_task.run_step("ingest", "opal", **INTERVAL) == "done"
