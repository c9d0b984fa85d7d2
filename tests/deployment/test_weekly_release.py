"""What `make release` generates before Airflow starts."""

from __future__ import annotations

import signal
import subprocess
from datetime import UTC, datetime
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
