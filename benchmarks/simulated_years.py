"""Lives simulated years: a deployment with its people, machines and bad days, seed by seed.

    python benchmarks/simulated_years.py [--years 1000] [--first 0] [--processes 2]
    python benchmarks/simulated_years.py --seed 7        # one world again, with what happened in it
    python benchmarks/simulated_years.py --planted [NAME ...]  # ten mistakes: found or not

A year is four worlds of 13 weeks, of two programmes in one budget group, with three faults a week
on average (`tests/simulation`). Prints years, releases, faults by kind, violations and time; exits
1 where something was over a cap, drawn twice, lost or deleted early, or a world does not verify in
the end though its operators did as they were told, and names the seeds. The order in sets is part
of a world: it begins anew with PYTHONHASHSEED=0 where that is not set.
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/simulation"))

from planted_in_the_house import PLANTED
from raw_auditor import Violation
from simulated_world import WEEKS_OF_WORLD, World, world_of

WORLDS_A_YEAR = 52 // WEEKS_OF_WORLD
YEARS_OF_PLANTED = 50
_WORLDS_BETWEEN = 20
"""Between searches for what nobody holds any more, which take a tenth of a second."""


class Lived(NamedTuple):
    """What became of one world."""

    seed: int
    violation: str
    stuck: str
    did: Counter[str]
    struck: Counter[str]
    cpu_s: float


def live(seed: int) -> Lived:
    """Live one world."""
    begun, violation = process_time(), ""
    if seed % _WORLDS_BETWEEN == 0:
        gc.collect()  # of the worlds before; what is still there is not searched again
        gc.freeze()
    with world_of(seed) as world:
        try:
            world.live()
        except Violation as seen:
            violation = str(seen)
        except Exception as error:  # noqa: BLE001 - a crash of the house without a sentence
            violation = f"{type(error).__name__}: {error}"
        struck, stuck = Counter(fault.kind for fault in world.faulty.struck), " ".join(world.said)
        return Lived(seed, violation, stuck, world.did, struck, process_time() - begun)


def lives(seeds: range, processes: int) -> Iterator[Lived]:
    """Live many worlds, a few at once."""
    with world_of(seeds.start) as world:
        world.live(1)  # what a process imports and compiles is there before it is forked
    gc.collect()
    gc.freeze()  # what imports made stays, and is not searched for garbage
    gc.disable()
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=50) as pool:
        yield from pool.imap_unordered(live, seeds)


def replay(seed: int) -> int:
    """Live one world and print what happened in it."""
    with world_of(seed) as world:
        try:
            world.live()
        except Exception:  # noqa: BLE001 - whatever it was, with the way to it
            traceback.print_exc()
            return _tell(world, 1)
        return _tell(world, 0)


def _tell(world: World, code: int) -> int:
    print("\n".join(world.log))
    print(*world.faulty.struck, sep="\n")
    print(f"trace {world.trace()}")
    return code


def find_planted(first: int, names: list[str]) -> int:
    """Live worlds with each mistake until one is seen to break a promise."""
    missed = 0
    for name in names or PLANTED:
        planted, finding = PLANTED[name], ""
        for number in range(YEARS_OF_PLANTED * WORLDS_A_YEAR):
            with planted(), world_of(first + number) as world:
                try:
                    world.live()
                except Violation as seen:
                    finding = f"after {(number + 1) / WORLDS_A_YEAR:g} years: {seen}"
                    break
        print(f"{name:32} {finding or 'NOT FOUND'}", flush=True)
        missed += not finding
    return 1 if missed else 0


def main() -> int:
    """Live years and say what became of them."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--years", type=float, default=1000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, help="live this world alone, and tell of it")
    parser.add_argument("--planted", nargs="*", choices=PLANTED, help="mistakes: which are found")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if args.seed is not None:
        return replay(args.seed)
    if args.planted is not None:
        return find_planted(args.first, args.planted)
    begun, worlds = perf_counter(), round(args.years * WORLDS_A_YEAR)
    did, struck, violations, cpu_s = Counter[str](), Counter[str](), list[Lived](), 0.0
    stuck = list[int]()
    for number, life in enumerate(lives(range(args.first, args.first + worlds), args.processes), 1):
        did, struck, cpu_s = did + life.did, struck + life.struck, cpu_s + life.cpu_s
        if life.violation:
            violations.append(life)
            print(f"seed {life.seed}: {life.violation}", flush=True)
        elif life.stuck:
            stuck.append(life.seed)
            print(f"seed {life.seed} does not verify in the end: {life.stuck[:300]}", flush=True)
        if number % (10 * WORLDS_A_YEAR) == 0:
            print(f"{number / WORLDS_A_YEAR:g} years, {perf_counter() - begun:,.0f} s", flush=True)
    weeks = worlds * WEEKS_OF_WORLD
    print(f"{worlds / WORLDS_A_YEAR:g} years, {weeks:,} weeks, {did['released']:,} releases")
    print(f"{did['faults']:,} faults planned, {did['faults'] / weeks:.2f} a week; at calls:")
    print(", ".join(f"{kind} {times:,}" for kind, times in struck.most_common()))
    without = f"; without: seeds {', '.join(map(str, sorted(stuck)))}" if stuck else ""
    print(f"worlds that verify in the end: {did['verified']:,} of {worlds:,}{without}")
    given_up = [f"{times:,} {what}" for what, times in sorted(did.items()) if "given up" in what]
    print(f"in spite of what was advised: {', '.join(given_up) or 'nothing was given up'}")
    years, wall_s = worlds / WORLDS_A_YEAR, perf_counter() - begun
    print(f"{cpu_s / years:.1f} CPU s a year, {wall_s / years:.1f} s a year", end="; ")
    print(f"{len(violations)} violations; {wall_s:,.0f} s, {cpu_s:,.0f} CPU s")
    return 1 if violations or stuck else 0


if __name__ == "__main__":
    if sys.flags.hash_randomization:
        replayed = {**os.environ, "PYTHONHASHSEED": "0"}  # noqa: TID251 - of the process that it becomes
        os.execve(sys.executable, sys.orig_argv, replayed)  # noqa: S606 - itself
    sys.exit(main())
