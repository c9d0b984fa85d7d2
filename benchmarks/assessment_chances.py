"""Chances that are stated, beside how often it happens: refused correct releases, right guesses.

Noise is the product's own, drawn many numbers at a time, so that thousands of releases are cheap.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from assessment_noises import declared
from assessment_releases import PROGRAMMES, case_of, exact_of
from numpy.typing import NDArray
from scipy.special import ive
from scipy.stats import poisson

from turnstile.assessment.attacks.evidence_of_any_counts import log_evidence
from turnstile.assessment.gates import measured_power
from turnstile.assessment.gates.noise_reuse import (
    _TILTS,
    TURNS,
    _log_mean,
    _Pair,
    share_found,
    ties_limit,
)
from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.assessment.gates.result import ALPHA, ANY_COUNTS, EMPTY_CELLS
from turnstile.assessment.gates.sealed_numbers import integers, support
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Vector

SIZES = ((8, 5), (12, 6), (24, 10))
REAL_SIZE = (96, 300)  # quarters of an hour, places of one mode; half a million numbers a week
REAL_EVERY = 200
OFTEN = 0.001
"""A chance of a false alarm that can be counted; at 1e-9 none is expected in a lifetime."""
_ODDS = 6.0  # tilt of the sums of phases that are turned into odds
_AT_ONCE = 20_000
_CANARIES = 40_000
_WEEKS = 4
_LIFETIME = ("card", "bus")


@dataclass
class Noise:
    """Noise of the product's sampler, drawn ahead; each number is used once."""

    ahead: defaultdict[tuple[NoiseFamily, Fraction], NDArray[np.int64]] = field(
        default_factory=lambda: defaultdict(lambda: np.zeros(0, dtype=np.int64))
    )

    def take(self, event: DrawEvent, number: int) -> NDArray[np.int64]:
        """Return so many draws of an event's noise, dense."""
        kind = (event.noise, event.scale)
        if self.ahead[kind].size < number:
            dense = replace(event, threshold=None, delta=Fraction(0))
            fresh = draw(dense, np.zeros(max(_AT_ONCE, number), dtype=np.int64))
            self.ahead[kind] = np.concatenate((self.ahead[kind], fresh))
        taken, self.ahead[kind] = np.split(self.ahead[kind], [number])
        return taken


class Row(NamedTuple):
    """A gate on releases of one kind, and whether it states the chance itself or a bound of it."""

    gate: str
    counts: str
    is_itself: bool


@dataclass
class Tally:
    """What became of correct releases: at 1 in 1,000 a gate, unless it says otherwise.

    Args:
        refused: releases that were stopped at 1e-9.
        judged: releases of each row.
        stated: sums of the chances that the gates state.
        stopped: releases that they stopped.
        odds: e-values of the bets on one dense draw of each release, and on a pair of draws.
    """

    refused: int = 0
    judged: Counter[Row] = field(default_factory=Counter)
    stated: defaultdict[Row, float] = field(default_factory=lambda: defaultdict(float))
    stopped: Counter[Row] = field(default_factory=Counter)
    odds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def bet(self, drawn: Drawn, number: int) -> None:
        """Bet against the noise of one dense draw, and against two draws being independent."""
        dense = judged_release(drawn).dense
        vector = dense[number % len(dense)]
        is_signed = vector.event.statistic == "sum"
        evidence = log_evidence(
            vector.values, vector.event.noise, float(vector.event.scale), is_signed=is_signed
        )
        self.odds["noise_kind"].append(math.exp(evidence))
        for other in dense:
            if other is not vector and other.values.size == vector.values.size:
                self.odds["drawn_once"].append(math.exp(log_odds(vector, other)))
                return

    def judge(self, drawn: Drawn, *, is_empty: bool) -> None:
        """Let every gate judge a release; what passes at 1 in 1,000 passes at 1e-9 too."""
        numbers = judged_release(drawn)
        is_refused = not (support(drawn).passed and integers(numbers).passed)
        for gate in NUMBER_GATES:
            result = gate(numbers, OFTEN)
            if not result.is_applicable:
                continue
            itself = (ANY_COUNTS, EMPTY_CELLS) if is_empty else (ANY_COUNTS,)
            row = Row(result.gate, "empty" if is_empty else "made up", result.reached_by in itself)
            self.judged[row] += 1
            self.stated[row] += result.false_alarm
            if not result.passed:
                self.stopped[row] += 1
                is_refused |= not gate(numbers).passed
        self.refused += is_refused

    def sums(self, *, is_itself: bool) -> tuple[float, int]:
        """Return the sum of the stated chances and of what was stopped."""
        rows = [row for row in self.judged if row.is_itself is is_itself]
        return sum(self.stated[row] for row in rows), sum(self.stopped[row] for row in rows)


def honest(releases: int) -> Tally:
    """Print how often each gate stops correct releases, beside what it states.

    In every second release nobody travelled: of these raw counts the chances that are stated for
    empty cells are the chances themselves, of others they are bounds.
    """
    measured_power.TRIALS = 1  # what a gate finds is not looked at here
    noise, tally = Noise(), Tally()
    for number in range(releases):
        name = PROGRAMMES[number % len(PROGRAMMES)]
        is_real = number % REAL_EVERY == REAL_EVERY - 1 - number // REAL_EVERY % 2
        slots, stops = REAL_SIZE if is_real else SIZES[number // len(PROGRAMMES) % len(SIZES)]
        frame, is_empty = case_of(name, slots=slots, stops=stops), number % 2 == 0
        exact = exact_of(name, frame.drawn, f"correct {number}")
        vectors = [
            noise.take(event, cells.size) + (0 if is_empty else cells)
            for event, cells in zip(frame.drawn.events, exact, strict=True)
        ]
        drawn = frame.with_vectors(vectors)
        tally.judge(drawn, is_empty=is_empty)
        tally.bet(drawn, number)
    print("| gate | raw counts | releases | stated at 1 in 1,000 | stopped | chance of so many |")
    print("|---|---|---|---|---|---|")
    for row in sorted(tally.judged):
        words = "" if row.is_itself else "at most "
        print(
            f"| {row.gate} | {row.counts} | {tally.judged[row]} | {words}{tally.stated[row]:.2f} | "
            f"{tally.stopped[row]} | {poisson.sf(tally.stopped[row] - 1, tally.stated[row]):.2g} |"
        )
    print("\n| gate | bets | mean e-value | its deviation | largest |")
    print("|---|---|---|---|---|")
    for gate, odds in tally.odds.items():
        error = np.std(odds) / math.sqrt(len(odds))
        print(f"| {gate} | {len(odds)} | {np.mean(odds):.3g} | {error:.2g} | {max(odds):.3g} |")
    (stated, stopped), (most, bounded) = (
        tally.sums(is_itself=is_itself) for is_itself in (True, False)
    )
    print(
        f"\n{releases} correct releases, {releases // REAL_EVERY} of real size: {tally.refused} "
        f"refused at 1e-9 a gate. Where they state the chance itself, 1 in 1,000: {stopped} "
        f"stopped, {stated:.1f} +- {math.sqrt(stated):.1f} stated; where a bound is: {bounded} "
        f"stopped, at most {most:.1f} stated"
    )
    return tally


def log_odds(vector: Vector, other: Vector) -> float:
    """Return the logarithm of I_0(t |W|) / M(t)^n at one tilt t: whose mean is 1 at most."""
    pair = _Pair("", ((vector, other),), is_known=True)
    kind = pair.kind(TURNS)
    tilt = int(np.searchsorted(_TILTS, _ODDS / math.sqrt(vector.values.size)))
    phases = [np.exp(1j * x.values * kind.turns / float(x.event.scale)) for x in (vector, other)]
    long = float(_TILTS[tilt] * abs(np.vdot(phases[1], phases[0])))
    return math.log(ive(0, long)) + long - vector.values.size * float(_log_mean(kind, 1.0)[tilt])


def reuse() -> None:
    """Print from which share of equal raw counts noise that serves twice is found."""
    event = case_of("opal", slots=8, stops=8).drawn.events[0]
    kinds = (
        *((NoiseFamily.DISCRETE_LAPLACE, scale) for scale in (1, 2)),
        *((NoiseFamily.DISCRETE_GAUSSIAN, sigma) for sigma in (10, 34)),
    )
    print(f"| cells | {' | '.join(f'{family} {scale}' for family, scale in kinds)} |")
    print("|---|---|---|---|---|")
    for cells in (100, 1_000, 10_000, 30_000):
        draws = [replace(event, noise=family, scale=Fraction(scale)) for family, scale in kinds]
        alpha = ALPHA / 10**6
        for words, share_of in (("", share_found), (" at equal scales", share_of_ties)):
            shares = [f"{share_of(draw_event, cells, alpha=alpha):.1%}" for draw_event in draws]
            print(f"| {cells:,}{words} | {' | '.join(shares)} |")


def share_of_ties(event: DrawEvent, cells: int, *, alpha: float) -> float:
    """Return the share of cells, with equal raw counts, from which equal numbers are too many."""
    chances = declared(event).chances
    chance, most = float(chances @ chances), ties_limit(event, cells, alpha, is_known=True)
    return min(1.0, (most / cells - chance) / (1 - chance))
