"""Metrics as a collector receives them from Airflow: the gauges, and nothing that depends on rows.

The watchdog's own code runs in a process whose Airflow has the settings of docker-compose.yaml, and
sends by OpenTelemetry's protocol to a server of this machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from pytest_httpserver import HTTPServer
from small_deployment import Deployment
from watched_place import INCLUDE, OPAL, Place

from turnstile.ledger.records import ReleaseKey
from turnstile.operations.calendar_of_weeks import calendar_of, next_week
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.operations.watchdog.gauges import gauges
from turnstile.operations.week_states import Evidence
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.loading import programme_files

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["x-common-environment"]
DASHBOARD = json.loads((ROOT / "docker/grafana/turnstile.json").read_text())
CANARY = "3085220012345678"
WATCH = """
import watch_dags
from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
stats.initialize(factory=stats_utils.get_stats_factory(),
                 export_legacy_names=conf.getboolean("metrics", "legacy_names_on"))
watch_dags.run_in_airflow = lambda *_: None
watch_dags.send_alerts = lambda *_: ()
watch_dags.watch()
stats.timing("task.duration", 1234.5, tags={"dag_id": "release_opal", "task_id": "ingest"})
stats.timing("dag.release_opal.ingest.duration", 1234.5)
stats.gauge("rows", 1, tags={"card": "3085220012345678"})
stats.incr("ti_failures", tags={"dag_id": "release_opal", "task_id": "ingest"})
"""


@pytest.fixture
def received(
    published: Deployment, airflow_home: Path, httpserver: HTTPServer
) -> dict[str, list[tuple[float, dict[str, str]]]]:
    """What arrived: names with values and labels."""
    (published.landing("opal") / f"{CANARY}.csv").write_text(CANARY)
    answer = ExportMetricsServiceResponse().SerializeToString()
    httpserver.expect_request("/v1/metrics", method="POST").respond_with_data(answer)
    metrics = {name: value for name, value in COMPOSE.items() if "METRICS" in name}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", WATCH],
        env={
            **os.environ,  # noqa: TID251 - handed on
            **metrics,
            "AIRFLOW_HOME": str(airflow_home),
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": httpserver.url_for("").rstrip("/"),
            "OTEL_EXPORTER_OTLP_PROTOCOL": COMPOSE["OTEL_EXPORTER_OTLP_PROTOCOL"],
            "PYTHONPATH": f"{ROOT / 'include'}:{ROOT / 'plugins'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    bodies = [request.get_data() for request, _ in httpserver.log]
    assert all(CANARY.encode() not in body for body in bodies)
    return dict(_points(bodies))


def _points(bodies: list[bytes]) -> Iterator[tuple[str, list[tuple[float, dict[str, str]]]]]:
    for body in bodies:
        request = ExportMetricsServiceRequest()
        request.ParseFromString(body)
        for metric in (m for r in request.resource_metrics for s in r.scope_metrics
                       for m in s.metrics):  # fmt: skip
            points = [*metric.gauge.data_points, *metric.sum.data_points]
            yield metric.name, [
                (point.as_double or point.as_int,
                 {attribute.key: attribute.value.string_value for attribute in point.attributes})
                for point in points
            ]  # fmt: skip


def test_a_collector_receives_the_gauges_and_nothing_that_depends_on_rows(
    received: dict[str, list[tuple[float, dict[str, str]]]],
) -> None:
    assert set(received) == {
        "airflow.turnstile.ledger_entries",
        "airflow.turnstile.ledger_problems",
        "airflow.turnstile.cap_taken_pct",
        "airflow.turnstile.attempts",
        "airflow.turnstile.attempts_open",
        "airflow.turnstile.weeks_behind",
        "airflow.ti_failures",  # the control: it is on the list
    }
    names = {file.name for file in programme_files(INCLUDE)}
    known = {
        "programme": names,
        "state": {"reserved", "drawing", "sealed", "published", "void", "burned"},
        "family": {"opal_cards", "itms_buses"},
        "unit": {unit.value for unit in ProtectionUnit},
        "figure": {"epsilon", "rho", "delta"},
        "window_weeks": {"0", "52"},
    }
    for name, points in received.items():
        for value, labels in points:
            assert value == int(value) >= 0
            if "turnstile" in name:
                assert all(text in known[label] for label, text in labels.items()), labels
    attempts = received["airflow.turnstile.attempts"]
    public = {its["programme"]: value for value, its in attempts if its["state"] == "published"}
    assert (public["opal"], public["itms"], public["opal_year"]) == (1, 1, 0)
    assert received["airflow.turnstile.ledger_problems"] == [(0, {})]


def test_gauges_follow_the_ledger(tmp_path: Path) -> None:
    place = Place.new(tmp_path)

    def now() -> dict[Any, int]:
        picture = LedgerFollower(place.ledger).now()
        return {(gauge.name, *(text for _, text in gauge.labels)): gauge.value
                for gauge in gauges(picture, [OPAL], place.clock.now)}  # fmt: skip

    assert ("turnstile.weeks_behind", "opal") not in now()
    place.publish("2016-W30", 600)
    place.reserve("2016-W31", 100)
    place.clock.now = datetime(2016, 8, 23, tzinfo=UTC)
    values = now()
    assert values["turnstile.weeks_behind", "opal"] == 3
    assert values["turnstile.attempts", "opal", "published"] == 1
    assert values["turnstile.attempts_open", "opal"] == 1
    assert values["turnstile.cap_taken_pct", "opal_cards", "card", "epsilon", "0"] == 70
    place.publish("2016-W33", 100)  # those before it are behind as they were
    assert now()["turnstile.weeks_behind", "opal"] == 2
    place.ledger.declare_no_release(ReleaseKey("opal", "2016-W32"), "ana", "strike")
    place.ledger.withdraw(ReleaseKey("opal", "2016-W33"), "ana", "wrong files")
    assert now()["turnstile.weeks_behind", "opal"] == 1


def test_a_programme_that_went_over_to_longer_periods_is_behind_by_those_alone(
    tmp_path: Path,
) -> None:
    place = Place.new(tmp_path)
    place.publish("2016-W30")
    months = replace(OPAL.schedule, period_days=28, first_day=date(2016, 8, 1))
    longer = replace(OPAL, schedule=months)

    def behind(now: datetime) -> int:
        picture = LedgerFollower(place.ledger).now()
        figures = {gauge.name: gauge.value for gauge in gauges(picture, [longer], now)}
        return figures["turnstile.weeks_behind"]

    assert behind(datetime(2016, 8, 23, tzinfo=UTC)) == 0
    assert behind(datetime(2016, 9, 23, tzinfo=UTC)) == 1
    assert behind(datetime(2018, 8, 23, tzinfo=UTC)) == 26
    marks = calendar_of(longer, LedgerFollower(place.ledger).now(), Evidence(), place.clock.now)
    assert next_week(longer, marks) == "2016-08-01..2016-08-28"


def test_the_dashboard_shows_every_gauge_by_labels_that_it_has(tmp_path: Path) -> None:
    place = Place.new(tmp_path)
    place.publish("2016-W30")
    made: dict[str, set[str]] = {}
    for gauge in gauges(LedgerFollower(place.ledger).now(), [OPAL], place.clock.now):
        made[f"airflow_{gauge.name.replace('.', '_')}"] = {label for label, _ in gauge.labels}
    shown: dict[str, set[str]] = {}
    for panel in DASHBOARD["panels"]:
        (target,) = panel["targets"]
        for name in re.findall(r"airflow_turnstile_\w+", target["expr"]):
            shown.setdefault(name, set()).update(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    assert shown.keys() == made.keys()
    assert all(labels <= made[name] for name, labels in shown.items())
