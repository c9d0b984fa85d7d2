"""Amounts of loss for people: epsilon at delta first, rounded up to what matters; exact ones too.

The ledger adds rho and epsilon exactly; a person compares epsilons. So what is shown first is the
epsilon at delta 1e-6 of a loss, and shares of a cap are taken of the figure that the ledger adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from turnstile.ledger.balances.amounts import COORDINATES, SUMS, AccountLoss, amount_text
from turnstile.ledger.balances.forecast import CapForecast
from turnstile.ledger.presentation import epsilon_at_delta
from turnstile.ledger.records import AccountBalance
from turnstile.operations.budget_page.picture_shapes import BurnDown, burn_down

_DIGITS = 3


def epsilon_words(loss: AccountLoss) -> str:
    """Write a loss as people compare it.

    Examples:
        >>> epsilon_words(AccountLoss(None, 874_999_959))
        'epsilon 7.19 at delta 1e-6'
        >>> epsilon_words(AccountLoss(4_000_000, None))
        'epsilon 4'
        >>> epsilon_words(AccountLoss())
        'nothing'
    """
    if loss == AccountLoss():
        return "nothing"
    shown = epsilon_at_delta(loss)
    if shown is None:
        return "not bounded"
    is_pure = loss.epsilon_micro is not None and shown == Fraction(loss.epsilon_micro, 10**6)
    return f"epsilon {rounded_up(shown)}" + ("" if is_pure else " at delta 1e-6")


def capped_words(coordinate: str, amount: int | None) -> str:
    """Write an amount of a coordinate, `epsilon` in 1e-6 or `rho` in 1e-9, as people compare it.

    Examples:
        >>> capped_words("rho", 48_000_000_000), capped_words("epsilon", None)
        ('epsilon 97.7 at delta 1e-6', 'not bounded')
    """
    if amount is None:
        return "not bounded"
    is_pure = coordinate == "epsilon"
    return epsilon_words(AccountLoss(amount, None) if is_pure else AccountLoss(None, amount))


def figures_words(figures: Mapping[str, str | None]) -> str:
    """Write a unit's loss as people compare it, from the figures of a release card.

    Examples:
        >>> figures_words({"epsilon": None, "epsilon_at_delta_1e-6": "7.188481"})
        'epsilon 7.19 at delta 1e-6'
        >>> figures_words({"epsilon": "4", "epsilon_at_delta_1e-6": "4"})
        'epsilon 4'
        >>> figures_words({"epsilon": None, "epsilon_at_delta_1e-6": None})
        'not bounded'
    """
    shown = figures["epsilon_at_delta_1e-6"]
    if shown is None:
        return "not bounded"
    words = f"epsilon {rounded_up(Fraction(shown))}"
    return words if shown == figures["epsilon"] else f"{words} at delta 1e-6"


def share_left(left: int, cap: int) -> str:
    """Write what is left of a cap as a share of it, rounded down.

    Examples:
        >>> share_left(45_375_000_123, 48_000_000_000), share_left(0, 0)
        ('94 %', '0 %')
    """
    return f"{100 * left // cap if cap else 0} %"


def rounded_up(amount: Fraction) -> str:
    """Write an amount with three digits that matter, never below it.

    Examples:
        >>> rounded_up(Fraction("1322.43000066")), rounded_up(Fraction("0.034722221"))
        ('1323', '0.0348')
    """
    if amount <= 0:
        return "0"
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(float(amount))))
    raised = Fraction(math.ceil(amount * 10**decimals), 10**decimals)
    text = f"{float(raised):.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact_words(loss: AccountLoss) -> str:
    """Write every figure of a loss as the ledger adds it."""
    bounds = [
        f"{name} {amount_text(name, amount)}"
        for name, amount in (("rho", loss.rho_nano), ("epsilon", loss.epsilon_micro))
        if amount is not None
    ]
    if loss.delta_femto:
        bounds.append(f"delta {amount_text('delta', loss.delta_femto)}")
    return ", ".join(bounds) or "not bounded"


def exact_value(loss: AccountLoss) -> str:
    """Return the ledger's integers, for scripts."""
    parts = [getattr(loss, name) for name in COORDINATES]
    return ",".join("infinite" if part is None else str(part) for part in parts)


@dataclass(frozen=True, slots=True)
class CapState:
    """How full one cap is.

    Args:
        balance: account of the unit that has taken most.
        owner: `a card`, `a card day`.
        window: `over 52 weeks`; empty without one.
        spent_pct: share of the cap that is spent, 0 to 100.
        held_pct: share that is held by reservations.
        forecast: of the cap; None where it does not fill up over the weeks.
        picture: of the forecast.
    """

    balance: AccountBalance
    owner: str
    window: str
    spent_pct: float
    held_pct: float
    forecast: CapForecast | None
    picture: BurnDown | None

    @property
    def name(self) -> str:
        """Account by its family, unit and scope."""
        return f"{self.balance.family}/{self.balance.unit}/{self.balance.scope}"

    @property
    def used(self) -> str:
        """Say how much is used, for the answer."""
        share = _percent(self.spent_pct)
        return f"{self.owner} has used {share} of what it may lose {self.window}".rstrip()

    @property
    def end(self) -> str:
        """Say when the cap is reached at the present rate."""
        if self.forecast is None or self.forecast.reached_in is None:
            return "not reached at this rate"
        return f"reached in {self.forecast.reached_in} at this rate"

    @property
    def spent(self) -> AccountLoss:
        """What is spent."""
        return self.balance.spent

    @property
    def held(self) -> AccountLoss:
        """What is held by reservations."""
        return self.balance.held

    @property
    def limit(self) -> AccountLoss:
        """The cap as a loss."""
        cap = self.balance.cap
        if cap is None:
            return AccountLoss()
        return AccountLoss(cap.epsilon_micro, cap.rho_nano, cap.delta_femto or 0)

    @property
    def limit_words(self) -> str:
        """The cap as people compare it: the epsilon of its rho, whatever delta it allows beside."""
        limit = self.limit
        return epsilon_words(AccountLoss(limit.epsilon_micro, limit.rho_nano))


def _percent(share: float) -> str:
    """Write a share, rounded up: nothing that is used is said to be nothing."""
    return "nothing" if share <= 0 else f"{math.ceil(share)} %"


def cap_states(
    balances: Sequence[AccountBalance], forecasts: Sequence[CapForecast]
) -> tuple[CapState, ...]:
    """Return how full the caps are, most spent first, of accounts that have one.

    Args:
        balances: the most spent account of each unit and window.
        forecasts: of the same families.
    """
    states = [_state(balance, forecasts) for balance in balances if balance.cap is not None]
    return tuple(sorted(states, key=lambda state: (state.forecast is None, -state.spent_pct)))


def _state(balance: AccountBalance, forecasts: Sequence[CapForecast]) -> CapState:
    """Judge one account by the figure that its cap limits."""
    spent, held = _shares(balance)
    weeks = balance.cap.window_weeks if balance.cap else None
    fills = [
        each
        for each in forecasts
        if (each.family, each.cap.unit, each.cap.window_weeks)
        == (balance.family, balance.unit, weeks)
        and len(each.path) > 1
        and each.weekly != 0
        and each.coordinate in SUMS
    ]
    forecast = fills[0] if fills else None
    window = f"over {weeks} weeks" if weeks else ""
    return CapState(
        balance=balance,
        owner=f"a {balance.unit.value.replace('_', ' ')}",
        window=window,
        spent_pct=spent,
        held_pct=held,
        forecast=forecast,
        picture=burn_down(forecast) if forecast else None,
    )


def _shares(balance: AccountBalance) -> tuple[float, float]:
    """Return the spent and held share of the cap's first figure, 0 to 100; all if unbounded."""
    for name in ("rho_nano", "epsilon_micro"):
        limit = getattr(balance.cap, name)
        if limit is None:
            continue
        taken, held = getattr(balance.spent, name), getattr(balance.held, name)
        if taken is None or held is None:
            return 100.0, 0.0
        full = max(limit, 1)
        return min(100.0, 100 * taken / full), min(100.0, 100 * held / full)
    return 0.0, 0.0
