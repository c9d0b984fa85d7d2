"""Means over days and weeks: the right days, the right divisor, errors that hold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from turnstile.publishing.package_reader import Tables
from turnstile.publishing.series.means import (
    four_weeks,
    newest_alike,
    typical_week,
    typical_weekday,
    weeks_of,
)

_CELLS = 2000
_MONDAY = date(2016, 7, 25)


def _package(folder: Path, monday: date, value: Callable[[date, int], float]) -> Tables:
    """Write a table of seven days with errors of 3 and 4 in turn, by cell."""
    days = [monday + timedelta(days=n) for n in range(7) for _ in range(_CELLS)]
    cells = list(range(_CELLS)) * 7
    table = {
        "service_date": pa.array(days, pa.date32()),
        "location": [str(cell) for cell in cells],
        "unbiased": [value(day, cell) for day, cell in zip(days, cells, strict=True)],
        "unbiased_sd": [3.0 + cell % 2 for cell in cells],
    }
    return _written(folder, table)


def _written(folder: Path, table: dict[str, object]) -> Tables:
    """Write a table of trips, and what a card says of it."""
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.table(table), folder / "data/t.parquet")
    card = {"data": [{"name": "t", "what": "trips counted", "unit": "trips", "sources": []}]}
    (folder / "release_card.json").write_text(json.dumps(card))
    return Tables(folder)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Tables]:
    """Four weeks of noise about 10 on weekdays, 20 on Saturdays and Sundays."""
    root, draw = tmp_path_factory.mktemp("weeks"), random.Random(20)  # noqa: S311 - a simulation

    def value(day: date, cell: int) -> float:
        return (10 if day.weekday() < 5 else 20) + draw.gauss(0, 3.0 + cell % 2)

    return [_package(root / str(n), _MONDAY + timedelta(weeks=n), value) for n in range(4)]


def test_the_typical_weekday_is_that_of_working_days(packages: Sequence[Tables]) -> None:
    holiday, gap = _MONDAY + timedelta(days=1), _MONDAY + timedelta(days=9)
    table = typical_weekday(weeks_of(packages, "t"), {holiday: "a day"}, [gap.isoformat()])
    assert table is not None
    assert set(table["days"].to_pylist()) == {18}
    assert table["standard_deviation"].to_pylist()[:2] == [round(n / 18**0.5, 4) for n in (3, 4)]
    # the chance that a correct interval covers 10: 95 %; 6 deviations of 2,000 of them are 3 %
    assert 0.92 < _covered(table, 10) < 0.98
    assert _covered(table, 20) == 0  # the check can fail


def test_four_weeks_are_whole_weeks(packages: Sequence[Tables]) -> None:
    table = four_weeks(weeks_of(packages, "t"), [_MONDAY.isoformat()])
    assert table is not None
    assert set(table["weeks"].to_pylist()) == {3}
    assert 0.92 < _covered(table, 90) < 0.98
    assert table["standard_deviation"].to_pylist()[0] == round(3 * 21**0.5 / 3, 4)


def test_means_begin_anew_where_rows_mean_something_else(tmp_path: Path) -> None:
    """Two weeks of hours and two of half an hour had a mean over four weeks."""
    weeks = []
    for number, cells in enumerate("aabb"):
        folder = tmp_path / str(number)
        weeks.append(_package(folder, _MONDAY + timedelta(weeks=number), lambda _day, _cell: 1.0))
        card = json.loads((folder / "release_card.json").read_bytes())
        card["domain"] = {"sha256": cells}
        (folder / "release_card.json").write_text(json.dumps(card))
    alike = newest_alike([Tables(week.folder) for week in weeks], "t")
    assert [package.folder.name for package in alike] == ["2", "3"]
    assert len(newest_alike([Tables(week.folder) for week in weeks[:2]], "t")) == 2
    assert newest_alike(weeks, "absent") == []


def test_tables_without_days_or_errors_have_no_mean(tmp_path: Path) -> None:
    tables = _written(tmp_path, {"unbiased": [1.0]})
    assert typical_weekday(weeks_of([tables], "t"), {}, []) is None
    assert four_weeks(weeks_of([tables], "absent"), []) is None


def test_a_typical_week_has_a_mean_of_each_day_of_the_week(packages: Sequence[Tables]) -> None:
    table = typical_week(weeks_of(packages, "t"), {_MONDAY: "a day"}, [])
    assert table is not None
    days = pc.equal(table["weekday"], "Monday")
    assert set(table.filter(days)["days"].to_pylist()) == {3}
    assert set(table.filter(pc.invert(days))["days"].to_pylist()) == {4}
    assert 0.92 < _covered(table.filter(pc.equal(table["weekday"], "Sunday")), 20) < 0.98


def _covered(table: pa.Table, truth: float) -> float:
    low, high = table["low_95"].to_pylist(), table["high_95"].to_pylist()
    return sum(lower < truth < other for lower, other in zip(low, high, strict=True)) / len(low)
