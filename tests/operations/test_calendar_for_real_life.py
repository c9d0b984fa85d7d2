"""Gaps of years, broken files, examples and queued runs: what the page makes of them."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from watched_place import INCLUDE, Place

from turnstile.cli import main
from turnstile.operations.airflow_now import AirflowNow, RunNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.settings import Settings

OPAL = frozenset({"opal"})
NOW = datetime(2026, 10, 6, 13, tzinfo=UTC)  # Tuesday of W41


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BudgetPage:
    """A deployment of which nothing is released yet, with the examples that come with it."""
    include = tmp_path / "include"
    for name in ("programmes", "domains"):
        shutil.copytree(INCLUDE / name, include / name)
    shutil.copy(INCLUDE / "examples.yaml", include)
    for name, folder in (("HOME", tmp_path), ("INCLUDE", include)):
        monkeypatch.setenv(f"TURNSTILE_{name}", str(folder))
    return BudgetPage(Settings.from_environment(), lambda: NOW)


def _publish(page: BudgetPage, *weeks: str) -> None:
    place = Place.new(page.settings.home)
    place.clock.now = NOW
    for week in weeks:
        place.publish(week)


def _words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_gap_of_ten_years_is_one_line_on_every_page(page: BudgetPage) -> None:
    _publish(page, "2016-W30", "2026-W39", "2026-W40")
    airflow = AirflowNow({"opal": False}, {"opal": ()})
    calendar = page.calendar(OPAL, airflow)
    gap = "2016-W31 to 2026-W38"
    assert f"{gap}: 529 weeks that no run took up" in _words(calendar)
    assert calendar.count("<li") < 40
    assert len(calendar) < 40_000
    budget = page.budget(OPAL, airflow)
    assert budget.count("<li data-state") == 1
    assert f"{gap} overdue" in _words(budget)
    shown = {mark["week"] for mark in page.data("calendar", OPAL, {}, airflow)["opal"]}
    assert len(shown) == 532  # as data, every week is there


def test_a_typo_takes_no_programme_from_page_week_view_digest_and_watchdog(
    page: BudgetPage,
) -> None:
    _publish(page, "2026-W39", "2026-W40")
    airflow = AirflowNow({"opal": False}, {"opal": ()})
    file = page.settings.include / "programmes/opal.yaml"
    lines = file.read_text().splitlines()
    (at,) = [number for number, line in enumerate(lines, 1) if line.startswith("approval:")]
    assert not page.broken(OPAL)
    lines[at - 1] = lines[at - 1].replace("required", "requierd")
    file.write_text("\n".join(lines))
    where = f"opal.yaml:{at}:"
    for shown in (page.budget(OPAL, airflow), page.calendar(OPAL, airflow)):
        words = _words(shown)
        assert "opal cannot be read" in words
        assert where in words
        assert "2 of its weeks are public" in words
    (told,) = [alert for alert in page.watched(airflow) if alert.programme == "opal"]
    assert (told.rule, where in told.sentence) == ("programme_broken", True)


def test_a_file_that_cannot_be_opened_takes_no_page_with_it(page: BudgetPage) -> None:
    """A link of an editor is no programme; one that leads nowhere, or a folder, is broken."""
    _publish(page, "2026-W40")
    programmes = page.settings.include / "programmes"
    (programmes / ".#opal.yaml").symlink_to("olga@desk.4711")
    (programmes / "opal.yaml").unlink()
    (programmes / "opal.yaml").symlink_to("nowhere")
    shown = _words(page.budget(OPAL, AirflowNow()))
    assert "opal cannot be read" in shown
    assert "opal.yaml: file: cannot be read (No such file or directory)" in shown
    assert ".#opal" not in page.names()
    (told,) = [alert for alert in page.watched(AirflowNow()) if alert.programme == "opal"]
    assert told.rule == "programme_broken"


@pytest.mark.parametrize(
    ("file", "content", "rule"),
    [
        ("people.yaml", "release_officer: ada\n", "role: write a list of user names for each role"),
        ("people.yaml", "release_officer: [ada\n", "file: is not YAML"),
        ("people.yaml", None, "file: cannot be read (Is a directory)"),
        ("examples.yaml", "opal: yes\n", "write a list of programmes' names"),
        ("examples.yaml", None, "file: cannot be read (Is a directory)"),
    ],
)
def test_a_file_beside_the_programmes_that_cannot_be_read_is_told_and_the_programmes_go_on(
    file: str,
    content: str | None,
    rule: str,
    page: BudgetPage,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever asked about any programme, page, watchdog or digest, was given an error alone."""
    _publish(page, "2026-W38")
    Place.new(page.settings.home).seal("2026-W39")
    opal = page.settings.include / "programmes/opal.yaml"
    opal.write_text(opal.read_text().replace("required: false", "required: true"))
    (page.settings.include / "people.yaml").write_text("release_officer: [ada]\n")
    airflow = AirflowNow({"opal": False}, {"opal": ()})
    before, names = page.watched(airflow), page.names()
    assert {(alert.rule, alert.week) for alert in before} == {("release_overdue", "2026-W40")}
    path = page.settings.include / file
    path.unlink()
    path.mkdir() if content is None else path.write_text(content)
    (told,) = set(page.watched(airflow)) - set(before)
    assert set(before) < set(page.watched(airflow))
    assert (told.rule, told.programme, told.week) == ("programme_broken", file, "all")
    assert file in told.sentence
    assert rule in told.sentence
    assert set(names) <= set(page.names())
    for shown in (page.budget(OPAL, airflow), page.calendar(OPAL, airflow)):
        words = _words(shown)
        assert f"{file} cannot be read" in words
        assert "of its weeks" not in words
    (opal_now,) = [programme for programme in page.programmes() if programme.name == "opal"]
    assert "2026-W39" in page.in_one_sentence(opal_now, airflow)
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(page.settings.include))
    capsys.readouterr()
    assert main(["check", "opal"]) == 2  # as RUNBOOK, programme_broken, says
    assert capsys.readouterr().err.count(rule) == 1


def test_an_example_is_on_no_page_until_somebody_releases_from_it(page: BudgetPage) -> None:
    names = set(page.names())
    assert {"opal", "itms"} <= names
    examples = {file.stem for file in (page.settings.include / "programmes").glob("*.yaml")} - names
    assert len(examples) >= 5
    everybody = frozenset(names | examples)
    shown = page.budget(everybody, AirflowNow())
    assert not [name for name in examples if f'data-programme="{name}"' in shown]
    assert not {alert.programme for alert in page.watched(AirflowNow())} & examples
    adopted = min(examples)
    settings = page.settings
    text = (settings.include / "examples.yaml").read_text()
    assert adopted in text
    kept = [line for line in text.splitlines() if line.strip() != f"- {adopted}"]
    (settings.include / "examples.yaml").write_text("\n".join(kept) + "\n")
    shown = page.budget(everybody, AirflowNow())
    assert f'data-programme="{adopted}"' in shown


def test_the_form_shows_what_is_queued_its_sum_and_what_is_left(page: BudgetPage) -> None:
    _publish(page, "2026-W38")
    queued = RunNow("w39", "2026-W39", "queued")
    wanted = {"programme": "opal", "first": "2026-W40"}
    left = []
    for runs in ((), (queued,)):
        airflow = AirflowNow({"opal": False}, {"opal": runs})
        words = _words(page.release(OPAL, wanted, airflow, may_release=True))
        asked = "Asked for already, and counted first: opal 2026-W39."
        assert (asked in words) == bool(runs)
        assert "Together: 1 x epsilon" in words
        (remainder,) = re.findall(r"Left after that: (card over 52[^.]*?\d[\d.]*)", words) or [""]
        left.append(remainder)
    assert left[0] != left[1]
