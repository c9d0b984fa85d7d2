"""Audits of one run beside each other: what each states of correct noise, and which faults it sees.

The f-DP audit of one run (Mahloujifar, Melis & Chaudhuri 2024), derived anew here. Of r guesses
about m fair coins let p_i be the chance that i are right, P = sum, and for one canary let F be the
most that an event of chance x can have on the other side (F = 1 - f, concave). Of a canary that is
guessed rightly while i in all are right, the same output with its coin turned is a wrong guess and
i - 1 right ones. So by Jensen's inequality over canaries, coins and outputs, for every i

    sum_{t >= i} t/m p_t <= F(sum_{t >= i - 1} (r - t)/m p_t).

Let S_i = r/m P(at least i), G_i = 1/m sum_{t >= i} (t - i) p_t. Then G_i = G_{i+1} + S_{i+1}/r, and
the inequality is S_i >= r/(r - i) (F^-1(G_{i+1} + (i + 1)/r S_{i+1}) + G_i). All of it grows with S
and G, so P(at least v) = tau takes at least what S_v = r tau/m and G_v = 0 lead to: where that S_0
is above r/m, a chance of tau is refuted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from assessment_noises import Floats
from scipy.stats import binom

from turnstile.assessment.audits.one_run import SHARES, audit
from turnstile.assessment.audits.pipeline_copy import (
    CanaryRun,
    PipelineCopy,
    declared_change,
    run_canaries,
)
from turnstile.assessment.audits.release_audit import CANARIES
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import binomial_at_least
from turnstile.privacy.units import ProtectionUnit

CERTAIN = 1e-9
SHOWN = 0.05
DELTA = 1e-5  # of epsilon of Gaussian noise
_UNIT = ProtectionUnit.CARD_DAY
_STEPS = 10  # of a scale that is refuted: to a thousandth
_REACH = {True: 60, False: 14}  # scales
Refuted = Callable[[CanaryRun, DrawEvent, int, float], bool]


class Curve(NamedTuple):
    """F: the largest power of a test of a given size, between corners from (0, 0) to (1, 1)."""

    sizes: list[float]
    powers: list[float]

    def size_of(self, power: float) -> float:
        """Return F^-1: the least size of a test of so much power."""
        n = bisect_right(self.powers, min(power, 1.0)) - 1
        if n >= len(self.powers) - 1:
            return 1.0
        below, above = self.powers[n], self.powers[n + 1]
        part = (power - below) / (above - below) if above > below else 0.0
        return self.sizes[n] + part * (self.sizes[n + 1] - self.sizes[n])

    @property
    def accuracy(self) -> float:
        """The chance of the best guess of one fair coin."""
        return float((1 + np.max(np.array(self.powers) - np.array(self.sizes))) / 2)


def curve_of(event: DrawEvent, change: int) -> Curve:
    """Return F of two inputs that differ by so much in one cell."""
    reach = int(_REACH[event.noise.record.is_pure] * event.scale) + 2 * change + 2
    _, chances = noise_pmf(event.noise, event.scale, reach=reach)
    out, there = chances[change:], chances[: chances.size - change]
    order = np.argsort(-(there + 1e-300) / (out + 1e-300), kind="stable")
    return Curve([0.0, *np.cumsum(out[order]), 1.0], [0.0, *np.cumsum(there[order]), 1.0])


def is_impossible(curve: Curve, canaries: int, guesses: int, right: int, chance: float) -> bool:
    """Tell whether so many right guesses have less than a chance under f-DP.

    Args:
        curve: of the claim.
        canaries: all.
        guesses: that were made.
        right: of them, at least.
        chance: strictly between 0 and 1.
    """
    most = guesses / canaries
    mass, excess = most * chance, 0.0
    for i in range(right - 1, -1, -1):
        power = excess + (i + 1) / guesses * mass
        excess += mass / guesses
        mass = max(mass, guesses / (guesses - i) * (curve.size_of(power) + excess))
        if mass > most:
            return True
    return False


def _guesses(run: CanaryRun) -> Iterator[tuple[int, int]]:
    """Yield how many guesses are made of the surest canaries, and how many are right."""
    order = np.argsort(run.scores, kind="stable")
    for share in SHARES:
        each = int(share * run.scores.size) // 2
        right = int(run.is_in[order[-each:]].sum()) + int((~run.is_in[order[:each]]).sum())
        yield 2 * each, right


def f_dp(run: CanaryRun, event: DrawEvent, change: int, error: float) -> bool:
    """Refute by the f-DP audit, at three numbers of guesses."""
    curve, size = curve_of(event, change), run.scores.size
    return any(
        is_impossible(curve, size, guesses, right, error / len(SHARES))
        for guesses, right in _guesses(run)
    )


def pure(run: CanaryRun, event: DrawEvent, change: int, error: float) -> bool:
    """Refute by epsilon alone (Steinke, Nasr & Jagielski 2023); of Gaussian noise at delta 1e-5."""
    if event.noise.record.is_pure:
        outcome = audit(run.scores, run.is_in, confidence=1 - error)
        return outcome.epsilon > change / float(event.scale)
    curve, low, high = curve_of(event, change), 0.0, 60.0
    for _ in range(30):
        middle = (low + high) / 2
        beyond = float(np.max(np.array(curve.powers) - np.exp(middle) * np.array(curve.sizes)))
        low, high = (middle, high) if beyond > DELTA else (low, middle)
    size = run.scores.size
    return any(
        p_value(high, guesses, right, canaries=size, delta=DELTA) < error / len(SHARES)
        for guesses, right in _guesses(run)
    )


def p_value(epsilon: float, guesses: int, right: int, *, canaries: int, delta: float) -> float:
    """Return a bound on P(at least so many right guesses) under (epsilon, delta)-DP.

    P(Bin(r, q) >= v) with q = e^epsilon/(1 + e^epsilon), plus 2 m delta times the largest mean of
    the binomial's mass just below v (Theorem 5.2 and appendix D of the paper).
    """
    chance = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    steepest = float(np.max(below / np.arange(1, right + 1))) if right else 0.0
    beyond = binomial_at_least(right, guesses, chance)
    return min(1.0, beyond + 2 * canaries * delta * steepest)


def independent(run: CanaryRun, event: DrawEvent, change: int, error: float) -> bool:
    """Refute by the accuracy of one guess a canary, which are independent by the noise declared."""
    right = int(((run.scores > 0) == run.is_in).sum())
    return binomial_at_least(right, run.is_in.size, curve_of(event, change).accuracy) < error


AUDITS: dict[str, Refuted] = {
    "Steinke 2023": pure,
    "f-DP 2024": f_dp,
    "independent guesses": independent,
}


def event_of(noise: NoiseFamily, scale: Fraction, moved: int = 1) -> DrawEvent:
    """Return a draw in which one unit moves one cell."""
    sensitivity = Sensitivity(l0=1, l1=moved, l2_squared=moved**2, linf=moved)
    return DrawEvent("t", "count", noise, scale, (), ((_UNIT, sensitivity),))


def run_of(event: DrawEvent, times: float = 1.0, canaries: int = CANARIES) -> CanaryRun:
    """Run canaries with noise of so many times the declared scale."""
    other = replace(event, scale=Fraction(float(event.scale) * times))
    copy = PipelineCopy(draw=lambda _, x: (draw(other, x),))
    bound = event.sensitivities[0][1]
    assert bound is not None  # noqa: S101 - just made
    return run_canaries(copy, event, _UNIT, bound, canaries=canaries)


def largest_scale(run: CanaryRun, event: DrawEvent, refuted: Refuted, error: float) -> float:
    """Return the least scale that is refuted, in declared ones; above 1 of right noise."""
    bound = event.sensitivities[0][1]
    assert bound is not None  # noqa: S101 - just made
    change = declared_change(event, bound)
    low, high = 0.5, 4.0
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        other = replace(event, scale=Fraction(float(event.scale) * middle))
        low, high = (low, middle) if refuted(run, other, change, error) else (middle, high)
    return high


def audits() -> Floats:
    """Print, for right noise and half of it, how large a scale each audit leaves possible."""
    kinds = (
        *(event_of(NoiseFamily.DISCRETE_LAPLACE, Fraction(scale)) for scale in ("1/2", "1", "2")),
        event_of(NoiseFamily.DISCRETE_LAPLACE, Fraction(12)),
        *(event_of(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(scale)) for scale in (1, 12, 34)),
    )
    print(f"| {CANARIES:,} canaries | error | {' | '.join(AUDITS)} |")
    print("|---|---|---|---|---|")
    table = []
    for event in kinds:
        for times in (1.0, 0.5):
            run = run_of(event, times)
            for error in (SHOWN, CERTAIN):
                ratios = [
                    1 / largest_scale(run, event, method, error) for method in AUDITS.values()
                ]
                table.append(ratios)
                words = "" if times == 1 else f", drawn with {times:g} of it"
                print(
                    f"| {event.noise} {float(event.scale):g}{words} | {error:g} | "
                    f"{' | '.join(f'{ratio:.3f}' for ratio in ratios)} |",
                    flush=True,
                )
    return np.array(table)
