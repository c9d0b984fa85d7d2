"""What `make release` generates before Airflow starts."""

from __future__ import annotations

import signal
import subprocess
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from small_deployment import Deployment

from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings
from turnstile_native import weekly_release
from turnstile_native.native_environment import Secrets, airflow_environment


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


@pytest.mark.parametrize(
    ("named", "there", "weeks"),
    [
        (None, (), ("2026-W46", "2026-W47")),
        (None, ("landing/itms/2016-W31", "public/opal/2016-W30"), ("2016-W30", "2016-W31")),
        ("2016-W33", ("public/opal/2016-W30",), ("2016-W33", "2016-W34")),
    ],
)
def test_the_weeks_of_a_demonstration_are_over_just_now_or_those_it_has_already(
    deployment: Deployment, named: str | None, there: tuple[str, ...], weeks: tuple[str, ...]
) -> None:
    for folder in there:
        (deployment.home / folder).mkdir(parents=True)
    settings = Settings.from_environment()
    order = weekly_release.parse_order(
        ["--weeks", "2", *(["--first-week", named] if named else [])]
    )
    both = [load_programme(name, settings.include) for name in ("opal", "itms")]
    now = datetime(2026, 11, 25, tzinfo=UTC)
    chosen_weeks = weekly_release.weeks_to_release(order, settings, both, now)
    assert tuple(map(str, chosen_weeks)) == weeks


def test_what_is_asked_for_is_adopted_in_that_airflow_and_nothing_else(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[frozenset[str]] = []

    def release(_order: Any, settings: Settings, _programmes: Any, _weeks: Any) -> int:
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


class _Airflow:
    """An Airflow of which only what is asked of it is known, and its processes."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self.asked.append(name) or ()


@pytest.mark.parametrize("are_out", [False, True])
def test_a_database_that_is_new_has_the_pool_and_what_waits_lives_on_where_nothing_is_asked_for(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, *, are_out: bool
) -> None:
    airflow, package = _Airflow(), SimpleNamespace(digest="ab" if are_out else None)
    monkeypatch.setattr(weekly_release, "AirflowApi", lambda *_: airflow)
    monkeypatch.setattr(weekly_release, "NativeStack", lambda *_: nullcontext(airflow))
    monkeypatch.setattr(weekly_release, "find_packages", lambda *_: (package,))
    monkeypatch.setattr(weekly_release, "found_database", lambda _: None)
    monkeypatch.setattr(weekly_release, "above_noise_lines", lambda _: ())
    monkeypatch.setattr(weekly_release, "summary_lines", lambda *_: ())
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    order = weekly_release.parse_order(["--programme", "opal", "--stay", "--port", "0"])
    settings = Settings.from_environment()
    opal = load_programme("opal", deployment.include)
    weekly_release._release(order, settings, (opal,), (ServiceWeek(2016, 30),))
    assert "make_pool" in airflow.asked
    assert ("abandon_unfinished" in airflow.asked) == (not are_out)
