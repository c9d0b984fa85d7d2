"""The noise is of the declared kind and scale, whatever the raw counts are.

Of every dense table, some of the cells learn what the numbers look like, with no noise assumed and
with noise of other scales, cut noise and cells without any; the next ones bet on it against the
nearest mixture of the declared noise (`evidence_of_any_counts`). Of such a bet a bound is known
alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.evidence_of_any_counts import (
    is_worth_a_bet,
    log_bets,
    log_mean,
)
from turnstile.assessment.attacks.noise_outcomes import Outcomes
from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import ALPHA, GateResult, not_applicable
from turnstile.privacy.events import DrawEvent

_NAME = "noise_kind"
_KEPT = 0.1  # of a stake on all tables together, where it is on one
_DETECTS = (
    "no size is stated: it depends on the raw counts, which nobody may look at; docs/LAB.md says "
    "what was measured on made-up weeks"
)


def noise_kind(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """No dense table holds noise of another kind or scale, or cells without any."""
    judged = numbers.by_day_and_pooled(numbers.dense)
    if not judged:
        return not_applicable(_NAME, "no dense table: a threshold hides the shape of its noise")
    pooled = numbers.pooled(numbers.dense)
    enough = math.log(2 / alpha)  # of all together; each has its part of the other half
    bets = {
        label: _bets(event, values)
        for label, (event, values) in judged.items()
        if is_worth_a_bet(values, _outcomes(event))
    }
    wrong = [
        f"{label}: the noise is not {event.noise} of scale {float(event.scale):.4g} alone"
        for label, (event, _) in judged.items()
        if label in bets and log_mean(bets[label]) > enough + math.log(len(judged))
    ]
    if bets and not wrong:  # one slip in all tables: their noise is independent, so bets multiply
        known = np.array([bets[own] if own in bets else _bets(*pooled[own]) for own in pooled])
        # A part of each stake is kept, so that a small table loses no more than the rest.
        won = np.logaddexp(known + math.log1p(-_KEPT), math.log(_KEPT))
        if log_mean(won.sum(axis=0)) > enough:
            wrong = ["all tables together: the noise of each is not of the declared kind and scale"]
    passed = f"{len(judged)} dense tables and days: none shows noise of another kind or scale"
    return GateResult(_NAME, not wrong, "; ".join(wrong) or passed, alpha, _DETECTS)


def _outcomes(event: DrawEvent) -> Outcomes:
    """Return what a draw's noise can make of a raw number."""
    return Outcomes(event.noise, float(event.scale), event.statistic == "sum")


def _bets(event: DrawEvent, values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what bets on other noise win, each its logarithm."""
    return log_bets(values, _outcomes(event))
