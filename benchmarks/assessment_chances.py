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
from assessment_releases import PROGRAMMES, case_of, exact_of
from numpy.typing import NDArray

from turnstile.assessment.gates import measured_power
from turnstile.assessment.gates.noise_reuse import share_found
from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.assessment.gates.result import ALPHA, ANY_COUNTS, EMPTY_CELLS
from turnstile.assessment.gates.sealed_numbers import integers, support
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.release.drawn import Drawn

SIZES = ((8, 5), (12, 6), (24, 10))
REAL_SIZE = (96, 300)  # quarters of an hour, places of one mode; half a million numbers a week
REAL_EVERY = 100
OFTEN = 0.01
"""A chance of a false alarm that can be counted; at 1e-9 none is expected in a lifetime."""
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
    """What became of correct releases: at 1 in 100 a gate, unless it says otherwise.

    Args:
        refused: releases that were stopped at 1e-9.
        judged: releases of each row.
        stated: sums of the chances that the gates state.
        stopped: releases that they stopped.
    """

    refused: int = 0
    judged: Counter[Row] = field(default_factory=Counter)
    stated: defaultdict[Row, float] = field(default_factory=lambda: defaultdict(float))
    stopped: Counter[Row] = field(default_factory=Counter)

    def judge(self, drawn: Drawn, *, is_empty: bool) -> None:
        """Let every gate judge a release; what passes at 1 in 100 passes at 1e-9 too."""
        numbers = judged_release(drawn)
        is_refused = not (support(drawn).passed and integers(numbers).passed)
        for gate in NUMBER_GATES:
            found = gate(numbers, OFTEN)
            if not found.is_applicable:
                continue
            itself = (ANY_COUNTS, EMPTY_CELLS) if is_empty else (ANY_COUNTS,)
            row = Row(found.gate, "empty" if is_empty else "made up", found.reached_by in itself)
            self.judged[row] += 1
            self.stated[row] += found.false_alarm
            if not found.passed:
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
        tally.judge(frame.with_vectors(vectors), is_empty=is_empty)
    print("| gate | raw counts | releases | stated at 1 in 100 | stopped |")
    print("|---|---|---|---|---|")
    for row in sorted(tally.judged):
        words = "" if row.is_itself else "at most "
        print(
            f"| {row.gate} | {row.counts} | {tally.judged[row]} | {words}{tally.stated[row]:.2f} | "
            f"{tally.stopped[row]} |"
        )
    (stated, stopped), (most, bounded) = (tally.sums(is_itself=own) for own in (True, False))
    print(
        f"\n{releases} correct releases, {releases // REAL_EVERY} of real size: {tally.refused} "
        f"refused at 1e-9 a gate. Where they state the chance itself, 1 in 100: {stopped} stopped, "
        f"{stated:.1f} +- {math.sqrt(stated):.1f} stated; where a bound is: {bounded} stopped, at "
        f"most {most:.1f} stated"
    )
    return tally


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
        shares = [
            share_found(
                replace(event, noise=family, scale=Fraction(scale)), cells, alpha=ALPHA / 10**6
            )
            for family, scale in kinds
        ]
        print(f"| {cells:,} | {' | '.join(f'{share:.1%}' for share in shares)} |")
