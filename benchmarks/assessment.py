"""What the assessment sees: injected faults before and after a publication, and honest releases.

python benchmarks/assessment.py faults    the table of faults
python benchmarks/assessment.py honest    4,000 correct releases, and what stops them
python benchmarks/assessment.py histories what the ledger charged, against simulated attackers
python benchmarks/assessment.py reuse     from which share of equal raw counts reused noise is found
python benchmarks/assessment.py audits    audits of one run, beside each other
python benchmarks/assessment.py powers    powers that gates state, beside 5,000 simulations
python benchmarks/assessment.py found     how often gates find faults whose size they cannot state
"""

from __future__ import annotations

import argparse
import math
from argparse import RawTextHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assessment_any_counts import whatever_the_counts
from assessment_audits import audits
from assessment_chances import KEPT, honest, reuse
from assessment_faults import FAULTS, WHY_MISSED, Fault, known_noise
from assessment_found import found
from assessment_histories import histories
from assessment_noises import NATS, Gain
from assessment_pipeline_faults import CONTENTS, PIPELINE
from assessment_powers import powers
from assessment_releases import FIVE, Case, Ints, case_of

from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.assessment.gates.result import GateResult
from turnstile.assessment.gates.sealed_numbers import integers, support
from turnstile.estimates.release_tables import measurements
from turnstile.publishing.package_reader import Package
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Vector, vectors_of_sealed
from turnstile_lab.package.numbers import judged_package


def before(drawn: Drawn, earlier: Sequence[tuple[Vector, ...]] = ()) -> list[GateResult]:
    """Return what the gates on numbers say of a sealed release."""
    first = support(drawn)
    if not first.passed:
        return [first]
    numbers = judged_release(drawn, earlier)
    whole = integers(numbers)
    if any(vector.values.dtype.str != "<i8" for vector in numbers.vectors):
        return [first, whole]
    return [first, whole, *(gate(numbers) for gate in NUMBER_GATES)]


def after(drawn: Drawn) -> list[GateResult]:
    """Return what the same gates say of the measurements as they are published."""
    tables = measurements(drawn)
    numbers = judged_package(Package(drawn.programme, drawn.events, tables))  # type: ignore[arg-type]
    return [gate(numbers) for gate in NUMBER_GATES]


def failed(results: Sequence[GateResult]) -> list[str]:
    """Return the gates that stop it."""
    return [result.gate for result in results if not result.passed]


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one fault.

    Args:
        words: its name, and its size where it is tried at several.
        programme: that it was put into.
        gates: that stop it.
        told: to a likelihood-ratio test that knows the fault and the raw counts.
        blind: to one that knows the fault alone; None where nobody worked it out.
        after: gates that stop it on what would have been published; None where nobody looked.
    """

    words: str
    programme: str
    gates: tuple[str, ...]
    told: Gain
    blind: Gain | None = None
    after: str | None = None


def faults(programmes: Sequence[str], named: str, *, is_again: bool) -> None:
    """Print the table of faults.

    Args:
        programmes: that faults are put into.
        named: what a fault's name holds.
        is_again: whether the gates are asked again after a publication.
    """
    trials: list[Tried] = []
    print("| fault | programme | likelihood ratio | caught by | after publication |")
    print("|---|---|---|---|---|")
    for name in programmes:
        for trial in _of_programme(name, named, is_again=is_again):
            trials.append(trial)
            seen = f"{trial.told.mean:.3g} nats" if trial.told.mean < math.inf else "certain"
            print(
                f"| {trial.words} | {name} | {seen if trial.told.is_seen else 'cannot tell'} | "
                f"{', '.join(trial.gates) or 'missed'} | {trial.after or ''} |",
                flush=True,
            )
    _summary(trials)


def _of_programme(name: str, named: str, *, is_again: bool) -> Iterator[Tried]:
    """Yield what became of every fault in one programme."""
    case = case_of(name)
    for fault in FAULTS:
        if name not in fault.only or named not in fault.name:
            continue
        for size in fault.sizes:
            words = f"{fault.name}: {size:g}" if len(fault.sizes) > 1 else fault.name
            yield _tried(fault, case, size, words, is_again=is_again and size == fault.sizes[-1])
    of_weeks = ((words, name, gates, gain) for words, gates, gain in _across_weeks(case))
    cases = {name: case}
    for words, programme, gates, told in (*of_weeks, *PIPELINE(cases), *CONTENTS(cases)):
        if named in words:
            yield Tried(words, programme, tuple(gates), told)


def _tried(fault: Fault, case: Case, size: float, words: str, *, is_again: bool) -> Tried:
    """Put a fault of one size into a release, and say what sees it."""
    spoiled, told = fault.spoil(case, size), fault.told(case, size)
    gates = tuple(failed(before(spoiled)))
    blind = None if gates or not told.is_seen else whatever_the_counts(fault, case, size)
    again = None
    if gates and is_again:
        again = "not published"
        if not {"support", "integers"} & set(gates):
            again = ", ".join(failed(after(spoiled))) or "missed"
    return Tried(words, case.drawn.programme.name, gates, told, blind, again)


def _summary(trials: Sequence[Tried]) -> None:
    """Print shares that are caught, what each gate catches, and why the others are missed."""
    seen = [trial for trial in trials if trial.told.is_seen]
    could = [trial for trial in seen if trial.gates or trial.blind is None or trial.blind.is_seen]
    caught = sum(bool(trial.gates) for trial in trials)
    print(f"\n{len(trials)} faults in {len({trial.programme for trial in trials})} programmes:")
    for words, detectable in (
        ("a likelihood-ratio test that knows the fault and the raw counts finds", seen),
        ("one that knows the fault, and no raw counts, finds", could),
    ):
        by_gates = sum(bool(trial.gates) for trial in detectable)
        share = by_gates / max(1, len(detectable))
        print(f"- {words} {len(detectable)}; of these the gates stop {by_gates} ({share:.1%})")
    print(
        "- the bar is 97 % of the second: a verdict is public, so one that depended on raw counts "
        f"would tell of them; in all the gates stop {caught}"
    )
    catches = Counter(gate for trial in trials for gate in trial.gates)
    sole = Counter(trial.gates[0] for trial in trials if len(trial.gates) == 1)
    print("\n| gate | catches | alone |")
    print("|---|---|---|")
    for gate, number in catches.most_common():
        print(f"| {gate} | {number} | {sole[gate]} |")
    print("\n| missed, though a likelihood-ratio test finds it | programme | why |")
    print("|---|---|---|")
    for fault in seen:
        if not fault.gates:
            print(f"| {fault.words} | {fault.programme} | {_why(fault)} |")


def _why(trial: Tried) -> str:
    """Return why a fault is missed that could be seen."""
    if trial.blind is None:
        return WHY_MISSED.get(trial.words.partition(":")[0], "?")
    nats = (
        f"{trial.blind.mean:.3g} nats are told to it, where {NATS:.3g} and their scatter are needed"
    )
    if not trial.blind.is_seen:
        return f"no test could tell that does not know the raw counts: {nats}"
    return f"a test could tell that knows how often each raw count occurs: {nats}"


def _across_weeks(case: Case) -> list[tuple[str, list[str], Gain]]:
    """Return what noise that served an earlier week shows."""
    name = case.drawn.programme.name
    other = case_of(name, label="another week")
    noise = case.noise
    every = known_noise(case, {n: vector.size for n, vector in enumerate(noise)})
    same = other.with_vectors([e + z for e, z in zip(other.exact, noise, strict=True)])
    finest = max(range(len(noise)), key=lambda n: noise[n].size)
    reused = other.with_vectors(
        [
            noise[n] + e if n == finest else h
            for n, (e, h) in enumerate(zip(other.exact, other.honest, strict=True))
        ]
    )
    earlier = [vectors_of_sealed(case.drawn)]
    shifted = _a_day_on(case, noise)
    later = other.with_vectors([e + z for e, z in zip(other.exact, shifted, strict=True)])
    return [
        ("a fixed seed: the noise of an earlier week", failed(before(same, earlier)), every),
        (
            "one finest table with an earlier week's noise",
            failed(before(reused, earlier)),
            known_noise(case, {finest: noise[finest].size}),
        ),
        (
            "every day's noise that of an earlier week's next day",
            failed(before(later, earlier)),
            every,
        ),
    ]


def _a_day_on(case: Case, noise: Sequence[Ints]) -> list[Ints]:
    """Return, for each draw, the noise of the next day's draw of its table."""
    labels = [event.label for event in case.drawn.events]
    next_noise = []
    for n, label in enumerate(labels):
        draws = [m for m, other in enumerate(labels) if other == label]
        next_noise.append(noise[draws[(draws.index(n) + 1) % len(draws)]])
    return next_noise


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter)
    commands = ("faults", "honest", "histories", "reuse", "audits", "powers", "found")
    parser.add_argument("what", choices=commands)
    parser.add_argument("--releases", type=int, default=4000)
    of_which = "of faults, powers and what is found; all"
    parser.add_argument("--programme", choices=FIVE, action="append", help=of_which)
    parser.add_argument("--fault", default="", help="what the names of the faults hold")
    parser.add_argument("--again", action="store_true", help="ask the gates after publication too")
    args = parser.parse_args()
    run = {
        "faults": lambda: faults(args.programme or FIVE, args.fault, is_again=args.again),
        "honest": lambda: honest(args.releases, KEPT),
        "histories": histories,
        "reuse": reuse,
        "audits": audits,
        "powers": lambda: powers(args.programme or FIVE),
        "found": lambda: found(args.programme or ()),
    }
    run[args.what]()


if __name__ == "__main__":
    main()
