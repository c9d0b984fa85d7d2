"""Weeks and sums are read from draws that carry the year along: exactly, where no noise is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import combinations
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from small_deployment import INCLUDE

from turnstile.estimates.year_to_date import gaps_of_rows, year_tables
from turnstile.privacy.year_to_date import UNIT, multiples
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.drawn import Drawn
from turnstile.release.plan import make_plan
from turnstile.release.sealed import Artefact, NoisyTable
from turnstile.service_calendar import ServiceWeek

PROGRAMME = load_programme("opal_sums", INCLUDE)
TABLE = next(table for table in PROGRAMME.tables if table.year_from is not None)
DOMAIN = load_domain(PROGRAMME, INCLUDE)
CELLS = DOMAIN.cells(TABLE)
LAST = ServiceWeek(2016, 34)


@cache
def counts(seed: int) -> list[NDArray[np.int64]]:
    """Seven days of a week that was made up."""
    return [(np.arange(CELLS) * (seed + day)) % 89 for day in range(7)]


def drawn(weeks: dict[str, tuple[int, tuple[str, ...]]]) -> Drawn:
    """Artefacts without noise: by week and revision, a seed of its counts and what it carries."""
    artefacts = {}
    for key, (seed, carried) in weeks.items():
        week = ServiceWeek.parse(key.partition("/")[0])
        vectors = []
        for day, day_counts in enumerate(counts(seed)):
            values = multiples()[0] * day_counts
            for other in carried:
                age = (week.monday - ServiceWeek.parse(other.partition("/")[0]).monday).days // 7
                values = values + multiples()[age] * counts(weeks[other][0])[day]
            date = week.monday + timedelta(days=day)
            vectors.append(NoisyTable(TABLE.name, "count", date, values))
        artefacts[f"opal_sums/{key}"] = Artefact(
            tuple(vectors), carried=tuple(f"opal_sums/{other}" for other in carried)
        )
    artefact = artefacts.pop(f"opal_sums/{LAST}/r0")
    plan = make_plan(PROGRAMME, DOMAIN, LAST)
    return Drawn(PROGRAMME, DOMAIN, plan, cast("Any", None), artefact, artefacts)


CORRECTED = drawn(
    {
        "2016-W30/r0": (1, ()),
        "2016-W31/r0": (2, ("2016-W30/r0",)),
        "2016-W31/r1": (3, ("2016-W30/r0",)),
        "2016-W33/r0": (4, ("2016-W30/r0", "2016-W31/r0")),
        "2016-W34/r0": (5, ("2016-W30/r0", "2016-W31/r1", "2016-W33/r0")),
    }
)


def test_weeks_and_sums_follow_from_the_draws_over_a_skipped_and_a_corrected_week() -> None:
    tables = year_tables(CORRECTED, TABLE)
    week_counts = np.concatenate(counts(5))
    assert tables["places"]["reconciled"].to_numpy() == pytest.approx(week_counts, abs=0.01)
    expected = sum(np.sum(counts(seed), axis=0) for seed in (1, 3, 4, 5))
    for end in ("_13_weeks", "_year_to_date"):
        assert tables[f"places{end}"]["reconciled"].to_numpy() == pytest.approx(expected, abs=0.01)
        assert set(tables[f"places{end}"]["weeks"].to_pylist()) == {4}
    with_first = sum(np.sum(counts(seed), axis=0) for seed in (1, 2, 4, 5))
    assert not np.allclose(expected, with_first)  # a reading of the first W31 would be seen


def test_a_draw_that_says_it_carries_another_week_is_read_as_other_numbers() -> None:
    less = replace(CORRECTED.artefact, carried=CORRECTED.artefact.carried[1:])
    tables = year_tables(replace(CORRECTED, artefact=less), TABLE)
    assert not np.allclose(tables["places"]["reconciled"].to_numpy(), np.concatenate(counts(5)))


def test_a_quarter_leaves_out_what_is_older_and_a_year_what_was_before_it() -> None:
    before, in_year, late = "2016-W26/r0", "2016-W27/r0", "2016-W40/r0"
    weeks = {before: (1, ()), in_year: (2, ()), late: (3, (in_year,))}
    release = drawn({**weeks, f"{LAST}/r0": (9, ())})
    release = replace(
        release,
        plan=make_plan(PROGRAMME, DOMAIN, ServiceWeek(2016, 40)),
        artefact=release.earlier[f"opal_sums/{late}"],
    )
    tables = year_tables(release, TABLE)
    assert set(tables["places_13_weeks"]["weeks"].to_pylist()) == {1}
    assert set(tables["places_year_to_date"]["weeks"].to_pylist()) == {2}


def test_errors_are_those_of_the_proof_after_52_weeks_in_a_row() -> None:
    first = ServiceWeek(2016, 27)
    names = [f"{first.plus(n)}/r0" for n in range(52)]
    weeks = {name: (n, tuple(names[:n])) for n, name in enumerate(names)}
    release = drawn({**weeks, f"{LAST}/r0": weeks[f"{LAST}/r0"]})
    last = names[-1]
    earlier = {**release.earlier, f"opal_sums/{LAST}/r0": release.artefact}
    artefact = earlier.pop(f"opal_sums/{last}")
    plan = make_plan(PROGRAMME, DOMAIN, ServiceWeek.parse(last.partition("/")[0]))
    tables = year_tables(replace(release, plan=plan, artefact=artefact, earlier=earlier), TABLE)
    week, year = (
        float(tables[name]["standard_deviation"][0].as_py())
        for name in ("places", "places_year_to_date")
    )
    ages = np.subtract.outer(np.arange(52), np.arange(52))
    inverse = np.linalg.inv(np.where(ages >= 0, np.array(multiples())[ages], 0))
    of_year = np.linalg.norm(inverse.sum(axis=0)) / np.linalg.norm(inverse, axis=1).max()
    # The sum is over seven weekdays, each with noise of its own.
    assert year / week / 7**0.5 == pytest.approx(of_year, rel=0.01)


def test_the_days_without_input_of_all_weeks_in_a_sum_are_its_gaps() -> None:
    day = ServiceWeek(2016, 30).monday
    key = "opal_sums/2016-W30/r0"
    earlier = {**CORRECTED.earlier, key: replace(CORRECTED.earlier[key], gaps=(day,))}
    release = replace(CORRECTED, earlier=earlier)
    assert gaps_of_rows(release, "places_year_to_date") == (day,)
    assert gaps_of_rows(release, "places") == gaps_of_rows(release, "on_time") == ()


@pytest.mark.parametrize("missing", [(), (3,), (0, 5), (1, 2, 3)])
def test_errors_of_means_over_weeks_come_out_too_large_and_never_too_small(
    missing: tuple[int, ...],
) -> None:
    """Means of a series take the noise of weeks as independent (`publishing/series/means.py`)."""
    there = [week for week in range(52) if week not in missing]
    read = np.zeros((len(there), len(there)))
    for number, week in enumerate(there):
        read[number, number] = 1.0
        for earlier, other in enumerate(there[:number]):
            read[number] -= multiples()[week - other] * read[earlier] / UNIT
    ratios = []
    for last in range(4, len(there)):
        for size in (2, 3, 4):  # of the last four weeks those that had input on all days
            for chosen in combinations(read[last - 3 : last + 1], size):
                stated = np.linalg.norm(chosen)
                ratios.append(float(stated / np.linalg.norm(np.sum(chosen, axis=0))))
    assert 1.0 < min(ratios) < max(ratios) < 1.2
