"""Amounts that the ledger adds up and compares: losses, and the caps on them; pure.

Amounts are integers: epsilon in 1e-6, rho in 1e-9, delta in 1e-15, rounded up once (PRIVACY 3).
`None` in a loss means that no finite figure holds; in a cap it means that none is set.
"""

from __future__ import annotations

from dataclasses import dataclass

from turnstile.errors import InputError
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit

EVER = "ever"
SUMS = ("epsilon_micro", "rho_nano")
"""Of losses and caps the two sums; a delta goes with either."""
COORDINATES = (*SUMS, "delta_femto")
"""Of losses and caps every figure."""
_DECIMALS = {"epsilon": 6, "rho": 9, "delta": 15}


@dataclass(frozen=True, slots=True)
class AccountLoss:
    """What one account lost: two exactly additive sums, add/remove.

    Args:
        epsilon_micro: pure epsilon in 1e-6; None once something not pure was posted.
        rho_nano: zCDP rho in 1e-9; None once something unbounded was posted.
        delta_femto: delta that goes with rho, in 1e-15.
    """

    epsilon_micro: int | None = 0
    rho_nano: int | None = 0
    delta_femto: int = 0

    def __add__(self, other: AccountLoss) -> AccountLoss:
        """Compose: every coordinate adds up, and infinity stays infinity."""
        return AccountLoss(
            _plus(self.epsilon_micro, other.epsilon_micro),
            _plus(self.rho_nano, other.rho_nano),
            self.delta_femto + other.delta_femto,
        )

    @property
    def rank(self) -> tuple[int | bool, ...]:
        """Where it stands among others: by rho, which all noise has, then epsilon and delta."""
        rho, epsilon = self.rho_nano, self.epsilon_micro
        return rho is None, rho or 0, epsilon is None, epsilon or 0, self.delta_femto


def _plus(amount: int | None, other: int | None) -> int | None:
    """Add two amounts of which None is infinite."""
    return None if amount is None or other is None else amount + other


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that each account of a unit may lose.

    Args:
        unit: whose loss is capped; a cap holds for each account of the unit.
        relation: add/remove, or replace-one, which is enforced as half the epsilon and a quarter
            of the rho under add/remove (group privacy of two: Bun & Steinke 2016, Proposition
            1.9), so it cannot state a delta.
        epsilon_micro: pure epsilon in 1e-6, or None.
        rho_nano: zCDP rho in 1e-9, or None.
        delta_femto: delta in 1e-15; None beside a rho means that none is allowed.
        window_weeks: rolling window for `card` and `bus`; None caps the whole lifetime.
    """

    unit: ProtectionUnit
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    epsilon_micro: int | None = None
    rho_nano: int | None = None
    delta_femto: int | None = None
    window_weeks: int | None = None

    def __post_init__(self) -> None:
        """Refuse a cap that caps nothing, or that cannot be enforced.

        Raises:
            InputError: see the sentence.
        """
        amounts = (self.epsilon_micro, self.rho_nano, self.delta_femto)
        if self.epsilon_micro is None and self.rho_nano is None:
            raise self._refused("state epsilon or rho")
        if any(amount is not None and amount < 0 for amount in amounts):
            raise self._refused("amounts must not be negative")
        if self.relation is NeighboringRelation.REPLACE and self.delta_femto:
            raise self._refused("state a delta under add_remove; replace-one has no exact one")
        if self.window_weeks is not None and self.window_weeks < 1:
            raise self._refused("window_weeks must be at least 1")
        if self.window_weeks is not None and not is_lifetime_unit(self.unit):
            raise self._refused("window_weeks is for card and bus; drop it here")

    def _refused(self, rule: str) -> InputError:
        """Build the error of a cap that breaks a rule."""
        return InputError(where="caps", field=self.unit.value, rule=rule)


def is_lifetime_unit(unit: ProtectionUnit) -> bool:
    """Say whether a unit has one account for ever, with a row a week for rolling windows."""
    return unit.is_lifetime


def word_of(coordinate: str) -> str:
    """Return the word for a figure of a loss.

    Examples:
        >>> [word_of(coordinate) for coordinate in COORDINATES]
        ['epsilon', 'rho', 'delta']
    """
    return coordinate.partition("_")[0]


def amount_text(coordinate: str, amount: int | None) -> str:
    """Write an amount of the ledger as an exact decimal.

    Examples:
        >>> amount_text("epsilon", 1_500_000), amount_text("rho", None)
        ('1.5', 'infinite')
    """
    if amount is None:
        return "infinite"
    return decimal_text(amount, _DECIMALS[coordinate])


def decimal_text(parts: int, decimals: int) -> str:
    """Write an integer number of 10^-decimals as an exact decimal.

    Examples:
        >>> decimal_text(-1_500, 3), decimal_text(2_000, 3)
        ('-1.5', '2')
    """
    integer, rest = divmod(abs(parts), 10**decimals)
    digits = f"{rest:0{decimals}d}".rstrip("0")
    return f"{'-' if parts < 0 else ''}{integer}{'.' if digits else ''}{digits}"


def cap_text(cap: Cap) -> str:
    """Name a cap: `card over 52 weeks`."""
    return cap.unit.value + (f" over {cap.window_weeks} weeks" if cap.window_weeks else "")
