"""The lab: every baseline is defeated, and none of it can be reached from a release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turnstile.assessment.lab.lessons import LESSONS, Lesson
from turnstile.assessment.lab.page import write_page
from turnstile.cli import main

_PACKAGE = Path(__file__).resolve().parents[3] / "include/turnstile"


@pytest.fixture(scope="module")
def lessons() -> dict[str, Lesson]:
    """Every lesson, run once."""
    return {lesson.name: lesson for lesson in (run() for run in LESSONS)}


def test_zeros_left_alone_prove_presence_without_a_false_alarm(lessons: dict[str, Lesson]) -> None:
    figures = lessons["zeros_left_alone"].figures
    assert figures["false_alarms"] == 0
    assert figures["seen_12"] == pytest.approx(figures["exact_12"], rel=0.1)
    assert figures["seen_12"] != pytest.approx(figures["printed_12"], rel=0.1)


def test_floating_point_noise_gives_a_quarter_of_the_zeros_away(lessons: dict[str, Lesson]) -> None:
    figures = lessons["floating_point"].figures
    assert 0.25 < figures["off_grid_0"] < 0.3
    assert figures["off_grid_1"] == 0


def test_totals_beside_a_thresholded_table_show_what_was_left_out(
    lessons: dict[str, Lesson],
) -> None:
    figures = lessons["derived_from_thresholded"].figures
    assert figures["mass_lost"] > 0.2
    assert figures["covered"] > 0.85
    assert figures["covered_printed"] < 0.5


def test_reruns_undo_the_noise(lessons: dict[str, Lesson]) -> None:
    figures = lessons["fresh_noise"].figures
    for draws, right in ((1, 0.73), (5, 0.87), (10, 0.94)):
        assert figures[f"right_{draws}"] == pytest.approx(right, abs=0.015)
        assert figures[f"right_{draws}"] == pytest.approx(figures[f"exact_{draws}"], abs=0.015)


def test_true_values_beside_noisy_ones_are_recovered(lessons: dict[str, Lesson]) -> None:
    figures = lessons["true_values_beside"].figures
    assert figures["recovered"] == 1
    assert figures["mean_noise"] == pytest.approx(1.4, abs=0.15)


def test_every_lesson_has_a_picture_and_a_remedy(
    lessons: dict[str, Lesson], tmp_path: Path
) -> None:
    page = write_page(list(lessons.values()), tmp_path).read_text(encoding="utf-8")
    assert page.count("<svg") == len(LESSONS)
    assert page.count("Instead.") == len(LESSONS)
    assert not re.search(r"(src|href)=.https?://", page)
    assert len(list(tmp_path.glob("*.svg"))) == len(LESSONS)


def test_a_newcomer_runs_one_lesson_from_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["lab", "fresh_noise", "--to", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "attack:" in shown
    assert (tmp_path / "lab.html").exists()
    assert main(["lab", "no_such_lesson"]) == 2


def importers(pattern: str) -> set[str]:
    """Files of the package that import something."""
    return {
        path.relative_to(_PACKAGE).as_posix()
        for path in _PACKAGE.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_nothing_outside_the_lab_imports_a_baseline() -> None:
    found = importers(r"(from|import) turnstile\.assessment\.lab")
    assert found == {"assessment/lab/lessons.py", "assessment/lab/page.py", "commands/lab.py"}


def test_historical_figures_stay_out_of_what_is_reported() -> None:
    assert importers(r"attacks\.historical") == {"assessment/lab/lessons.py"}
