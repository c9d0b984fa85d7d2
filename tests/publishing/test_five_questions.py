"""Five questions, each in at most five lines of pandas that stand on the page, on made weeks."""

from __future__ import annotations

import pytest
from five_questions import LINES_AT_MOST, questions, shares

WEEKS = 4  # a hundred: `benchmarks/five_questions.py --weeks 100`


def test_each_question_has_at_most_five_lines_on_the_page() -> None:
    asked = questions()
    assert len(asked) == 5
    assert all(len(lines.strip().splitlines()) <= LINES_AT_MOST for lines in asked.values())


@pytest.mark.long
def test_answers_hold_the_truth_on_made_weeks() -> None:
    # Coins are fixed: a run that passed passes again.
    coverage = shares(WEEKS)
    assert len(coverage) >= len(questions())
    assert all(share >= 0.74 for share in coverage.values()), coverage
