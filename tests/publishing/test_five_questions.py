"""Five questions, each in at most five lines of pandas that stand on the page, on made weeks."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from five_packages import PLACE
from five_questions import LINES_AT_MOST, answered, questions, shares

_MONDAYS = (date(2016, 8, 8), date(2016, 8, 1))
WEEKS = 4  # a hundred: `benchmarks/five_questions.py --weeks 100`


def test_each_question_has_at_most_five_lines_on_the_page() -> None:
    asked = questions()
    assert len(asked) == 5
    assert all(len(lines.strip().splitlines()) <= LINES_AT_MOST for lines in asked.values())


@pytest.mark.parametrize("gap", [[], [1]], ids=["whole weeks", "a Tuesday without input"])
def test_days_without_input_are_in_no_answer(tmp_path: Path, gap: list[int]) -> None:
    """A day that one week lacks was a fall by a seventh, and a day of no trips in a mean."""
    weeks: Any = SimpleNamespace(folders=[tmp_path / "now", tmp_path / "before"], buses="", day="")
    for folder, monday, out in zip(weeks.folders, _MONDAYS, (gap, []), strict=True):
        days = [monday + timedelta(days=n) for n in range(7)]
        rows = pd.DataFrame({"service_date": days, "tap": "on", "location": PLACE})
        rows["unbiased"] = [90.0] * 5 + [50.0] * 2
        rows["unbiased_sd"] = 2.0
        rows.loc[out, ["unbiased", "unbiased_sd"]] = None
        (folder / "data").mkdir(parents=True)
        for name in ("day", "location"):
            rows.to_parquet(folder / f"data/{name}.parquet")
    asked = questions()
    change, _, most = answered(asked["Did a place change since last week?"], weeks)
    assert answered(asked["How do weekdays differ from weekends, by day?"], weeks)[0] == 40
    assert change == 0
    assert most == pytest.approx(1.96 * 2 * (14 - 2 * len(gap)) ** 0.5)


@pytest.mark.long
def test_answers_hold_the_truth_on_made_weeks() -> None:
    # Coins are fixed: a run that passed passes again.
    coverage = shares(WEEKS)
    assert len(coverage) >= len(questions())
    assert all(share >= 0.74 for share in coverage.values()), coverage
