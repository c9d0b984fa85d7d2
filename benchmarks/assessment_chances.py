"""Chances that are stated, beside how often it happens: refused correct releases, right guesses.

Noise is the product's own, drawn many numbers at a time, so that thousands of releases are cheap.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from assessment_noises import declared
from assessment_releases import PROGRAMMES, case_of, exact_of
from numpy.typing import NDArray
from scipy.special import ive
from scipy.stats import poisson

from turnstile.assessment.attacks import evidence_of_any_counts
from turnstile.assessment.attacks.evidence_of_any_counts import _ALTERNATIVES, log_evidence
from turnstile.assessment.gates.noise_reuse import (
    _TILTS,
    TURNS,
    _log_mean,
    _Pair,
    drawn_once,
    share_found,
    ties_limit,
)
from turnstile.assessment.gates.numbers import Judged, judged_release
from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.assessment.gates.result import ALPHA, ANY_COUNTS, EMPTY_CELLS, GateResult
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
KEPT = Path(__file__).resolve().parents[1] / "var" / "honest_releases.jsonl"
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


class Kept(NamedTuple):
    """What one gate, or a bet, said of one correct release.

    Args:
        code: digest of what decided it.
        number: of the release.
        gate: that judged, at 1 in 1,000; or that a bet is made for.
        row: that it counts in; None of a bet and of a gate that is not applicable.
        stated: chance of being stopped, as the gate states it; or what the bet won.
        is_stopped: at 1 in 1,000.
        is_refused: at 1e-9.
    """

    code: str
    number: int
    gate: str
    row: Row | None = None
    stated: float = 0.0
    is_stopped: bool = False
    is_refused: bool = False


@dataclass
class Tally:
    """What became of correct releases: at 1 in 1,000 a gate, unless it says otherwise.

    Args:
        refused: numbers of releases that were stopped at 1e-9.
        judged: releases of each row.
        stated: sums of the chances that the gates state.
        stopped: releases that they stopped.
        odds: e-values of the bets on one dense draw of each release, and on a pair of draws.
    """

    refused: set[int] = field(default_factory=set)
    judged: Counter[Row] = field(default_factory=Counter)
    stated: defaultdict[Row, float] = field(default_factory=lambda: defaultdict(float))
    stopped: Counter[Row] = field(default_factory=Counter)
    odds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kept: Kept) -> None:
        """Count what was said of one release."""
        if kept.is_refused:
            self.refused.add(kept.number)
        if kept.gate in _BETS:
            self.odds[_BETS[kept.gate]].append(kept.stated)
        elif kept.row is not None:
            self.judged[kept.row] += 1
            self.stated[kept.row] += kept.stated
            self.stopped[kept.row] += kept.is_stopped

    def sums(self, *, is_itself: bool) -> tuple[float, int]:
        """Return the sum of the stated chances and of what was stopped."""
        rows = [row for row in self.judged if row.is_itself is is_itself]
        return sum(self.stated[row] for row in rows), sum(self.stopped[row] for row in rows)


def _judged_by(gate: Callable[..., GateResult], numbers: Judged, *, is_empty: bool) -> Kept:
    """Let a gate judge a release; what passes at 1 in 1,000 passes at 1e-9 too."""
    judged = gate(numbers, OFTEN)
    if not judged.is_applicable:
        return Kept("", 0, gate.__name__)
    itself = (ANY_COUNTS, EMPTY_CELLS) if is_empty else (ANY_COUNTS,)
    row = Row(judged.gate, "empty" if is_empty else "made up", judged.reached_by in itself)
    is_refused = not judged.passed and not gate(numbers).passed
    return Kept("", 0, gate.__name__, row, judged.false_alarm, not judged.passed, is_refused)


def _is_whole(drawn: Drawn, numbers: Judged) -> Kept:
    """Let the gates judge that have no chance of an alarm at 1 in 1,000."""
    passed = support(drawn).passed and integers(numbers).passed
    return Kept("", 0, _is_whole.__name__, is_refused=not passed)


def _bet_on_noise(numbers: Judged, number: int) -> Kept:
    """Bet on one alternative, in turn, against the noise of one dense draw."""
    dense = numbers.dense[number % len(numbers.dense)]
    is_signed = dense.event.statistic == "sum"
    turn = number // len(numbers.dense) % len(_ALTERNATIVES)
    with patch.object(evidence_of_any_counts, "_ALTERNATIVES", (_ALTERNATIVES[turn],)):
        evidence = log_evidence(
            dense.values, dense.event.noise, float(dense.event.scale), is_signed=is_signed
        )
    return Kept("", 0, _bet_on_noise.__name__, stated=math.exp(evidence))


def _bet_on_a_pair(numbers: Judged, number: int) -> Kept:
    """Bet against two draws being independent."""
    dense = numbers.dense
    bet = dense[number % len(dense)]
    size = bet.values.size
    other = next(x for x in dense if x is not bet and x.values.size == size)
    return Kept("", 0, _bet_on_a_pair.__name__, stated=math.exp(log_odds(bet, other)))


_BETS = {_bet_on_noise.__name__: "noise_kind", _bet_on_a_pair.__name__: "drawn_once"}


def _code_of(*functions: Callable[..., object]) -> str:
    """Return a digest of the modules of functions, and of those of the assessment that they use."""
    code: dict[str, str] = {}
    open_ = [function.__module__ for function in functions]
    while open_:
        name = open_.pop()
        if name not in code:
            module = sys.modules[name]
            code[name] = inspect.getsource(module)
            used = (getattr(var, "__module__", None) for var in vars(module).values())
            open_ += [own for own in used if own and own.startswith("turnstile.assessment")]
    text = "".join(_without_docstrings(code[name]) for name in sorted(code))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_docstrings(source: str) -> str:
    """Return the code of a module without what decides nothing: docstrings, comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _correct(number: int, noise: Noise) -> Drawn:
    """Return a correct release; in every second one nobody travelled."""
    name = PROGRAMMES[number % len(PROGRAMMES)]
    is_real = number % REAL_EVERY == REAL_EVERY - 1 - number // REAL_EVERY % 2
    slots, stops = REAL_SIZE if is_real else SIZES[number // len(PROGRAMMES) % len(SIZES)]
    frame = case_of(name, slots=slots, stops=stops)
    exact = exact_of(name, frame.drawn, f"correct {number}")
    vectors = [
        noise.take(event, cells.size) + (0 if number % 2 == 0 else cells)
        for event, cells in zip(frame.drawn.events, exact, strict=True)
    ]
    return frame.with_vectors(vectors)


def _codes() -> dict[str, str]:
    """Return each gate and bet, with the digest of its code."""
    codes = {gate.__name__: _code_of(gate) for gate in NUMBER_GATES}
    codes[_is_whole.__name__] = _code_of(support, integers)
    codes[_bet_on_noise.__name__] = _code_of(log_evidence)
    return codes | {_bet_on_a_pair.__name__: _code_of(drawn_once)}


def _said(drawn: Drawn, number: int, asked: Collection[str]) -> Iterator[Kept]:
    """Yield what each of the gates and bets says that are asked of a release."""
    numbers = judged_release(drawn)
    for gate in NUMBER_GATES:
        if gate.__name__ in asked:
            yield _judged_by(gate, numbers, is_empty=number % 2 == 0)
    if _is_whole.__name__ in asked:
        yield _is_whole(drawn, numbers)
    for bet in (_bet_on_noise, _bet_on_a_pair):
        if bet.__name__ in asked:
            yield bet(numbers, number)


def _kept_before(path: Path) -> dict[tuple[str, str, int], Kept]:
    """Return what earlier runs kept: gate, code and number of the release -> what was said."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        code, number, gate, row, *rest = json.loads(line)
        found[gate, code, number] = Kept(code, number, gate, Row(*row) if row else None, *rest)
    return found


def honest(releases: int, path: Path) -> Tally:
    """Print how often each gate stops correct releases, beside what it states.

    In every second release nobody travelled: of these raw counts the chances that are stated for
    empty cells are the chances themselves, of others they are bounds. What a gate says of a release
    is kept in a file by the digest of its code, and not asked again.
    """
    noise, tally, codes, kept = Noise(), Tally(), _codes(), _kept_before(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for number in range(releases):
            asked = {gate for gate, code in codes.items() if (gate, code, number) not in kept}
            for said in _said(_correct(number, noise), number, asked) if asked else ():
                found = said._replace(code=codes[said.gate], number=number)
                print(json.dumps(found), file=file, flush=True)
                kept[found.gate, found.code, number] = found
            for gate, code in codes.items():
                tally.add(kept[gate, code, number])
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
        f"\n{releases} correct releases, {releases // REAL_EVERY} of real size: "
        f"{len(tally.refused)} refused at 1e-9 a gate. Where they state the chance "
        f"itself, 1 in 1,000: {stopped} stopped, {stated:.1f} +- {math.sqrt(stated):.1f} "
        f"stated; where a bound is: {bounded} stopped, at most {most:.1f} stated"
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
