"""Chances that are stated, beside how often it happens: refused correct releases, right guesses.

Noise is the product's own, drawn many numbers at a time, so that thousands of releases are cheap.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from assessment_releases import PROGRAMMES, case_of, exact_of
from numpy.typing import NDArray

from turnstile.assessment.attacks.membership import membership_accuracy
from turnstile.assessment.attacks.risk import forecast
from turnstile.assessment.attacks.unit_changes import typical_changes, worst_changes
from turnstile.assessment.gates.numbers import Numbers, numbers_of_release
from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.assessment.gates.result import ALPHA
from turnstile.assessment.gates.sealed_numbers import integers, support
from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.mechanisms.dispatch import draw

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


def honest(releases: int) -> int:
    """Print how often each gate stops correct releases, at 1e-9 and at a chance of 1 in 100.

    Returns:
        Releases that were refused.
    """
    noise = Noise()
    judged: Counter[str] = Counter()
    stopped: Counter[tuple[str, float]] = Counter()
    refused = 0
    for number in range(releases):
        name = PROGRAMMES[number % len(PROGRAMMES)]
        is_real = number % REAL_EVERY == REAL_EVERY - 1
        slots, stops = REAL_SIZE if is_real else SIZES[number // len(PROGRAMMES) % len(SIZES)]
        frame = case_of(name, slots=slots, stops=stops)
        exact = exact_of(name, frame.drawn, f"correct {number}")
        drawn = frame.with_vectors(
            [
                cells + noise.take(event, cells.size)
                for event, cells in zip(frame.drawn.events, exact, strict=True)
            ]
        )
        numbers = numbers_of_release(drawn)
        found = {False} if support(drawn).passed and integers(numbers).passed else {True}
        for gate in NUMBER_GATES:
            found.add(_is_stopped(gate, numbers, judged, stopped))
        refused += True in found
    print("| gate | judged | stopped at 1e-9 | stopped at 1 in 100 | stated, at most |")
    print("|---|---|---|---|---|")
    for gate, times in judged.items():
        stated, error = OFTEN * times, math.sqrt(OFTEN * times)
        print(
            f"| {gate} | {times} | {stopped[gate, ALPHA]} | {stopped[gate, OFTEN]} | "
            f"{stated:.0f} +- {error:.0f} |"
        )
    total = sum(times for (_, alpha), times in stopped.items() if alpha == OFTEN)
    stated = OFTEN * sum(judged.values())
    print(
        f"\n{releases} correct releases, {releases // REAL_EVERY} of real size: {refused} refused; "
        f"stated in all {ALPHA * sum(judged.values()):.1g}. At 1 in 100 a gate: {total} stopped, "
        f"{stated:.0f} +- {math.sqrt(stated):.0f} stated at most"
    )
    return refused


def _is_stopped(
    gate: object, numbers: Numbers, judged: Counter[str], stopped: Counter[tuple[str, float]]
) -> bool:
    """Count what a gate says at both chances; what passes at the larger passes at the smaller."""
    often = gate(numbers, OFTEN)  # type: ignore[operator]
    judged[often.gate] += often.is_applicable
    if often.passed:
        return False
    stopped[often.gate, OFTEN] += 1
    is_stopped = not gate(numbers).passed  # type: ignore[operator]
    stopped[often.gate, ALPHA] += is_stopped
    return is_stopped


def risk() -> None:
    """Print the forecast's chances beside simulated attackers."""
    pool = _Pool()
    farthest = 0.0
    print("| programme | unit | who | weeks | forecast | simulated | difference |")
    print("|---|---|---|---|---|---|---|")
    for name in PROGRAMMES:
        events = case_of(name, slots=12, stops=6).drawn.events
        simulated: dict[tuple[str, bool], Sequence[float]] = {}
        for one in forecast(events, (1, _WEEKS)).units:
            changes = (worst_changes if one.is_worst else typical_changes)(events, one.unit)
            if changes is None or one.guess_right is None:
                continue
            key = (str(one.unit), one.is_worst)
            if key not in simulated:
                weeks = _WEEKS if str(one.unit) in _LIFETIME else 1
                simulated[key] = membership_accuracy(
                    changes, weeks=weeks, canaries=_CANARIES, draw=pool.draw
                )
            share = simulated[key][one.weeks - 1]
            farthest = max(farthest, abs(share - one.guess_right))
            print(
                f"| {name} | {one.unit} | {one.who} | {one.weeks} | {one.guess_right:.4f} | "
                f"{share:.4f} | {share - one.guess_right:+.4f} |"
            )
    print(f"\nfarthest {farthest:.4f}; standard deviation of a share {0.5 / _CANARIES**0.5:.4f}")


class _Pool:
    """Noise of the product's sampler, from which it is drawn again with fair random numbers."""

    def __init__(self) -> None:
        self._known: dict[tuple[NoiseFamily, Fraction], NDArray[np.int64]] = {}

    def draw(self, event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return noised cells; the noise of a cell is any of the pool."""
        kind = (event.noise, event.scale)
        if kind not in self._known:
            self._known[kind] = draw(event, np.zeros(_AT_ONCE, dtype=np.int64))
        chosen = np.frombuffer(secrets.token_bytes(4 * exact.size), dtype="<u4")
        return exact + self._known[kind][chosen % _AT_ONCE]
