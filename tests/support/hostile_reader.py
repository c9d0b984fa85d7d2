"""Reads hostile files, one after another, and says what came of each; a process of its own.

    python hostile_reader.py landing|external|new|programmes|lists FOLDER [FIRST [STEP]]
    python hostile_reader.py fuzzed-landing|fuzzed-external|fuzzed-programmes FOLDER SEED SECONDS

One line of JSON a file: its name, `ok` or the class of the error, and MiB of the largest memory so
far. An error that is not ours is `crash: ...`. Fuzzing prints crashes, and a last line.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hostile_files import GOOD_FILES, GOOD_TABLES, LANDING, programmes
from ingested_weeks import Zones

from turnstile.errors import TurnstileError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.examples import EXAMPLES_FILE, example_programmes
from turnstile.programme.loading import load_programme
from turnstile.programme.people import PEOPLE_FILE, holders
from turnstile_design.first_programme.delivered_columns import look_at
from turnstile_lab.external.files import read_external_tables

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK = "2016-W30"
CHANGES_AT_MOST = 8


def outcome_of(act: Callable[[], object]) -> str:
    """Return `ok`, the class of an error of ours, or what crashed and where."""
    try:
        act()
    except TurnstileError as error:
        return type(error).__name__
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"crash: {type(error).__name__} in {last.name}: {str(error)[:300]}"
    return "ok"


def read_landing(folder: Path, file: str, content: bytes) -> None:
    """Ingest one file in a zone of its own, which is removed."""
    shipped = load_programme("opal", INCLUDE)
    programme = replace(shipped, source=replace(shipped.source, landing="{week}/*"))
    zones = Zones(folder)
    try:
        zones.deliver(WEEK, {file: content})
        zones.ingest(programme, WEEK)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_external(folder: Path, file: str, content: bytes) -> None:
    """Read one file as the table of somebody else's release."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_bytes(content)
    try:
        read_external_tables([path])
    finally:
        path.unlink()


def read_new(folder: Path, file: str, content: bytes) -> None:
    """Look at one file as `turnstile new` does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(content)
    look_at(folder / file, {}, private=folder)


def read_programme(folder: Path, content: bytes) -> None:
    """Load one programme and its domain."""
    programme = folder / "programmes/opal.yaml"
    if not folder.exists():
        programme.parent.mkdir(parents=True)
        shutil.copytree(INCLUDE / "domains", folder / "domains")
    programme.write_bytes(content)
    load_domain(load_programme("opal", folder), folder)


def read_lists(folder: Path, content: bytes) -> None:
    """Read one file as that of people, and as that of examples."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, read in (
        (PEOPLE_FILE, lambda: holders("release_officer", folder)),
        (EXAMPLES_FILE, lambda: example_programmes(folder)),
    ):
        (folder / name).write_bytes(content)
        with suppress(TurnstileError):
            read()


def cases(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of every file of a kind, and its reading."""
    if read := {"landing": read_landing, "external": read_external, "new": read_new}.get(kind):
        for name, (file, content) in LANDING.items():
            yield name, lambda file=file, content=content: read(folder, file, content())
    good = (INCLUDE / "programmes/opal.yaml").read_text(encoding="utf-8")
    if kind == "programmes":
        for name, text in (("the good one", good.encode()), *programmes(good)):
            yield name, lambda text=text: read_programme(folder, text)
    if kind == "lists":
        for name, text in programmes(good):
            yield name, lambda text=text: read_lists(folder, text)


def fuzzed(kind: str, folder: Path, chance: random.Random) -> Iterator[Callable[[], object]]:
    """Yield readings of good files in which a few places are changed, for ever."""
    good = (INCLUDE / "programmes/opal.yaml").read_bytes()
    is_external = kind == "fuzzed-external"
    files = tuple((GOOD_TABLES if is_external else GOOD_FILES).items())
    read = read_external if is_external else read_landing
    while True:
        if kind == "fuzzed-programmes":
            changed = _changed(good, chance)
            yield lambda changed=changed: read_programme(folder, changed)
            continue
        file, content = chance.choice(files)
        changed = _changed(content(), chance)
        yield lambda file=file, changed=changed: read(folder, file, changed)


def _changed(content: bytes, chance: random.Random) -> bytes:
    """Change, repeat, remove or put in a few bytes."""
    buffer = bytearray(content)
    for _ in range(chance.randint(1, CHANGES_AT_MOST)):
        at, length = chance.randrange(len(buffer)), chance.choice((1, 2, 4, 16, 64))
        piece = bytes(buffer[at : at + length])
        put = chance.choice((chance.randbytes(length), b"", piece * 2, bytes(length), b"\xff" * 4,
                             b'"', b"\n", b"[", b"{", b"-", b"9" * length))  # fmt: skip
        buffer[at : at + (length if chance.random() < 0.7 else 0)] = put
        buffer = buffer or bytearray(b"x")
    return bytes(buffer)


def main() -> None:
    """Read, and print what came of it."""
    kind, folder, *numbers = sys.argv[1:]
    if kind.startswith("fuzzed"):
        seed, seconds = map(int, numbers)
        begun, read = time.monotonic(), 0
        chance = random.Random(seed)  # noqa: S311 - a test's
        for act in fuzzed(kind, Path(folder), chance):
            if time.monotonic() - begun > seconds:
                break
            read += 1
            if (outcome := outcome_of(act)).startswith("crash"):
                _say(f"{seed}/{read}", outcome)
        _say("files", str(read))
        return
    first, step = (*map(int, numbers), *(0, 1)[len(numbers) :])
    for name, act in list(cases(kind, Path(folder)))[first::step]:
        _say(name, outcome_of(act))


def _peak_mib() -> int:
    """Return the most that this process held.

    What `getrusage` calls so is never below what its parent held: a worker of pytest, with caches.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak) // 1024


def _say(file: str, outcome: str) -> None:
    peak = _peak_mib()
    sys.stdout.write(json.dumps({"file": file, "outcome": outcome, "peak_mib": peak}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
