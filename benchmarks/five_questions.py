"""Five questions that people ask of packages, in at most five lines of pandas, judged on truth.

The lines are those of docs/PACKAGES.md, run as they stand there on made weeks in the layout of a
package (`five_packages`), whose truth is known. Prints of each question in how many of 100 weeks
its 95 % intervals hold the truth; asked is 93 to 97. Run: `five_questions.py --weeks 100`.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from five_packages import PLACE, ROUTE, MadeWeeks, made_weeks

PAGE = Path(__file__).resolve().parents[1] / "docs/PACKAGES.md"
LINES_AT_MOST = 5
ASKED = (0.93, 0.97)
SURE = 1.65  # standard deviations ahead: 95 %


def questions() -> dict[str, str]:
    """Return the lines of each question by its words, from the page."""
    text = PAGE.read_text().partition("## Five questions")[2].partition("\n## ")[0]
    pairs = re.findall(r"\*\*(.+?)\*\*[^\n]*\n\n```python\n(.*?)```", text, re.DOTALL)
    return dict(pairs)


def answered(lines: str, weeks: MadeWeeks) -> Any:  # noqa: ANN401 - what the lines call `answer`
    """Run the lines of a question where the packages of made weeks lie."""
    names: dict[str, Any] = {
        "pandas": pd,
        "date": date,
        "now": weeks.folders[0],
        "before": weeks.folders[1],
        "month": weeks.folders,
        "buses": weeks.buses,
        "place": PLACE,
        "route": ROUTE,
        "day": weeks.day,
    }
    exec(compile(lines, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    return names["answer"]


def held(question: str, answer: Any, weeks: MadeWeeks) -> list[bool]:  # noqa: ANN401
    """Return whether each interval of an answer holds the truth."""
    if not isinstance(answer, pd.DataFrame):
        _, low, high = answer
        return [bool(low <= weeks.truth(question)[""] <= high)]
    rows, truth = answer.reset_index(), weeks.truth(question)
    if "half_95" in rows:
        rows = rows.assign(
            low_95=rows["unbiased"] - rows["half_95"], high_95=rows["unbiased"] + rows["half_95"]
        )
    label = "slot" if "location" not in rows else "location"
    return [
        bool(row["low_95"] <= truth[row[label]] <= row["high_95"]) for _, row in rows.iterrows()
    ]


def order_held(answer: Any, truth: Mapping[str, float]) -> list[bool]:  # noqa: ANN401
    """Return of neighbours whose order is called sure at 95 % whether it is right."""
    places = list(answer.index)
    return [
        truth[first] > truth[second]
        for first, second, sure in zip(places, places[1:], answer["ahead"], strict=False)
        if sure >= SURE
    ]


def shares(weeks: int) -> dict[str, float]:
    """Return in which share of made weeks the intervals of each question hold the truth."""
    outcomes: defaultdict[str, list[bool]] = defaultdict(list)
    for seed in range(weeks):
        with tempfile.TemporaryDirectory() as folder:
            made = made_weeks(Path(folder), seed)
            for question, lines in questions().items():
                answer = answered(lines, made)
                outcomes[question] += held(question, answer, made)
                if "ahead" in getattr(answer, "columns", ()):
                    outcomes[f"{question} Its order"] += order_held(answer, made.truth(question))
    return {question: float(np.mean(flags)) for question, flags in outcomes.items() if flags}


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description="five questions, judged on made weeks")
    parser.add_argument("--weeks", type=int, default=100)
    asked = parser.parse_args()
    for question, share in shares(asked.weeks).items():
        is_met = ASKED[0] <= share <= ASKED[1] or question.endswith("order")
        print(f"{question:60} {share:.3f} {'met' if is_met else 'NOT met'}")


if __name__ == "__main__":
    main()
