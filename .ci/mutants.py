"""Measures how strict the tests are: small mistakes go into the code, and its tests have to fail.

Samples mistakes (`mutations.py` says which) from the modules of `mutants.toml`, on which the
promise rests, under a fresh seed that is printed. Each goes alone into a scratch copy of the
checkout, where the tests of its room run, cheap ones first, until one fails; whatever these start
sees the mistake too. Killed is what makes a test fail, cannot be imported, or computes three times
as long as the room does without it (an endless loop). A run that ends otherwise, out of memory or
late on a busy machine, decides nothing and counts as survived. So do mistakes that change nothing:
nobody takes them out of the denominator; reasons that `mutants.toml` knows stand beside them.

Exits 1 if fewer than 92 % are killed, 2 if the tests of a room fail without any mistake.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import psutil
from mutations import Mutation, mutations

ROOT = Path(__file__).resolve().parents[1]
LEAST_KILLED = 0.92
_FAILED, _NOT_COLLECTED = 1, {2, 3, 4}  # what pytest's exit says
_SEEN = ("FAILED", "ERROR")
_LOOPS, _LOOP_S = 3, 30  # times the CPU of the control, and more
_WALL = 10  # times the CPU that is allowed
_AWAY = (".git", ".venv", "var", ".airflow", ".*_cache", ".hypothesis", "*.egg-info")
_TIMES = count(
    1_000_000_000
)  # each content of a file has a time of its own: no compiled one is stale


@dataclass(frozen=True)
class Room:
    """Modules and the tests that judge them.

    Args:
        name: of the room.
        modules: their paths.
        stages: words for pytest, from cheap to dear; files that name the module come first.
    """

    name: str
    modules: tuple[str, ...]
    stages: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Mutant:
    """One mistake in one module, as that was when the sample was drawn."""

    room: Room
    path: str
    source: bytes
    mutation: Mutation


@dataclass(frozen=True)
class Ended:
    """How a run of tests ended: exit, CPU seconds, whether these were too many, what it printed."""

    code: int
    cpu_s: float
    is_endless: bool
    printed: str


@dataclass(frozen=True)
class Judged:
    """A mutant, why it is killed or None, and what it met."""

    mutant: Mutant
    killed: str | None
    met: str
    cpu_s: float


class Checkout:
    """A scratch copy in which tests run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "checkout"
        shutil.copytree(root, self.root, symlinks=True, ignore=shutil.ignore_patterns(*_AWAY))
        for name, place in ((".venv", root), ("../shared", root)):  # real data, where they are
            if (place / name).exists():
                (self.root / name).symlink_to((place / name).resolve())

    @contextmanager
    def holding(self, mutant: Mutant) -> Iterator[None]:
        """Put a mistake into the copy, and take it out again."""
        place = self.root / mutant.path
        try:
            self._write(place, mutant.mutation.applied(mutant.source))
            yield
        finally:
            self._write(place, mutant.source)
            shutil.rmtree(self.root / ".pytest_cache/d/homes", ignore_errors=True)

    @staticmethod
    def _write(place: Path, content: bytes) -> None:
        place.write_bytes(content)
        os.utime(place, (at := next(_TIMES), at))

    def run(self, words: Sequence[str], cpu_s: float = 3600) -> Ended:
        """Run Python in the copy for so many seconds of CPU at most."""
        kept = {name: text for name, text in os.environ.items() if "_XDIST" not in name}  # noqa: TID251
        env = kept | {"PYTHONPATH": str(self.root / "include")}
        begun, used, is_endless = time.monotonic(), 0.0, False
        with tempfile.TemporaryFile() as printed:
            process = psutil.Popen(
                [sys.executable, *words], cwd=self.root, env=env, stdout=printed, stderr=printed
            )
            while process.poll() is None:
                used = max(used, _cpu_s(process))
                is_endless = used > cpu_s
                if is_endless or time.monotonic() - begun > _WALL * cpu_s:
                    _end(process)
                    break
                time.sleep(0.2)
            printed.seek(0)
            return Ended(process.wait(), used, is_endless, printed.read().decode(errors="replace"))


def _cpu_s(process: psutil.Popen) -> float:
    """CPU seconds of a process and of those that it saw end."""
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0


def _end(process: psutil.Popen) -> None:
    """End a run: it is asked first, since it may have started servers."""
    started = process.children(recursive=True)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(psutil.TimeoutExpired):
        process.wait(30)
    for proc in (process, *started):
        with contextlib.suppress(psutil.NoSuchProcess):
            proc.kill()


class Judges:
    """Sends mutants through the tests of their rooms, in as many copies as there are workers."""

    def __init__(self, root: Path, folder: Path, workers: int, budget_s: float) -> None:
        self._root, self._workers, self._budget_s = root, workers, budget_s
        self._free: SimpleQueue[Checkout] = SimpleQueue()
        for number in range(workers):
            self._free.put(Checkout(root, folder / str(number)))
        self._cpu_s: dict[tuple[str, ...], float] = {}

    def each(self, job: Callable[[Checkout, Any], Any], work: Sequence[Any]) -> Iterator[Any]:
        """Yield what each piece of work gives, in the order of `work`."""

        def alone(piece: Any) -> Any:  # noqa: ANN401 - whatever the job takes
            checkout = self._free.get()
            try:
                return job(checkout, piece)
            finally:
                self._free.put(checkout)

        with ThreadPoolExecutor(self._workers) as pool:
            try:
                yield from pool.map(alone, work)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def control(self, rooms: Sequence[Room]) -> None:
        """See that all tests pass without a mistake, and how long they take.

        Raises:
            SystemExit: some fail: they could kill nothing.
        """
        stages = [stage for room in rooms for stage in room.stages]
        for stage, ended in zip(stages, self.each(_stage_run, stages), strict=True):
            print(f"{ended.cpu_s:6.0f} s CPU without a mistake: {' '.join(stage)}", flush=True)
            if ended.code != 0:
                print(ended.printed, f"without any mistake these tests exit with {ended.code}")
                raise SystemExit(2)
            self._cpu_s[stage] = ended.cpu_s

    def judged(self, checkout: Checkout, mutant: Mutant) -> Judged:
        """Run the tests of a mutant's room until one of them fails."""
        module = mutant.path.removeprefix("include/").removesuffix(".py").replace("/", ".")
        used, met, files = 0.0, 0, 0
        with checkout.holding(mutant):
            for stage in mutant.room.stages:
                if used + self._cpu_s[stage] > self._budget_s and met:
                    break
                words = self._nearest_first(stage, module)
                ended = checkout.run(_pytest(words), _LOOPS * self._cpu_s[stage] + _LOOP_S)
                used += ended.cpu_s
                met += _files(stage)
                if (why := _why_killed(ended, checkout, module)) is not None:
                    return Judged(mutant, why, "", used)
                if ended.code != 0:
                    return Judged(mutant, None, f"undecided, pytest exits {ended.code}", used)
        files = sum(map(_files, mutant.room.stages))
        return Judged(
            mutant, None, f"outlived {met} of {files} test files of {mutant.room.name}", used
        )

    def _nearest_first(self, stage: tuple[str, ...], module: str) -> list[str]:
        """Order the files of a stage: those that name the module come first."""
        name = module.rpartition(".")[2]

        def is_far(word: str) -> bool:
            return word.endswith(".py") and name not in (self._root / word).read_text()

        return sorted(stage, key=is_far)


def _stage_run(checkout: Checkout, stage: tuple[str, ...]) -> Ended:
    return checkout.run(_pytest(stage))


def _pytest(words: Sequence[str]) -> list[str]:
    return ["-m", "pytest", "-x", "-q", "-m", "not long", *words]


def _files(stage: tuple[str, ...]) -> int:
    return sum(word.endswith(".py") for word in stage)


def _why_killed(ended: Ended, checkout: Checkout, module: str) -> str | None:
    """Return what saw the mistake; None if nothing did, or if the run says nothing about it."""
    if ended.is_endless:
        return "endless"
    if ended.code == _FAILED:
        return next((x for x in ended.printed.splitlines() if x.startswith(_SEEN)), "failed")
    if ended.code in _NOT_COLLECTED and checkout.run(["-c", f"import {module}"]).code == 1:
        return "cannot be imported"
    return None


def rooms_of(root: Path, only: str) -> list[Room]:
    """Read the rooms, with the modules whose path holds a text."""
    read = tomllib.loads((root / ".ci/mutants.toml").read_text())["rooms"]
    rooms = []
    for name, room in read.items():
        paths = sorted(
            {p for pattern in room["modules"] for p in root.glob(f"include/turnstile/{pattern}")}
        )
        modules = tuple(path.relative_to(root).as_posix() for path in paths)
        stages = tuple(tuple(stage.split()) for stage in room["tests"])
        rooms.append(Room(name, tuple(module for module in modules if only in module), stages))
    return [room for room in rooms if room.modules]


def sample(root: Path, rooms: Sequence[Room], seed: int, size: int) -> list[Mutant]:
    """Draw mutants, each possible one with the same chance."""
    every = [
        Mutant(room, path, source, mutation)
        for room in rooms
        for path in room.modules
        for source in [(root / path).read_bytes()]
        for mutation in mutations(source)
    ]
    print(f"{len(every)} mutants are possible; seed {seed}")
    return random.Random(seed).sample(every, min(size, len(every)))  # noqa: S311 - no noise


def measure(root: Path, asked: argparse.Namespace) -> int:
    """Print how many of a sample are killed, and the others; return the exit code."""
    rooms = rooms_of(root, asked.only)
    mutants = sample(root, rooms, asked.seed, asked.sample)
    reasons = tomllib.loads((root / ".ci/mutants.toml").read_text()).get("unseen", [])
    outlived, used = [], 0.0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        judges = Judges(root, Path(folder), asked.jobs, asked.budget)
        judges.control([room for room in rooms if any(mutant.room == room for mutant in mutants)])
        for number, verdict in enumerate(judges.each(judges.judged, mutants), 1):
            used += verdict.cpu_s
            print(f"{number:4} {verdict.cpu_s:6.1f} s {_told(verdict, reasons)}", flush=True)
            if verdict.killed is None:
                outlived.append(verdict)
    killed = len(mutants) - len(outlived)
    for verdict in outlived:
        print(_told(verdict, reasons))
    share = killed / len(mutants) if mutants else 0.0
    print(f"killed {killed} of {len(mutants)} ({share:.1%}) in {used:.0f} s CPU, seed {asked.seed}")
    return 0 if share >= LEAST_KILLED else 1


def _told(verdict: Judged, reasons: Sequence[dict[str, str]]) -> str:
    """Return a line about a mutant that was killed, four about one that was not."""
    source, path = verdict.mutant.source, verdict.mutant.path
    before, after = verdict.mutant.mutation.shown(source)
    place = f"{path}:{verdict.mutant.mutation.line(source)}"
    if verdict.killed is not None:
        return f"killed {place}: {after}  # {verdict.killed}"
    mark = {"path": path, "before": before, "after": after}
    known = next((r["reason"] for r in reasons if r | mark == r), "no reason is known")
    return f"SURVIVED {place}, {verdict.met}: {known}\n  - {before}\n  + {after}"


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--sample", type=int, default=300, help="mutants")
    parser.add_argument("--only", default="", help="part of a module's path")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="at once")
    parser.add_argument("--budget", type=float, default=300, help="CPU seconds a mutant")
    return measure(root, parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
