"""A programme's caps in the units of the ledger. Pure."""

from __future__ import annotations

from fractions import Fraction

from turnstile.ledger.balances.amounts import Cap
from turnstile.privacy.accounts import FEMTO, MICRO, NANO
from turnstile.programme.mechanism_spec import CapSpec


def ledger_cap(cap: CapSpec) -> Cap:
    """Return a cap in ledger units, rounded down: what is capped is never above what was written.

    Examples:
        >>> from turnstile.privacy.units import NeighboringRelation, ProtectionUnit
        >>> ar = NeighboringRelation.ADD_REMOVE
        >>> four = CapSpec(ProtectionUnit.TRIP, ar, Fraction(4), None, None, None)
        >>> ledger_cap(four).epsilon_micro
        4000000
    """
    return Cap(
        unit=cap.unit,
        relation=cap.relation,
        epsilon_micro=_floor(cap.epsilon, MICRO),
        rho_nano=_floor(cap.rho, NANO),
        delta_femto=_floor(cap.delta, FEMTO),
        window_weeks=cap.window_weeks,
    )


def _floor(amount: Fraction | None, parts: int) -> int | None:
    """Return an integer number of parts, rounded down."""
    return None if amount is None else int(amount * parts)
