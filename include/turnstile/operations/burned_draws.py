"""What draws cost that died before their seal, unit by unit, and what their caps have left. Pure.

A burned draw is found in the ledger, whoever burned it: the run that was cleared, a person or a
recovery. Amounts come from the plan and from the ledger's own rows, never from data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnstile.ledger.balances.amounts import (
    COORDINATES,
    AccountLoss,
    amount_text,
    cap_text,
    is_lifetime_unit,
    word_of,
)
from turnstile.ledger.balances.forecast import costliest
from turnstile.ledger.presentation import left_under
from turnstile.ledger.records import AccountBalance
from turnstile.operations.amount_words import epsilon_words
from turnstile.operations.ledger_snapshot import LedgerSnapshot
from turnstile.operations.watchdog.alerts import Alert
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit

RULE = "draw_burned"


def of_burned(picture: LedgerSnapshot) -> Iterator[Alert]:
    """Yield an alert for every draw that was charged and never sealed."""
    for attempt, charged in picture.burned:
        cost = ", ".join(_costs(charged))
        balances = [balance for balance in picture.balances if balance.family == attempt.family]
        left = "; ".join(_left(charged, balances)) or "no cap holds for it"
        yield Alert(
            RULE,
            attempt.key.programme,
            attempt.week,
            attempt.attempt_id,
            f"a draw died before its seal and stays charged ({attempt.attempt_id}): {cost}. "
            f"Left now: {left}",
        )


def _costs(charged: Sequence[Posting]) -> Iterator[str]:
    """Yield what the draw cost each unit: of its disjoint accounts, the costliest."""
    for unit in sorted({posting.unit for posting in charged}):
        epsilon, rho, delta = (costliest(charged, unit, name) for name in COORDINATES)
        yield f"{unit} {epsilon_words(AccountLoss(epsilon, rho, delta or 0))}"


def _left(charged: Sequence[Posting], balances: Sequence[AccountBalance]) -> Iterator[str]:
    """Yield what each cap over its accounts has left, and how many such draws that is."""
    accounts = {(posting.unit, posting.scope) for posting in charged}
    least: dict[tuple[str, str], tuple[int, int, ProtectionUnit]] = {}
    for balance in balances:
        is_touched = (balance.unit, balance.scope) in accounts or is_lifetime_unit(balance.unit)
        if balance.cap is None or not is_touched:
            continue
        for coordinate, amount in left_under(balance.cap, balance.spent + balance.held).items():
            remainder = (amount, getattr(balance.cap, coordinate), balance.unit)
            account = (cap_text(balance.cap), coordinate)
            least[account] = min(remainder, least.get(account, remainder))
    for (cap, coordinate), (amount, limit, unit) in least.items():
        cost = costliest(charged, unit, coordinate)
        if cost:
            name = word_of(coordinate)
            draws = amount // cost
            yield (
                f"{cap} {name} {amount_text(name, amount)} of {amount_text(name, limit)}, room for "
                f"{draws or 'no'} draw{'s' * (draws > 1)} like it"
            )
