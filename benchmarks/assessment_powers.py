"""Powers that gates state, held against 5,000 simulations of what they look at and of the gate.

The first draw from the distribution that the chance was worked out of; the second put the fault
into the numbers of a release and let the whole gate judge them, which may see it by more than one
test.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from assessment_noises import declared
from assessment_releases import Case, case_of
from numpy.typing import NDArray
from scipy.special import bdtrik
from scipy.stats import beta

from turnstile.assessment.gates import geometric, noise_reuse, noise_scale, zeros
from turnstile.assessment.gates.numbers import Judged, judged_release
from turnstile.assessment.gates.stated_power import first_found
from turnstile.assessment.gates.sums_of_squares import Kinds
from turnstile.privacy.noise import integer_pmf
from turnstile.release.numbers import Vector
from turnstile_lab.baselines import uniforms

TRIALS = 5_000
_AT_ONCE = 200
_SIZE = {"slots": 24, "stops": 20}
_GATES = {
    zeros: zeros.noised_zeros,
    geometric: geometric.geometric_below_zero,
    noise_scale: noise_scale.nested_scale,
    noise_reuse: noise_reuse.drawn_once,
}
_SHARE = re.compile(r"\(([\d.]+)% of the time")

Chance = Callable[[float], float]
Words = Callable[[float], str]


class Stated(NamedTuple):
    """A power as a gate states it.

    Args:
        module: of the gate.
        gate: which.
        words: of the fault.
        size: of the fault.
        share: that is found.
        chance: size -> with which it is found.
    """

    module: ModuleType
    gate: str
    words: str
    size: float
    share: float
    chance: Chance


def stated_by(numbers: Judged) -> Iterator[Stated]:
    """Yield every power that the gates state of a release."""
    for module, gate in _GATES.items():
        known: list[Stated] = []
        with patch.object(module, "first_found", _recorder(module, gate.__name__, known)):
            gate(numbers)
        yield from known


def _recorder(module: ModuleType, gate: str, known: list[Stated]) -> Callable[..., str]:
    """Return what states as the product does, and keeps what was stated."""

    def record(sizes: Iterable[float], chance: Chance, words: Words) -> str:
        tried: list[float] = []

        def noted(size: float) -> float:
            tried.append(size)
            return chance(size)

        text = first_found(sizes, noted, words)
        if share := _SHARE.search(text):
            size = tried[-1]
            known.append(Stated(module, gate, words(size), size, float(share[1]) / 100, chance))
        return text

    return record


def again(power: Stated) -> int:
    """Return in how many simulations of what the gate looks at a fault is found."""
    with ExitStack() as simulated:
        for name, share in _SIMULATED.items():
            if hasattr(power.module, name):
                simulated.enter_context(patch.object(power.module, name, share))
        return round(power.chance(power.size) * TRIALS)


def _fair(label: str, *shape: int) -> NDArray[np.float64]:
    """Return fair numbers between 0 and 1, the same each time."""
    return uniforms(label, math.prod(shape)).reshape(shape)


def _binomial(least: int, trials: int, chance: float) -> float:
    """Return in which share of draws a binomial number is large enough."""
    return float(np.mean(np.ceil(bdtrik(_fair("binomial", TRIALS), trials, chance)) >= least))


def _walk(length: float, start: int, steps: int) -> float:
    """Return in which share of random walks the end is far enough from 0."""
    ends = [
        np.exp(2j * np.pi * _fair(f"walk {n}", _AT_ONCE, steps)).sum(axis=1)
        for n in range(TRIALS // _AT_ONCE)
    ]
    return float(np.mean(np.abs(start + np.concatenate(ends)) >= length))


def _squares(kinds: Kinds, low: float, high: float) -> float:
    """Return in which share of draws squares of noise add up to between two numbers."""
    sums = np.zeros(TRIALS)
    for number, terms in kinds:
        values, chances = integer_pmf(terms)
        squares = values.astype(np.float64) ** 2 / float(values.astype(np.float64) ** 2 @ chances)
        summed = np.cumsum(chances)
        for n in range(0, TRIALS, _AT_ONCE):
            drawn = np.searchsorted(summed, _fair(f"{n} {terms}", _AT_ONCE, number))
            sums[n : n + _AT_ONCE] += squares[drawn.clip(0, squares.size - 1)].sum(axis=1)
    return float(np.mean((low < sums) & (sums < high)))


_SIMULATED = {"binomial_at_least": _binomial, "walk_reaches": _walk, "chance_between": _squares}


def put_into(case: Case, power: Stated) -> int | None:
    """Return in how many releases the gate stops the fault; None where it is not put into one."""
    if power.gate not in (put := {"noised_zeros": _bare, "geometric_below_zero": _fewer_zeros}):
        return _reused(case, power) if "cell by cell" in power.words else None
    gate = next(gate for gate in _GATES.values() if gate.__name__ == power.gate)
    with ExitStack() as silenced:
        for module in _GATES:
            silenced.enter_context(patch.object(module, "first_found", lambda *_: ""))
        return sum(not gate(put[power.gate](case, power, trial)).passed for trial in range(TRIALS))


def _bare(case: Case, power: Stated, trial: int) -> Judged:
    """Leave a share of the largest table alone, which is empty."""
    numbers = judged_release(case.drawn)
    largest = max(numbers.dense, key=lambda vector: vector.values.size)
    noise = declared(largest.event).sampled(f"bare {trial}", largest.values.size)
    noise[_order(trial, noise.size)[: round(power.size * noise.size)]] = 0
    vectors = (replace(v, values=noise) if v is largest else v for v in numbers.vectors)
    return replace(numbers, vectors=tuple(vectors))


def _fewer_zeros(case: Case, power: Stated, trial: int) -> Judged:
    """Let the numbers at and below zero of one kind of draw hold fewer zeros."""
    numbers, label = judged_release(case.drawn), power.words.split()[-1]
    scale, vectors = float(numbers.pooled(numbers.dense)[label][0].scale), []
    for vector in numbers.vectors:
        values = vector.values.copy()
        if vector.event.label == label:
            below = values <= 0
            share, size = uniforms(f"{trial} {vector.where}", 2 * int(below.sum())).reshape(2, -1)
            is_zero = share < -np.expm1(-1 / scale) * (1 - power.size)
            values[below] = np.where(is_zero, 0, -1 - np.floor(-scale * np.log(size)))
        vectors.append(replace(vector, values=values))
    return replace(numbers, vectors=tuple(vectors))


def _reused(case: Case, power: Stated) -> int:
    """Let noise serve again in a share of the empty cells of two draws of the largest table."""
    numbers = judged_release(case.drawn)
    event = max(numbers.vectors, key=lambda vector: vector.values.size).event
    cells = max(vector.values.size for vector in numbers.vectors)
    law, alpha, detections = declared(event), _alpha_placed(numbers), 0
    for trial in range(TRIALS):
        noise, fresh = (law.sampled(f"reused {trial} {n}", cells) for n in (0, 1))
        fresh[: round(power.size * cells)] = noise[: round(power.size * cells)]
        order = _order(trial, cells)
        pair = Vector(event, None, noise[order]), Vector(event, None, fresh[order])
        known = noise_reuse._Pair("", (pair,), is_known=True)  # noqa: SLF001
        orders = {id(pair[0]): [np.arange(cells)]}
        detections += noise_reuse._is_alike(known, orders, alpha, noise_reuse._Known())  # noqa: SLF001
    return detections


def _order(trial: int, number: int) -> NDArray[np.intp]:
    """Return a random order."""
    return np.argsort(uniforms(f"order {trial}", number))


def _alpha_placed(numbers: Judged) -> float:
    """Return the chance that the gate gives one comparison cell by cell."""
    with patch.object(noise_reuse, "_detects", lambda _, placed, __: str(placed)):
        return float(noise_reuse.drawn_once(numbers).detects)


def powers(programmes: Sequence[str]) -> bool:
    """Print each stated power beside 5,000 simulations; return whether all are borne out."""
    print(f"| programme | gate | finds | stated | {TRIALS:,} simulated | of the whole gate |")
    print("|---|---|---|---|---|---|")
    is_borne_out = True
    for name in programmes:
        case = case_of(name, **_SIZE)
        for power in stated_by(judged_release(case.drawn)):
            shown = [f"{power.share:.2%}"]
            for detections in (again(power), put_into(case, power)):
                if detections is None:
                    shown.append("")
                    continue
                low, high = beta.ppf(
                    (0.005, 0.995),
                    (detections, detections + 1),
                    (TRIALS - detections + 1, TRIALS - detections),
                )
                high = 1.0 if detections == TRIALS else high
                # More than is stated is no false statement, of the whole gate.
                is_borne_out &= low <= power.share <= high or (len(shown) > 1 and low > power.share)
                shown.append(f"{detections / TRIALS:.2%} ({low:.2%} to {high:.2%})")
            print(f"| {name} | {power.gate} | {power.words} | {' | '.join(shown)} |", flush=True)
    print(f"\n{'all' if is_borne_out else 'not all'} stated powers are borne out")
    return is_borne_out
