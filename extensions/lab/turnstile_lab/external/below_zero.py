"""What the numbers below zero of a table say of its noise: its family, its scale, zeros left alone.

For any raw count, Laplace noise leaves numbers below zero that are geometric with ratio e^(-1/b),
zero included where every cell is noised. Other noises leave other shapes: normal on cells that are
empty or not, of two scales, with heavy tails, uniform, and differences of counts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, ndtr

from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.odds import CONFIDENCE, Floats, is_sure, log_mean, log_odds, told
from turnstile_lab.scale_intervals import interval
from turnstile_lab.scale_of_noise import from_negatives

_NEGATIVES_LEAST = 30
_NARROW = 1.1  # an interval this narrow, high over low, names a scale within 5 %
_INTERVAL_CELLS_MOST = 200_000
LAPLACE, NORMAL, OTHER, CHANGES = "Laplace", "normal", "other", "changes"
_OTHER_PRIOR = 0.1
_ZEROS_PRIOR = 0.1


def below_zero(name: str, counts: NDArray[np.int64], *, is_coarse: bool) -> list[Disclosure]:
    """Return what the numbers below zero of one table say; no family through a coarse grid."""
    sizes = -counts[counts < 0]
    if sizes.size == 0:
        return []
    words = (
        f"{name}: {sizes.size:,} numbers are below 0, which no raw count is: noise, or differences"
    )
    figures = {"claim": "below_zero", "below_zero": int(sizes.size)}
    disclosures = [Disclosure("below_zero", False, words, figures)]
    if is_coarse or sizes.size < _NEGATIVES_LEAST:
        return disclosures
    weights = family_weights(sizes, int((counts > sizes.max()).sum()))
    family = max(weights, key=lambda candidate: weights[candidate])
    weight = log_odds(
        weights[family], [w for candidate, w in weights.items() if candidate != family]
    )
    zeros = None if family in (OTHER, CHANGES) else _zeros(name, counts, weight)
    return [*disclosures, _scale(name, counts, family, weight), *([zeros] if zeros else [])]


def family_weights(sizes: NDArray[np.int64], beyond: int) -> dict[str, float]:
    """Return the log weight of numbers below zero under each family of noise, and of changes.

    Changes of counts fall off anyhow, but as often below zero as above: each number that lies
    farther above zero than any lies below has half a chance.

    Args:
        sizes: shape (numbers,), >= 1.
        beyond: numbers that are larger than the largest size.
    """
    number, steps = sizes.size, int((sizes - 1).sum())
    reach = np.arange(1, max(4 * int(sizes.max()), 12) + 1)
    seen = np.bincount(sizes, minlength=reach.size + 1)[1:].astype(np.float64)

    def weight(shapes: list[Floats]) -> float:
        """Return the mean probability over shapes, each shape (numbers up to the reach,)."""
        masses = np.array(shapes)
        masses /= masses.sum(axis=1, keepdims=True)
        return log_mean(np.log(np.maximum(masses, 1e-300)) @ seen)

    mean = steps / number + 1
    scales = mean * np.geomspace(0.3, 6, 60)
    normal = [np.exp(-(reach**2) / (2 * s**2)) for s in scales]
    spread = [  # normal noise on counts of 0 and, for a share of them, on any count
        (1 - w) * shape / shape.sum()
        + w * ndtr(-(reach - 0.5) / s) / ndtr(-(reach - 0.5) / s).sum()
        for shape, s in zip(normal, scales, strict=True)
        for w in (0.1, 0.3, 0.6, 1.0)
    ]
    ratios = np.exp(-1 / (mean * np.geomspace(0.2, 3, 24)))
    others = [
        [  # two scales, the wider at least twice the other
            (1 - w) * r ** (reach - 1) * (1 - r) + w * q ** (reach - 1) * (1 - q)
            for r in ratios
            for q in ratios
            for w in (0.25, 0.5)
            if math.log(r) <= 2 * math.log(q)
        ],
        [reach**-power for power in np.geomspace(1.1, 6, 30)],
        [(reach <= top).astype(np.float64) for top in range(int(sizes.max()), reach.size)],
        [
            np.exp(gammaln(reach - 1 + k) - gammaln(reach) + (reach - 1) * math.log(r))
            for k in (0.25, 0.4, 2.5, 4.0)
            for r in ratios
        ],
    ]
    weights = {
        LAPLACE: float(betaln(number + 1, steps + 1)),
        NORMAL: weight(normal + spread),
        OTHER: log_mean([weight(shapes) for shapes in others]) + math.log(_OTHER_PRIOR),
    }
    changes = max(weights.values()) + math.log(_OTHER_PRIOR) - beyond * math.log(2)
    return weights | {CHANGES: changes}


def _scale(name: str, counts: NDArray[np.int64], family: str, weight: float) -> Disclosure:
    """Return the scale of noise on every cell, where its family is told and it is identified."""
    sizes = -counts[counts < 0]
    figures = {"claim": "scale", "identified": False, "source": "negatives", "family": family}
    words = f"{name}: {sizes.size:,} numbers below 0 fall off as {family} noise leaves them"
    if family in (OTHER, CHANGES) or not is_sure(weight):
        words = f"{name}: the family and scale of what moved {sizes.size:,} numbers below 0"
        return told("scale", words, min(weight, 0.0), {**figures, "family": None})
    if family == LAPLACE:
        estimate = from_negatives(counts, CONFIDENCE)
        assert estimate is not None  # noqa: S101 - there are numbers below zero
        low, high, best = estimate.low, estimate.high, estimate.scale
    else:
        low, high = _normal_scales(counts, sizes)
        best = math.sqrt(low * high) if low > 0 and high <= _NARROW * low else 0.0
    if not best:
        within = f": its scale cannot be told (between {low:.3g} and {high:.3g})"
        return told("scale", words + within, weight, figures)
    words += f" whose scale is {best:.2f}, between {low:.2f} and {high:.2f} ({CONFIDENCE:.1%})"
    figures |= {"identified": True, "scale": round(best, 4), "low": low, "high": high}
    return told("scale", words, weight, {**figures, "samples": int(sizes.size)})


def _normal_scales(counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the scales of normal noise that the whole table allows, for any raw counts."""
    if counts.size > _INTERVAL_CELLS_MOST:
        return 0.0, math.inf
    start = float(np.sqrt(np.mean(sizes.astype(np.float64) ** 2)))
    family = NoiseFamily.DISCRETE_GAUSSIAN
    bounds = interval(counts, family, round(start, 3), confidence=CONFIDENCE)
    return bounds.low, bounds.high


def _zeros(name: str, counts: NDArray[np.int64], noise_weight: float) -> Disclosure | None:
    """Return that some zeros are not of the noise; None where there is nothing to say.

    Noise whose numbers below zero fall off by a factor leaves zeros that are that factor more than
    the numbers at -1, whatever the raw counts are; some more are left to normal and rounded noise.
    """
    from scipy.stats import binom

    zeros, beside = int((counts == 0).sum()), int(max((counts == -1).sum(), (counts == 1).sum()))
    below = counts[counts < 0]
    steps = int((-below - 1).sum())
    falls = np.linspace(0.02, 0.98, 97)  # of the numbers below zero, each on the way down
    known = below.size * np.log(1 - falls) + steps * np.log(falls)
    fair = 1 / (1 + falls)
    noise = log_mean(known + binom.logpmf(zeros, zeros + beside, fair)) - log_mean(known)
    alone = log_mean(binom.logpmf(zeros, zeros + beside, np.linspace(0.5, 0.995, 60)))
    weight = math.log(_ZEROS_PRIOR) + alone - noise
    if weight <= 0 or zeros / max(zeros + beside, 1) <= float(fair[np.argmax(known)]):
        return None
    share = zeros / counts.size
    words = (
        f"{name}: {share:.0%} of the numbers are 0 while {beside} are 1 or -1, more than the noise "
        "makes: empty cells, or some of the cells, were left without noise, or small numbers are "
        "set to 0"
    )
    figures = {"claim": "zeros", "zeros": zeros, "share": round(share, 4), "beside": beside}
    return told("zeros_left_alone", words, min(weight, noise_weight), figures, is_flaw=True)
