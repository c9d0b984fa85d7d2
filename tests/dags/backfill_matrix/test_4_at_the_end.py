"""Late files in sealed weeks, the audit of everything, and that the checks themselves can fail."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from accounts_of_weeks import Weeks, disagreements, weeks_of
from matrix_of_weeks import (
    FIRST,
    SCHEDULED,
    Matrix,
    deliver_again,
    journal,
    run_by_hand,
)

pytestmark = pytest.mark.long


def test_a_late_file_that_the_budget_has_no_room_to_correct_is_reported_and_changes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("late file in a sealed week, run cleared, no room under the cap", {}):
        deliver_again(airflow, FIRST)
        airflow.clear(FIRST, "wait")
        airflow.until_ended(FIRST)
        assert airflow.runs()[FIRST] == "success"
    assert '"happening": "restated"' in journal(airflow, FIRST)


def test_a_late_file_that_could_be_corrected_is_asked_about_and_changes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("late file in a sealed week, run cleared, an officer keeps the week", {}):
        deliver_again(airflow, SCHEDULED)
        airflow.clear(SCHEDULED, "wait")
        airflow.until(lambda: airflow.asks(SCHEDULED, "ask_revision"), what="the question")
        airflow.answer(SCHEDULED, "ask_revision", "admin", "Keep the sealed week")
        airflow.until_ended(SCHEDULED)
        assert airflow.runs()[SCHEDULED] == "success"
    assert '"happening": "restated"' in journal(airflow, SCHEDULED)


def test_the_audit_finds_the_ledger_in_order(sealed: Matrix) -> None:
    with sealed.row("audit of everything above", {}):
        assert run_by_hand(sealed.airflow, "audit_ledger") == "success"


# -- the checks themselves must be able to fail ----------------------------------------------------


def _altered_bytes(home: Path) -> None:
    file = next((home / "embargoed/opal" / FIRST / "r0").glob("sealed-*.parquet"))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def _altered_package(home: Path) -> None:
    file = home / "public/opal" / FIRST / "r0/release_card.md"
    file.write_text(file.read_text() + " ")


def _refunded_account(home: Path) -> None:
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        ledger.execute("DROP TRIGGER account_no_refund")
        ledger.execute("UPDATE account SET spent_rho_nano = 0 WHERE unit = 'card_day'")


def _unknown_package(home: Path) -> None:
    public = home / "public/opal"
    shutil.copytree(public / FIRST, public / "2016-W50")


@pytest.mark.parametrize(
    ("alter", "named"),
    [
        (_altered_bytes, f"{FIRST}: the sealed bytes are not those of the ledger"),
        (_altered_package, f"{FIRST}: release_card.md was altered"),
        (_refunded_account, "the account is not what the draws cost"),
        (_unknown_package, "2016-W50: public, and the ledger does not say so"),
    ],
)
def test_the_checks_of_every_row_see_what_was_altered(
    sealed: Matrix, tmp_path: Path, alter: Callable[[Path], None], named: str
) -> None:
    home = tmp_path / "var"
    for name in ("embargoed", "public"):
        shutil.copytree(sealed.airflow.home / name, home / name, symlinks=True)
    for file in ("ledger.sqlite", "ledger-key.pem", "log-key.pem"):
        shutil.copy(sealed.airflow.home / file, home)
    include = sealed.airflow.base / "include"
    assert disagreements(home, include) == ()
    alter(home)
    assert any(named in disagreement for disagreement in disagreements(home, include))


def test_a_row_with_a_draw_too_many_or_another_digest_fails(sealed: Matrix) -> None:
    now = weeks_of(sealed.airflow.home)
    assert now.unlike(now, {}) == ()
    assert now.unlike(now, {FIRST: 1}) == (f"{FIRST}: 1 draws, not 2",)
    digest = {**now.sealed, FIRST: "another"}
    other = Weeks(now.draws, now.attempts, digest, now.packages)
    assert other.unlike(now, {}) == (f"{FIRST}: another sealed bytes",)
