"""Postings: what the planned draws cost every unit, in the integers that the ledger keeps.

PRIVACY 3: two additive accounts for each unit and scope. The first sums epsilon (with delta, by
basic composition: an (epsilon, delta) guarantee, pure while delta is 0); the second sums rho of
approximate zCDP (Bun & Steinke 2016, section 8 and Proposition 1.4: an epsilon-DP draw is
epsilon^2/2-zCDP). None is infinite. Amounts add up as fractions and are rounded up once, at the
end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import pure_or_concentrated
from turnstile.privacy.tails import stability_delta
from turnstile.privacy.units import Block, ProtectionUnit, scope_of

MICRO = 10**6
NANO = 10**9
FEMTO = 10**15


@dataclass(frozen=True, slots=True)
class Loss:
    """Exact cost of draws to one unit; None is infinite.

    Args:
        epsilon: of the (epsilon, delta) guarantee; None if a draw was not Laplace.
        rho: of the delta-approximate rho-zCDP guarantee; None if a contribution is not bounded.
        delta: uncovered probability, 0 without thresholds.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction = Fraction(0)

    def __add__(self, other: Loss) -> Loss:
        """Compose: every amount adds up, and infinite stays infinite."""
        return Loss(
            epsilon=_sum(self.epsilon, other.epsilon),
            rho=_sum(self.rho, other.rho),
            delta=min(Fraction(1), self.delta + other.delta),
        )

    def times(self, count: int) -> Loss:
        """Compose so many draws of this loss."""
        return Loss(
            epsilon=None if self.epsilon is None else count * self.epsilon,
            rho=None if self.rho is None else count * self.rho,
            delta=min(Fraction(1), count * self.delta),
        )


NO_LOSS = Loss(Fraction(0), Fraction(0))
UNBOUNDED = Loss(None, None)


@dataclass(frozen=True, slots=True, order=True)
class Posting:
    """What one release adds to one account.

    Args:
        unit: protection unit of the account.
        scope: piece of time (and mode, batch) that one instance of the unit can touch.
        epsilon_micro: epsilon in 1e-6, None for infinite.
        rho_nano: rho in 1e-9, None for infinite.
        delta_femto: delta in 1e-15.
    """

    unit: ProtectionUnit
    scope: str
    epsilon_micro: int | None
    rho_nano: int | None
    delta_femto: int


def loss_of(event: DrawEvent, sensitivity: Sensitivity | None) -> Loss:
    """Return the exact loss of one draw for a unit of this sensitivity, by the plan's formula.

    Laplace: epsilon = l1/b (Ghosh et al. 2009), rho = epsilon^2/2. Gaussian: rho = l2^2/(2 sigma^2)
    (Canonne, Kamath & Steinke 2020, Theorem 4), no finite epsilon. A threshold adds its delta.

    Args:
        event: the draw.
        sensitivity: how far the unit moves it; None if not bounded, an infinite loss.
    """
    if sensitivity is None:
        return UNBOUNDED
    by_l2 = sensitivity.l2_squared / (2 * event.scale**2)
    figure = sensitivity.l1 / event.scale if event.noise.record.is_pure else by_l2
    epsilon, rho = pure_or_concentrated(event.noise.record.is_pure, figure)
    return Loss(epsilon, rho, _delta_of(event, sensitivity))


def losses(events: Sequence[DrawEvent]) -> dict[tuple[ProtectionUnit, str], Loss]:
    """Return the exact sum of costs for every unit and scope that the draws touch."""
    groups: defaultdict[tuple[object, ...], list[tuple[DrawEvent, ...]]] = defaultdict(list)
    for vector in vectors(events):
        first = vector[0]
        groups[*_noise_of(first), first.threshold, first.delta].append(vector)
    totals: defaultdict[tuple[ProtectionUnit, str], Loss] = defaultdict(lambda: NO_LOSS)
    for group in groups.values():
        touched = [{block for event in vector for block in event.blocks} for vector in group]
        for unit, sensitivity in group[0][0].sensitivities:
            loss = loss_of(group[0][0], sensitivity)
            # A bound holds over the whole vector, so a scope pays once however many of its blocks
            # (modes, days, batches) the draw reads.
            paid = Counter(s for blocks in touched for s in {scope_of(unit, b) for b in blocks})
            for scope, draws in paid.items():
                totals[unit, scope] += loss.times(draws)
            if unit.is_lifetime:
                continue  # its sensitivity holds what is carried along
            for vector in group:
                for scope, multiple in _carried(unit, vector).items():
                    totals[unit, scope] += _of_multiple(loss, Fraction(multiple, vector[0].step))
    return dict(totals)


def loss_by_unit(events: tuple[DrawEvent, ...]) -> dict[ProtectionUnit, Loss]:
    """Return the largest loss of one instance of each unit; the scopes of a unit are disjoint."""
    largest: dict[ProtectionUnit, Loss] = {}
    for (unit, _), loss in losses(events).items():
        known = largest.get(unit)
        largest[unit] = loss if known is None else _larger(known, loss)
    return largest


def _larger(loss: Loss, other: Loss) -> Loss:
    """Return the larger of two losses, amount by amount; None is infinite."""
    return Loss(
        epsilon=_largest(loss.epsilon, other.epsilon),
        rho=_largest(loss.rho, other.rho),
        delta=max(loss.delta, other.delta),
    )


def _largest(amount: Fraction | None, other: Fraction | None) -> Fraction | None:
    """Return the larger of two amounts; None is infinite."""
    return None if amount is None or other is None else max(amount, other)


def _carried(unit: ProtectionUnit, vector: tuple[DrawEvent, ...]) -> dict[str, int]:
    """Return how many times a vector holds the exact counts of each earlier scope of a unit."""
    multiples: dict[str, int] = {}
    for event in vector:
        for day, multiple in event.carried:
            for mode in {block.mode for block in event.blocks}:
                scope = scope_of(unit, Block(day, mode))
                multiples[scope] = max(multiple, multiples.get(scope, 0))
    return multiples


def _of_multiple(loss: Loss, share: Fraction) -> Loss:
    """Return the loss of a Gaussian draw to a unit that moves it by a share of the sensitivity."""
    return Loss(None, None if loss.rho is None else share**2 * loss.rho)


def vectors(events: Sequence[DrawEvent]) -> tuple[tuple[DrawEvent, ...], ...]:
    """Return the vectors that the draws make up: one draw alone, or the pieces of a joint one.

    Independent noise of one scale on every piece is one draw of the pieces side by side
    (dense.proof.md, D5), so a bound over all of them is charged once.

    Raises:
        ValueError: pieces of one vector differ in noise, scale or sensitivities.
    """
    pieces: dict[str | int, list[DrawEvent]] = {}
    for number, event in enumerate(events):
        pieces.setdefault(event.joint or number, []).append(event)
    for joint, group in pieces.items():
        if any(_noise_of(piece) != _noise_of(group[0]) for piece in group[1:]):
            raise ValueError(f"the pieces of {joint} differ in noise, scale or sensitivities")
    return tuple(tuple(vector) for vector in pieces.values())


def _noise_of(event: DrawEvent) -> tuple[object, ...]:
    """Return what all pieces of one vector share."""
    return (event.noise, event.scale, event.sensitivities, event.step)


def postings(events: Sequence[DrawEvent]) -> tuple[Posting, ...]:
    """Return what the draws add to each account, sorted by unit and scope.

    Amounts are the exact sums over the events, rounded up once.
    """
    totals = losses(events)
    return tuple(_posted(unit, scope, totals[unit, scope]) for unit, scope in sorted(totals))


def _posted(unit: ProtectionUnit, scope: str, loss: Loss) -> Posting:
    """Round a loss up to ledger units."""
    return Posting(
        unit=unit,
        scope=scope,
        epsilon_micro=None if loss.epsilon is None else rounded_up(loss.epsilon, MICRO),
        rho_nano=None if loss.rho is None else rounded_up(loss.rho, NANO),
        delta_femto=rounded_up(loss.delta, FEMTO),
    )


def rounded_up(amount: Fraction, parts: int) -> int:
    """Return the smallest integer number of 1/parts that is not below the amount.

    Examples:
        >>> rounded_up(Fraction(1, 3), MICRO)
        333334
    """
    return -(-amount.numerator * parts // amount.denominator)


def posted_whole(amount: Fraction, coordinate: str) -> Fraction:
    """Return the largest amount, not above this one, that a posting does not round up.

    So as many draws of it as fit a cap as fractions also fit it in the ledger.

    Args:
        amount: of one draw.
        coordinate: `epsilon` or `rho`.

    Examples:
        >>> posted_whole(Fraction(2, 3), "epsilon")
        Fraction(333333, 500000)
    """
    parts = NANO if coordinate == "rho" else MICRO
    return Fraction(amount.numerator * parts // amount.denominator, parts)


def _delta_of(event: DrawEvent, sensitivity: Sensitivity) -> Fraction:
    """Delta of a thresholded draw for one unit: never below what the event states for a record."""
    if event.threshold is None:
        return Fraction(0)
    delta = stability_delta(event.scale, event.threshold, l1=sensitivity.l1, linf=sensitivity.linf)
    return max(delta, event.delta)


def _sum(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    """Add two amounts; infinite if either is."""
    return None if left is None or right is None else left + right
