"""Superlatives are named where they are told apart; lists of changes hold few that are chance."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from turnstile.publishing.week.claims import discoveries, how_many, not_told_from_first
from turnstile.publishing.week.pictures import largest, most_in_words

_TRIALS = 2_000


def test_a_day_is_named_alone_only_where_it_is_told_apart() -> None:
    days = pd.DataFrame(
        {
            "service_date": ["08-10", "08-11", "08-12"],
            "value": [100.0, 95, 50],
            "variance": [25.0] * 3,
        }
    )
    assert most_in_words(days) == "08-10 and 08-11, which cannot be told apart"
    sure = days.assign(variance=1.0)
    assert most_in_words(sure) == "08-10 with about 100"


def test_a_place_without_an_interval_is_told_from_none() -> None:
    table = pd.DataFrame(
        {"label": ["A", "B"], "value": [9.0, 5.0], "low": [8.0, np.nan], "high": [10.0, np.nan]}
    )
    assert largest(table) == "A and B, which cannot be told apart"
    assert largest(table.assign(low=[8.9, 4.9], high=[9.1, 5.1])).startswith("A: about 9 (9 to 9)")


def test_what_is_named_alone_is_the_largest_in_all_but_one_of_twenty() -> None:
    rng = np.random.default_rng(3)  # noqa: TID251 - a simulation, not a release
    truth, wrong, named = np.array([100.0, 99.0, 90.0, 60.0]), 0, 0
    for _ in range(_TRIALS):
        close = not_told_from_first(truth + 2 * rng.standard_normal(4), np.full(4, 2.0))
        named += len(close) == 1
        wrong += len(close) == 1 and close[0] != 0
    assert named > 100
    assert wrong / _TRIALS < 0.05
    assert wrong  # two that are nearly alike are mistaken now and then: the check can fail


def test_of_listed_changes_one_in_twenty_is_chance() -> None:
    rng = np.random.default_rng(4)  # noqa: TID251 - a simulation, not a release
    shares = []
    for _ in range(200):
        moved = np.r_[np.full(40, 4.0), np.zeros(300)]
        z = moved + rng.standard_normal(340)
        chances = 2 * (1 - pd.Series(np.abs(z)).map(_normal).to_numpy())
        listed = discoveries(chances)
        shares.append(listed[40:].sum() / max(listed.sum(), 1))
        assert listed[:40].sum() > 20
    assert np.mean(shares) < 0.06
    # Without the rule 20 of 340 would be listed by chance alone.
    assert (chances < 0.05)[40:].sum() > 5


def _normal(z: float) -> float:
    from statistics import NormalDist

    return NormalDist().cdf(z)


def test_a_list_says_how_many_are_chance() -> None:
    assert how_many(np.r_[[True] * 60, [False] * 40]).endswith("about 3 of them by chance")


@pytest.mark.parametrize("programme", ["opal", "itms"])
def test_the_page_names_nothing_alone_that_is_not_told_apart(
    published: Path, programme: str
) -> None:
    page = next(published.glob(f"{programme}/*/r0/report.html")).read_text()
    if programme == "opal":
        table = pd.read_parquet(next(published.glob("opal/*/r0")) / "data/day.parquet")
        table = table[table["tap"] == "on"].assign(variance=lambda rows: rows.unbiased_sd**2)
        days = table.groupby("service_date")[["unbiased", "variance"]].sum().reset_index()
        said = most_in_words(days.rename(columns={"unbiased": "value"}))
        assert f"The busiest day was {said};" in page
    assert re.search(r"The (most|lowest)", page)
