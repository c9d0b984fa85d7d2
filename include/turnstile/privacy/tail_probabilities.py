"""Tail probabilities of counts, by the incomplete beta and gamma functions.

The same figures as `scipy.stats` gives, without the second of CPU time that importing it takes: the
gates run in a step of every week.
"""

from __future__ import annotations

from scipy.special import betainc, betaincinv, gammaincc


def binomial_at_least(least: int, trials: int, chance: float) -> float:
    """Return P(Bin(trials, chance) >= least).

    Examples:
        >>> round(binomial_at_least(2, 3, 0.5), 6)
        0.5
    """
    if least <= 0:
        return 1.0
    return 0.0 if least > trials else float(betainc(least, trials - least + 1, chance))


def binomial_limit(alpha: float, trials: int, chance: float) -> int:
    """Return the smallest number that Bin(trials, chance) reaches with at most this chance.

    Args:
        alpha: strictly between 0 and 1.
        trials: >= 0.
        chance: of each.

    Returns:
        From 1 to trials + 1.

    Examples:
        >>> binomial_limit(0.05, 10, 0.5)
        9
    """
    low, high = 0, trials + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if binomial_at_least(middle, trials, chance) <= alpha else (middle, high)
        )
    return high


def chance_at_least(right: int, trials: int, *, alpha: float) -> float:
    """Return the lower limit of a binomial's chance at a one-sided alpha (Clopper & Pearson 1934).

    Examples:
        >>> round(chance_at_least(10, 10, alpha=0.05), 4)
        0.7411
    """
    return 0.0 if right == 0 else float(betaincinv(right, trials - right + 1, alpha))


def chi_squared_above(statistic: float, degrees: int) -> float:
    """Return P(chi-squared > statistic).

    Examples:
        >>> round(chi_squared_above(3.841459, 1), 6)
        0.05
    """
    return float(gammaincc(degrees / 2, statistic / 2))
