"""What people are shown of the next week or of a correction is the costliest account's."""

from __future__ import annotations

from pathlib import Path

import pytest
from watched_place import INCLUDE, Place

from turnstile.ledger.balances.amounts import AccountLoss, Cap
from turnstile.ledger.records import AccountBalance, Bindings, ReleaseKey, Request
from turnstile.operations.budget_page.plan_view import plan_of, plan_view
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.loading import load_programme

FAMILY = "opal_cards"
QUARTER = 250_000_000
DAY = {"opal": 83_333_333, "opal_sums": 124_523_047}  # rho in 1e-9 of the day that costs most
OLD_DAY, OLD_COSTS = "2016-07-04", 35_236  # of sums over the year, whose noise grows with it
NEW_DAY = "2016-07-25"


def account(scope: str, taken: int | None) -> AccountBalance:
    cap = Cap(ProtectionUnit.CARD_DAY, rho_nano=QUARTER)
    spent = AccountLoss(None, taken)
    return AccountBalance(FAMILY, ProtectionUnit.CARD_DAY, scope, spent, AccountLoss(0, 0), cap)


def shown(name: str, *balances: AccountBalance, revision: int = 0) -> dict[str, int | None]:
    """What is shown of a card's day."""
    planned = plan_of(load_programme(name, INCLUDE), INCLUDE, "2016-W30", revision)
    (line,) = plan_view(planned, balances)["left"]
    return {part: line[part] for part in ("taken", "asked", "left_after")}


@pytest.mark.parametrize("name", ["opal", "opal_sums"])  # of opal all days cost the same
def test_a_new_week_shows_the_day_that_costs_most(name: str) -> None:
    left = QUARTER - DAY[name]
    expected = {"taken": 0, "asked": DAY[name], "left_after": left}
    assert shown(name, account("2016-07-18", 1)) == expected


def test_a_correction_shows_the_account_that_has_least_left_by_what_it_asks_of_it() -> None:
    old, new = account(OLD_DAY, DAY["opal_sums"] + 200_000), account(NEW_DAY, DAY["opal_sums"])
    for balances in ((old, new), (new, old)):
        left = QUARTER - 2 * DAY["opal_sums"]  # and not less, though the old day has taken more
        expected = {"taken": DAY["opal_sums"], "asked": DAY["opal_sums"], "left_after": left}
        assert shown("opal_sums", *balances, revision=1) == expected
    left = QUARTER - DAY["opal_sums"] - 200_000 - OLD_COSTS
    assert shown("opal_sums", old, revision=1)["left_after"] == left


def test_an_account_without_a_bound_hides_behind_no_other() -> None:
    full, unbounded = account(NEW_DAY, 1), account("2016-07-26", None)
    for balances in ((full, unbounded), (unbounded, full)):
        assert shown("opal", *balances, revision=1)["left_after"] is None
    assert shown("opal", full, revision=1)["left_after"] == QUARTER - 1 - DAY["opal"]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ((30, 20), "card_day rho 0.00000002"),
        ((30, None), "card_day epsilon 0.00003"),
        ((None, None), "card_day epsilon infinite"),
    ],
)
def test_a_reservation_is_listed_with_what_it_takes_of_its_costliest_account(
    tmp_path: Path, second: tuple[int | None, int | None], said: str
) -> None:
    ledger, unit = Place.new(tmp_path).ledger, ProtectionUnit.CARD_DAY
    days = (Posting(unit, OLD_DAY, 10, 10, 0), Posting(unit, NEW_DAY, *second, 0))
    ledger.reserve(
        Request(
            key=ReleaseKey("opal", "2016-W30"),
            family=FAMILY,
            bindings=Bindings("p", "d", "s"),
            plan_digest="plan",
            events=(),
            postings=(*days, Posting(ProtectionUnit.CARD, "ever", 1, 1, 0)),
            week="2016-W30",
            caps=(Cap(ProtectionUnit.CARD, epsilon_micro=1000),),
        )
    )
    (reserved,) = [line for line in LedgerFollower(ledger).now().lines if "/" in line.key]
    assert dict(reserved.particulars)["holds"] == f"card rho 0.000000001, {said}"
