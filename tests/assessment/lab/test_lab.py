"""The lab: every baseline is defeated, and none of it can be reached from a release."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import NormalDist

import pytest

from turnstile.cli import main
from turnstile_lab.lesson import Lesson
from turnstile_lab.lessons import LESSONS
from turnstile_lab.page import write_page

_EXTENSIONS = Path(__file__).resolve().parents[3] / "extensions"


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


def test_a_secret_scale_is_recovered_from_pairs(lessons: dict[str, Lesson]) -> None:
    figures = lessons["matched_pairs"].figures
    for scale in (0.7, 1.4, 2.8):
        assert figures[f"low_{scale}"] <= scale <= figures[f"high_{scale}"]
        assert figures[f"scale_{scale}"] == pytest.approx(scale, rel=0.15)


def test_many_sums_give_the_table_away_and_few_do_not(lessons: dict[str, Lesson]) -> None:
    figures = lessons["reconstruction"].figures
    assert figures["90 sums"] < 0.7
    assert figures["1440 sums"] > 0.95


def test_small_losses_add_up_over_a_habit(lessons: dict[str, Lesson]) -> None:
    figures = lessons["membership"].figures
    for trips, weeks in ((1, 1), (10, 52)):
        deviates = (2 * trips * weeks) ** 0.5 / 2 / 15
        assert figures[f"{trips} trips {weeks} weeks"] == pytest.approx(
            NormalDist().cdf(deviates), abs=0.001
        )


def test_finer_slots_show_more_single_vehicles(lessons: dict[str, Lesson]) -> None:
    figures = lessons["timetable"].figures
    assert figures["5 minutes"] > figures["15 minutes"] > figures["60 minutes"]


def test_every_lesson_has_a_picture_and_a_remedy(
    lessons: dict[str, Lesson], tmp_path: Path
) -> None:
    page = write_page(list(lessons.values()), tmp_path).read_text(encoding="utf-8")
    assert page.count("<svg") == sum(len(lesson.figure.frames) for lesson in lessons.values())
    assert page.count('class="formula"') == page.count("Instead.") == len(LESSONS)
    assert page.count('type="range"') == len(LESSONS)
    assert all(len(lesson.figure.frames) > 1 for lesson in lessons.values())
    assert not re.search(r"(src|href)=.https?://|@import|url\(", page)
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
        path.relative_to(_EXTENSIONS).as_posix()
        for path in _EXTENSIONS.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_nothing_outside_the_lab_imports_a_baseline() -> None:
    paths = importers(
        r"(from|import) turnstile_lab\.(baselines|lesson|lessons|bad_releases|known_attacks|page)\b"
    )
    lab = ("bad_releases", "known_attacks", "lessons", "page")
    assert paths == {f"lab/turnstile_lab/{name}.py" for name in (*lab, "command")}


def test_historical_figures_stay_out_of_what_is_reported() -> None:
    assert importers(r"turnstile_lab(\.| import )historical") == {
        "lab/turnstile_lab/bad_releases.py"
    }
