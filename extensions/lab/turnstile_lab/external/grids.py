"""The grid that numbers lie on: multiples of a base or a factor, few digits, decimals, shares.

Each grid allows so many numbers up to the largest one, and a table holds some of them: without any
knowledge of what was counted, every choice of as many different numbers is equally likely. A number
that comes again says nothing, since it may come again for any reason. What made a grid is not told:
rounding to the nearest, at random or down, to steps that differ by size, and counting in steps look
alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.factors import factor_of
from turnstile_lab.external.odds import SURE, is_sure, log_odds, told

_DECIMALS_MOST = 9  # more are a number that was never cut
_DIGITS = (1, 2, 3)
_DIGITS_PRIOR = 0.01
_NUMBERS_LEAST = 8  # different ones: whoever looks at many small tables finds one that misleads
_SHARES_MOST = 400
_FLOAT_DECIMALS = 17  # a number that needs so many was printed with all its bits
_FLOAT_BITS = 53
_BETWEEN = (0.125, 0.5)  # where a double holds bits beyond the grid and 17 decimals hold a double
_DOUBLE = 1e-9


@dataclass(frozen=True, slots=True)
class Grid:
    """What the numbers are multiples of.

    Args:
        step: largest number that all are multiples of, as they are written.
        decimals: most decimals that a number is written with.
        any_odds: logarithm of the odds that they lie on a grid coarser than their decimals.
        step_odds: logarithm of the odds of the likeliest grid against all others.
        share: whole number q such that all are rounded multiples of 1/q; None if none shows.
        share_odds: logarithm of the odds of that.
        digits: significant digits, where that is likelier than multiples of a step; else 0.
        factor: between which numbers one lies that all are rounded multiples of; None if none does.
    """

    step: Fraction
    decimals: int
    any_odds: float
    step_odds: float
    share: int | None = None
    share_odds: float = -math.inf
    digits: int = 0
    factor: tuple[float, float] | None = None

    @property
    def may_hide(self) -> bool:
        """Whether the numbers may have been rounded to more than whole ones, or are not whole."""
        return self.step != 1 or self.any_odds > -math.log(SURE)


def grid_of(counts: NDArray[np.float64]) -> Grid:
    """Return the grid of published numbers, shape (cells,)."""
    values = np.unique(counts[counts != 0])
    decimals = max((decimals_of(value) for value in values.tolist()), default=0)
    if decimals > _DECIMALS_MOST:
        return Grid(Fraction(0), decimals, -math.inf, -math.inf, *_share_of(values, _DOUBLE))
    scale = 10**decimals
    units = np.rint(values * scale)
    step = math.gcd(*(int(unit) for unit in units)) if units.size else 1
    if step == 1 and decimals:
        shares = _share_of(values, 0.5 / scale)
        return Grid(Fraction(1, scale), decimals, -math.inf, -math.inf, *shares)
    top, bottom = float(units.max(initial=0)), float(-units.min(initial=0))

    def weight(base: int) -> float:
        """Return the logarithm of prior times probability of multiples of a base."""
        prior = 0.5 if base == 1 else 0.5 / (base * (base - 1))
        return math.log(prior) - _choices(top // base + bottom // base, units.size)

    step_weight, fine = weight(step), weight(1)
    finer = [weight(base) for base in range(2, step) if step % base == 0]
    digits = {most: _digits_weight(units, most) for most in _DIGITS if _has_digits(units, most)}
    on_grid = [*([step_weight] if step > 1 else []), *finer, *digits.values()]
    best = max(
        [step, *(-most for most in digits)],
        key=lambda candidate: digits.get(-candidate, step_weight),
    )
    chosen = digits.get(-best, step_weight)
    others = (
        [fine, *(alternative for alternative in on_grid if alternative != chosen)]
        if best != 1
        else on_grid
    )
    factor, ends = factor_of(units) if step == 1 and units.size else None, None
    if factor is not None:
        if factor.weight > max([fine, *on_grid]):
            ends, best = (factor.low, factor.high), step
            chosen, others = factor.weight, [fine, *on_grid, factor.others, _steps_weight(units)]
        on_grid += [factor.weight, factor.others]
    any_odds = -log_odds(fine, on_grid) if on_grid else -math.inf
    most = math.inf if units.size >= _NUMBERS_LEAST else 0.0
    odds = min(most, any_odds), min(most, log_odds(chosen, others))
    return Grid(Fraction(step, scale), decimals, *odds, digits=max(0, -best), factor=ends)


def decimals_of(value: float) -> int:
    """Return with how many decimals a number is written, as short as it can be.

    Examples:
        >>> decimals_of(12.0), decimals_of(0.0625), decimals_of(1e-05)
        (0, 4, 5)
    """
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def described(name: str, counts: NDArray[np.float64], grid: Grid) -> list[Disclosure]:
    """Return what the grid of a table's numbers says."""
    disclosures = []
    base, weight = float(grid.step), grid.any_odds
    ways = "rounded so, in one step or in steps by size, any way, or counted in such steps"
    what, figures = f"multiples of {base:g}", {"claim": "grid", "base": base}
    if grid.digits:
        what = f"numbers of at most {grid.digits} significant digits"
        figures = {"claim": "digits", "digits": grid.digits}
    if grid.factor is not None:
        low, high = grid.factor
        what = f"rounded multiples of a number between {low:.4f} and {high:.4f}"
        ways = "multiplied by it, as by the weight of a survey, or counted in such steps"
        figures = {"claim": "factor", "low": low, "high": high}
    if is_sure(weight) and not is_sure(grid.step_odds):
        what += ", of another number, or of few digits (which, cannot be told)"
        figures = {"claim": "coarse", "base": base}
    if grid.digits or grid.factor or grid.step > Fraction(1, 10**grid.decimals):
        words = f"{name}: all are {what}, by more than chance: {ways}"
        disclosures.append(told("rounding", words, weight, figures))
    if grid.decimals:
        disclosures.append(_decimals(name, counts, grid))
    return disclosures


def _decimals(name: str, counts: NDArray[np.float64], grid: Grid) -> Disclosure:
    """Return what numbers with decimals are, and which raw counts their last bits rule out."""
    broken = int((counts != np.rint(counts)).sum())
    figures = {"claim": "decimals", "not_whole": broken, "surely_zero": 0}
    words = f"{name}: {broken:,} numbers are not whole"
    if grid.share is not None and is_sure(grid.share_odds):
        words = f"{words}: all are multiples of 1/{grid.share}, as means or shares of counts are"
        shares = {**figures, "claim": "share", "share": grid.share}
        return told("decimals", words, grid.share_odds, shares)
    words += (
        f" (up to {grid.decimals} decimals): means, weights, estimates, other units or noise; "
        "which, cannot be told"
    )
    sizes = np.abs(counts)
    scaled = np.ldexp(counts, _FLOAT_BITS)
    judged = (sizes > _BETWEEN[0]) & (sizes < _BETWEEN[1]) & (scaled != np.rint(scaled))
    surely = sum(decimals_of(count) >= _FLOAT_DECIMALS for count in counts[judged].tolist())
    if surely and grid.share is None:
        words += (
            f". If they are whole counts with noise drawn in floating point, {surely:,} cells were "
            "empty for certain: no other count gives a number off the grid of 2^-53 (Mironov 2012)"
        )
    return Disclosure("decimals", False, words, {**figures, "surely_zero": surely})


def _choices(allowed: float, chosen: int) -> float:
    """Return the logarithm of how many choices of different numbers there are."""
    rest = max(0.0, allowed - chosen)
    return math.lgamma(allowed + 1) - math.lgamma(chosen + 1) - math.lgamma(rest + 1)


def _has_digits(units: NDArray[np.float64], most: int) -> bool:
    """Return whether numbers are of so many significant digits at most, where enough have more."""
    power = 10.0 ** np.maximum(0, np.floor(np.log10(np.abs(units))) + 1 - most)
    return int((power > 1).sum()) >= _NUMBERS_LEAST and bool(np.all(units % power == 0))


def _digits_weight(units: NDArray[np.float64], most: int) -> float:
    """Return the logarithm of prior times probability of few significant digits."""
    allowed = 0.0
    for end in (units.max(), -units.min()):
        if end > 0:
            power = 10.0 ** max(0, math.floor(math.log10(end)) + 1 - most)
            allowed += end // power + 9 * 10.0 ** (most - 1) * math.log10(power)
    return math.log(_DIGITS_PRIOR) - _choices(max(allowed, units.size), units.size)


def _steps_weight(units: NDArray[np.float64]) -> float:
    """Return the logarithm of prior times probability of multiples of a base up to some number."""
    sizes = np.unique(np.abs(units)).astype(np.int64)
    bases = np.gcd.accumulate(sizes)[:-1].tolist()
    logs = [
        math.log(_DIGITS_PRIOR / (base * (base - 1)))
        - _choices(bound // base + sizes[-1] - bound, units.size)
        for base, bound in zip(bases, sizes[1:].tolist(), strict=True)
        if base > 1
    ]
    return max(logs, default=-math.inf) - math.log(sizes.size)


def _share_of(values: NDArray[np.float64], half: float) -> tuple[int | None, float]:
    """Return the least q that makes all values rounded multiples of 1/q, and its log odds."""
    near = half * 1.01 + 1e-12 * np.abs(values)
    span = float(values.max(initial=0) - min(0.0, values.min(initial=0)))
    whole = _choices(max(span / (2 * half), values.size), values.size)
    for share in range(2, _SHARES_MOST):
        if share * 4 * half > 1:  # its multiples would lie nearly everywhere
            break
        if np.all(np.abs(values * share - np.rint(values * share)) <= near * share):
            prior = math.log(1 / (share * (share - 1)))
            if values.size < _NUMBERS_LEAST:
                return share, 0.0
            return share, prior + whole - _choices(max(span * share, values.size), values.size)
    return None, -math.inf
