"""What the assessment sees: injected faults before and after a publication, and honest releases.

python benchmarks/assessment.py faults    the table of faults
python benchmarks/assessment.py honest    2,000 correct releases, and what stops them
python benchmarks/assessment.py histories what the ledger charged, against simulated attackers
python benchmarks/assessment.py reuse     from which share of equal raw counts reused noise is found
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from assessment_chances import honest, reuse
from assessment_faults import FAULTS, UNSEEN, Fault
from assessment_histories import histories
from assessment_pipeline_faults import CONTENTS, PIPELINE
from assessment_releases import PROGRAMMES, Case, Ints, case_of

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
    if any(one.values.dtype.str != "<i8" for one in numbers.vectors):
        return [first, whole]
    return [first, whole, *(gate(numbers) for gate in NUMBER_GATES)]


def after(drawn: Drawn) -> list[GateResult]:
    """Return what the same gates say of the measurements as they are published."""
    tables = measurements(drawn)
    numbers = judged_package(Package(drawn.programme, drawn.events, tables))  # type: ignore[arg-type]
    return [gate(numbers) for gate in NUMBER_GATES]


def failed(results: Sequence[GateResult]) -> list[str]:
    """Return the gates that stop it."""
    return [one.gate for one in results if not one.passed]


def faults() -> None:
    """Print the table of faults."""
    cases = {name: case_of(name) for name in (*PROGRAMMES, "opal_year")}
    caught = missed = 0
    shares: Counter[str] = Counter()
    sole: Counter[str] = Counter()
    print("| fault | programme | caught at | by, before publication | after publication |")
    print("|---|---|---|---|---|")
    for fault in FAULTS:
        for name in fault.only:
            size, gates, again = _tried(fault, cases[name])
            unseen = fault.name in UNSEEN
            shares.update(gates)
            sole.update(gates if len(gates) == 1 else [])
            caught += bool(gates)
            missed += not gates
            shown = f"{size:g}" if len(fault.sizes) > 1 else "yes"
            if not gates:
                shown = "missed" + (" (cannot be seen)" if unseen else "")
            print(f"| {fault.name} | {name} | {shown} | {', '.join(gates)} | {again} |")
    for name, case in cases.items():
        for words, gates in _across_weeks(case):
            shares.update(gates)
            sole.update(gates if len(gates) == 1 else [])
            caught += bool(gates)
            missed += not gates
            print(f"| {words} | {name} | {'yes' if gates else 'missed'} | {', '.join(gates)} | |")
    for words, name, found in (*PIPELINE(cases), *CONTENTS(cases)):
        caught += bool(found)
        missed += not found
        print(f"| {words} | {name} | {'yes' if found else 'missed'} | {found} | |")
    total = caught + missed
    print(f"\n{total} faults: {caught} caught, {missed} missed ({caught / total:.1%} caught)")
    print("\n| gate | catches | alone |")
    print("|---|---|---|")
    for gate, number in shares.most_common():
        print(f"| {gate} | {number} | {sole[gate]} |")
    for name, why in UNSEEN.items():
        print(f"- {name}: {why}")


def _tried(fault: Fault, case: Case) -> tuple[float, list[str], str]:
    """Return the first size that is caught, by which gates, and by which after publication."""
    for size in fault.sizes:
        spoiled = fault.spoil(case, size)
        gates = failed(before(spoiled))
        if gates:
            again = "not published"
            if not {"support", "integers"} & set(gates):
                again = ", ".join(failed(after(spoiled))) or "missed"
            return size, gates, again
    return fault.sizes[-1], [], ""


def _across_weeks(case: Case) -> list[tuple[str, list[str]]]:
    """Return what noise that served an earlier week shows."""
    name = case.drawn.programme.name
    other = case_of(name, label="another week")
    noise = [noisy - exact for noisy, exact in zip(case.honest, case.exact, strict=True)]
    same = other.with_vectors([e + z for e, z in zip(other.exact, noise, strict=True)])
    finest = max(range(len(noise)), key=lambda n: noise[n].size)
    one = other.with_vectors(
        [
            noise[n] + e if n == finest else h
            for n, (e, h) in enumerate(zip(other.exact, other.honest, strict=True))
        ]
    )
    earlier = [vectors_of_sealed(case.drawn)]
    shifted = _a_day_on(case, noise)
    later = other.with_vectors([e + z for e, z in zip(other.exact, shifted, strict=True)])
    return [
        ("a fixed seed: the noise of an earlier week", failed(before(same, earlier))),
        ("one finest table with an earlier week's noise", failed(before(one, earlier))),
        ("every day's noise that of an earlier week's next day", failed(before(later, earlier))),
    ]


def _a_day_on(case: Case, noise: Sequence[Ints]) -> list[Ints]:
    """Return, for each draw, the noise of the next day's draw of its table."""
    labels = [event.label for event in case.drawn.events]
    found = []
    for n, label in enumerate(labels):
        own = [m for m, other in enumerate(labels) if other == label]
        found.append(noise[own[(own.index(n) + 1) % len(own)]])
    return found


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("faults", "honest", "histories", "reuse"))
    parser.add_argument("--releases", type=int, default=2000)
    args = parser.parse_args()
    commands = {"faults": faults, "histories": histories, "reuse": reuse}
    commands.get(args.what, lambda: honest(args.releases))()


if __name__ == "__main__":
    main()
