"""One Airflow and one ledger for every row of the backfill matrix.

Weeks are brought into every state, then everything is done to them that an operator or a failing
machine can do. Each row states which draws may come of it; after the row every charge, digest and
state is recomputed (`accounts_of_weeks`). The rows are printed at the end.

The card's cap over 52 weeks is three draws, so each group of weeks has a budget of its own, and the
first group has used it up. The files run in the order of their numbers, on the same Airflow.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matrix_of_weeks import (
    AT_FIRST,
    FIRST,
    NO_FILES,
    REFUSED,
    SCHEDULED,
    SECOND,
    THIRD,
    Matrix,
    journal,
    standing_before_a_draw,
)
from row_table import MATRIX, keep


@pytest.fixture(scope="package")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """An Airflow whose scheduled run of last week stands just before its draw."""
    with standing_before_a_draw(tmp_path_factory.mktemp("matrix")) as made:
        yield made


@pytest.fixture(autouse=True)
def _calm(matrix: Matrix, request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever became of a test, nothing of it goes on into the next."""
    yield
    keep(request.node, MATRIX, matrix.lines)
    holds = [path for path in (matrix.airflow.home / "hold").iterdir() if path.name != AT_FIRST]
    if holds:
        for path in holds:
            path.unlink()
        matrix.airflow.until_no_backfill()


@pytest.fixture(scope="package")
def sealed(matrix: Matrix) -> Matrix:
    """Three weeks sealed beside the scheduled one, one without files, one refused by the cap."""
    airflow = matrix.airflow
    with matrix.row(
        "scheduled run, beside a backfill of other weeks",
        {SCHEDULED: 1, FIRST: 1, SECOND: 1, THIRD: 1},
    ):
        airflow.backfill(FIRST, THIRD)
        airflow.until(lambda: airflow.runs().get(FIRST) == "running", what="the backfill")
        assert airflow.runs()[SCHEDULED] == "running"
        airflow.let_go(SCHEDULED, "draw")
        airflow.until_ended(SCHEDULED)
        airflow.backfilled(FIRST, NO_FILES, SECOND, THIRD)
    assert airflow.runs() == {
        FIRST: "success",
        NO_FILES: "failed",
        SECOND: "success",
        THIRD: "success",
        SCHEDULED: "success",
    }
    with matrix.row("backfill of a week past the cap: refused", {}):
        airflow.backfill(REFUSED, REFUSED)
        airflow.backfilled(REFUSED)
    assert airflow.tasks(REFUSED)["wait"] == "failed"
    assert "BudgetExceeded" in journal(airflow, REFUSED)
    return matrix
