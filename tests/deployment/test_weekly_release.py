"""What `make release` generates before Airflow starts."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest
from small_deployment import Deployment

from turnstile.deployment import weekly_release
from turnstile.deployment.native_environment import Secrets, airflow_environment
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings


def test_a_programme_that_reads_anothers_files_has_those_generated(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(command[1:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    week = ServiceWeek(2016, 30)
    year = load_programme("opal_year", deployment.include)
    weekly_release._make_landing_data(Settings.from_environment(), year, (week,))
    assert asked == [["sample", "opal", "--weeks", "2016-W30", "--rows", "1000000"]]
    deployment.landing("opal").mkdir(parents=True)
    (deployment.landing("opal") / "opal-20160725.csv").touch()
    weekly_release._make_landing_data(Settings.from_environment(), year, (week,))
    assert len(asked) == 1  # what lies there is not generated again


def test_what_is_asked_for_is_adopted_in_that_airflow_and_nothing_else(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[frozenset[str]] = []

    def release(_order: Any, settings: Settings, _programmes: Any) -> int:
        made = airflow_environment(settings, Secrets("a", "b", "c", "d"), port=1, inherited={})
        given.append(frozenset(made["TURNSTILE_ADOPTED"].split(":")))
        return 0

    monkeypatch.setattr(weekly_release, "_make_landing_data", lambda *_: None)
    monkeypatch.setattr(weekly_release, "_release", release)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert deployment.include.exists()
    assert weekly_release.main(["--programme", "opal_year", "--programme", "itms"]) == 0
    assert given == [{"opal_year", "itms"}]
    assert Settings.from_environment().adopted == frozenset()
