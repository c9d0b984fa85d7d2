"""The noise is of the declared kind, whatever the raw counts are.

Two tests share the gate's chance of a false alarm. Of dense Laplace counts the numbers at and below
zero are geometric, zero included: c + Z = -k has probability proportional to r^k for every k >= 0
and every c >= 0. Rounded floating-point Laplace noise has too few zeros there, normal noise too
thin a tail. And of every dense table: half of the cells learns what the numbers look like, with no
noise assumed; the other half bets on it against the nearest mixture of the declared noise
(`scale_of_any_counts`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.power_of_bets import Power
from turnstile.assessment.attacks.scale_of_any_counts import is_worth_a_bet, log_evidence_of_kind
from turnstile.assessment.gates.numbers import Numbers
from turnstile.assessment.gates.result import ALPHA, POWER, GateResult, not_applicable
from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.tail_probabilities import chi_squared_above

_NAME = "noise_kind"
_EXPECTED_PER_BIN = 25.0
# The chi-squared limit is short in the tail: at a nominal alpha/10 the right noise is rejected with
# less than alpha (`privacy.goodness`).
_SHARE_OF_ALPHA = 0.1


def noise_kind(numbers: Numbers, alpha: float = ALPHA) -> GateResult:
    """No dense table holds noise of another kind, or cells without any."""
    judged = numbers.by_day_and_pooled(numbers.dense)
    if not judged:
        return not_applicable(_NAME, "no dense table: a threshold hides the shape of its noise")
    each = alpha / 2 / len(judged)
    wrong = [
        f"{label}: the noise is not {event.noise} of scale {float(event.scale):.4g} alone"
        for label, (event, values) in judged.items()
        if geometric_p_value(values, event) < each * _SHARE_OF_ALPHA
        or _is_refuted(values, event, each)
    ]
    passed = f"{len(judged)} dense tables and days of them: none shows noise of another kind"
    largest = max(judged, key=lambda label: judged[label][1].size)
    return GateResult(
        _NAME,
        not wrong,
        "; ".join(wrong) or passed,
        alpha,
        _detects(largest, *judged[largest], each),
    )


def _detects(label: str, event: DrawEvent, values: NDArray[np.int64], alpha: float) -> str:
    """State the share of cells without noise that is found in the largest table."""
    enough = math.log(1 / alpha)
    share = Power(values, event, enough=enough, power=POWER).share_found()
    if share is None:
        return f"nothing: too few of the {values.size:,} cells of {label} are alike"
    return f"{share:.0%} of the {values.size:,} cells of {label} without noise"


def _is_refuted(values: NDArray[np.int64], event: DrawEvent, alpha: float) -> bool:
    """Tell whether the bet on what one half of the numbers looks like is won."""
    scale, is_signed = float(event.scale), event.statistic == "sum"
    if not is_worth_a_bet(values, event.noise, scale, is_signed=is_signed):
        return False
    evidence = log_evidence_of_kind(values, event.noise, scale, is_signed=is_signed)
    return evidence > math.log(1 / alpha)


def geometric_p_value(values: NDArray[np.int64], event: DrawEvent) -> float:
    """Return the p-value of the numbers at and below zero against the geometric distribution.

    1 where they say nothing: other noise, sums, or too few numbers.
    """
    if event.noise is not NoiseFamily.DISCRETE_LAPLACE or event.statistic == "sum":
        return 1.0
    sizes = -values[values <= 0]
    ratio = math.exp(-1 / float(event.scale))
    bins = math.floor(
        math.log(max(_EXPECTED_PER_BIN / max(1, sizes.size) / (1 - ratio), 1e-300))
        / math.log(ratio)
    )
    if sizes.size == 0 or bins < 1:
        return 1.0
    expected = sizes.size * (1 - ratio) * ratio ** np.arange(bins)
    expected = np.append(expected, sizes.size * ratio**bins)
    observed = np.bincount(np.minimum(sizes, bins), minlength=bins + 1)
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    return chi_squared_above(statistic, bins)
