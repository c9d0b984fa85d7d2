"""What a simulated world remembers: answers about files of which none has changed since.

Every change of a file or folder passes the wrapped calls of `faulty_machine`, which count it for
the path and for all folders above it. An answer that depends on files alone is kept with these
counts, and with how many calls it took to find: whoever asks again is charged as many calls. Where
a fault is due among them the house looks again itself, so every call may fail as before, and a seed
does the same as without any memory (`test_a_world_without_memory_does_the_same`).
"""

# ruff: noqa: PTH112, PTH114 - paths of calls are texts
from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import light_paths
from memory_bucket import MemoryBucket

from turnstile import durable_files
from turnstile.ledger.custody import folders, package_files, shipped, traces
from turnstile.ledger.custody.known_history import parties_in, read_history
from turnstile.ledger.custody.notes import Note
from turnstile.ledger.custody.witness import Witnesses
from turnstile.ledger.database.store import Store
from turnstile.ledger.tlog import public_log
from turnstile.programme import loading
from turnstile_stores import unit
from turnstile_stores.plain_zone import PlainZone
from turnstile_stores.unit import UnitState
from turnstile_stores.unit_zone import UnitZone

if TYPE_CHECKING:
    from faulty_machine import FaultyMachine

_ANSWERS_AT_MOST = 100_000


class Changes:
    """How often each file and folder of a world changed.

    Args:
        root: folder of the world; what changes elsewhere is not counted.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._below: defaultdict[str, int] = defaultdict(int)
        self._names: defaultdict[str, int] = defaultdict(int)
        self._within = dict[str, list[str]]()
        self._of_all = 0
        self.total = 0

    def of(self, path: str) -> int:
        """Return a count that grows once a file, or anything below a folder, changed."""
        return self._of_all + self._below.get(path, 0)

    def of_names(self, folder: str) -> int:
        """Return a count that grows once a folder holds other names."""
        return self._of_all + self._names.get(folder, 0)

    def note(self, path: object) -> None:
        """A file or a folder was made, written to, renamed or removed."""
        below = str(path)
        if not below.startswith(self._root):
            return
        self.total += 1
        within = self._within.get(below)
        if within is None:
            within = self._within[below] = [below]
            while len(within[-1]) > len(self._root):
                within.append(within[-1].rpartition("/")[0])
        self._names[within[1] if len(within) > 1 else ""] += 1
        counts = self._below
        for place in within:
            counts[place] += 1

    def note_tree(self, old: str, new: str) -> None:
        """A name is another one; of a folder, so is all below it."""
        for place in (old, new):
            self.note(place)
        if os.path.isdir(new) and not os.path.islink(new):
            for folder, _, names in os.walk(new):
                was = old + folder[len(new) :]
                for place in (folder, was):
                    self._names[place] += 1
                    for name in ("", *names):
                        self.note(f"{place}/{name}" if name else place)

    def forget(self) -> None:
        """Count nothing any more."""
        self._below.clear()
        self._names.clear()
        self._within.clear()

    def note_all(self) -> None:
        """Anything may have changed: people and disasters pass no wrapped call."""
        self.total += 1
        self._of_all += 1


class Answer(NamedTuple):
    """What was found.

    Args:
        value: the answer.
        calls: that it took.
        layers: of these calls.
    """

    value: Any
    calls: int
    layers: frozenset[str]


class Remembered:
    """Answers of one world.

    Args:
        machine: whose calls are counted.
        database: returns a count that differs once the ledger was written to.
        disturbed: returns a count that grows once the ledger was written to, the clock was asked
            or a lock was held.
        is_off: whether nothing is remembered, to compare with.
    """

    def __init__(
        self,
        machine: FaultyMachine,
        database: Callable[[], object],
        disturbed: Callable[[], int],
        *,
        is_off: bool = False,
    ) -> None:
        self._is_off, self.answered = is_off, 0
        self._machine, self._changes = machine, machine.changes
        self._database, self._disturbed = database, disturbed
        self._answers: dict[tuple[Any, ...], Answer] = {}

    def ask(self, question: tuple[Any, ...], find: Callable[..., Any], *given: Any) -> Any:
        """Return what was found before, or find it; what changed anything is found each time.

        Args:
            question: with the counts of all that its answer depends on.
            find: finds it.
            given: what it is called with.
        """
        machine = self._machine
        if self._is_off or not machine.is_watched:
            return find(*given)
        known = self._answers.get(question)
        if known is not None and machine.has_made(known[1], known[2]):
            self.answered += 1
            return known[0]
        begun, before = self._state(), machine.calls
        outer = machine.hear()
        try:
            value = find(*given)
        finally:
            layers = machine.heard(outer)
        if self._state() == begun:
            if len(self._answers) > _ANSWERS_AT_MOST:
                self._answers.clear()
            self._answers[question] = Answer(value, machine.calls - before, layers)
        return value

    def forget(self) -> None:
        """Give the memory of a world back, which no search for garbage has to look through then."""
        self._answers.clear()
        self._changes.forget()

    def count_of(self, folder: str) -> int:
        """Return a count that grows once anything below a folder changed."""
        return self._changes.of(folder)

    def _state(self) -> int:
        """Return a count that grows once anything happened that an answer may depend on."""
        return self._changes.total + self._disturbed() + len(self._machine.struck)

    # -- what takes the place of the house's own functions ----------------------------------------

    def functions(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """Return functions of files by those whose place they take."""
        changes = self._changes
        return {
            folders.listed: self._listed(folders.listed),
            folders.content_of: self._of(folders.content_of, changes.of),
            durable_files.sha256_of: self._of(_sha256_of, changes.of),
            unit.files_here: self._listing(unit.files_here),
            unit.stamp_of: self._of(unit.stamp_of, changes.of),
            traces.package_trace: self._named(traces.package_trace),
            loading.load_programme: self._named(loading.load_programme),
            traces.traces: self._named(traces.traces),
            package_files.file_problems: self._of(package_files.file_problems, changes.of),
            shipped.last_shipped: self._of(shipped.last_shipped, changes.of),
            shipped.first_gap: self._of(shipped.first_gap, changes.of),
            public_log._text: self._of(public_log._text, changes.of),
            public_log._notes: self._listing(public_log._notes),
            public_log._proofs: self._listing(public_log._proofs),
        }

    def patches(self) -> Iterator[Any]:
        """Yield what takes the place of methods."""
        yield patch.object(Path, "read_bytes", self._of(light_paths.read_bytes, self._changes.of))
        yield patch.object(Path, "read_text", self._read_text)
        yield patch.object(Path, "glob", self._globbed(Path.glob))
        yield patch.object(Path, "rglob", self._globbed(Path.rglob))
        yield patch.object(Witnesses, "notes", self._notes(Witnesses.notes))
        yield patch.object(Note, "read", self._of(Note.read, self._changes.of))
        yield patch.object(UnitState, "read", self._unit_state(UnitState.read))
        yield patch.object(UnitZone, "fetch", self._unit_fetch(UnitZone.fetch))
        yield patch.object(PlainZone, "fetch", self._plain_fetch(PlainZone.fetch))
        yield patch.object(Store, "read", self._reading(Store.read))

    def _of(
        self, real: Callable[[Any], Any], count: Callable[[str], object]
    ) -> Callable[[Any], Any]:
        def answer(path: Any) -> Any:
            name = str(path)
            return self.ask((real, name, count(name)), real, path)

        return answer

    def _listed(self, real: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        once = self._of(real, self._changes.of_names)
        return lambda folder: list(once(folder))  # a caller may change its own

    def _listing(self, real: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        once = self._of(lambda folder: tuple(real(folder)), self._changes.of)
        return lambda folder: iter(once(folder))

    @property
    def _read_text(self) -> Callable[..., str]:
        def answer(path: Path, encoding: Any = None, errors: Any = None) -> Any:
            name, real = str(path), light_paths.read_text
            question = (real, name, encoding, errors, self._changes.of(name))
            return self.ask(question, real, path, encoding, errors)

        return answer

    def _globbed(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def answer(folder: Path, pattern: str) -> Any:
            name, changes = str(folder), self._changes
            is_flat = real.__name__ == "glob" and "/" not in pattern and "**" not in pattern
            count = (changes.of_names if is_flat else changes.of)(name)
            question = (real, name, pattern, count)
            return iter(self.ask(question, lambda: tuple(real(folder, pattern))))

        return answer

    def _named(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Of files and folders, and words beside them, in which nothing changes."""

        def answer(*asked: Any) -> Any:
            names = tuple(map(str, asked))
            return self.ask((real, names, *map(self._changes.of, names)), real, *asked)

        return answer

    def _notes(self, real: Callable[[Witnesses], Any]) -> Callable[[Witnesses], Any]:
        def answer(witnesses: Witnesses) -> Any:
            names = tuple(str(kept.folder) for kept in witnesses.note_folders)
            return self.ask((real, names, *map(self._changes.of, names)), real, witnesses)

        return answer

    def _unit_state(self, real: Callable[[Any], UnitState]) -> Callable[[Any], UnitState]:
        once = self._of(real, self._changes.of)

        def read(path: Any) -> UnitState:
            kept = once(path)
            return UnitState(
                kept.tag, dict(kept.files), dict(kept.here), kept.steps, dict(kept.lacking)
            )

        return read

    def _unit_fetch(self, real: Callable[..., None]) -> Callable[..., None]:
        def fetch(zone: UnitZone, own_units: tuple[str, ...], wanted: Any) -> None:
            place = str(zone.folder)
            asked = _told(wanted)
            if self._machine.is_twin or asked is None:
                real(zone, own_units, wanted)
                return
            state = (_state_of(zone.bucket), self._changes.of(place))
            self.ask((real, place, own_units, asked, state), real, zone, own_units, wanted)
            for name in own_units:
                zone.leftovers.setdefault(name, frozenset())

        return fetch

    def _plain_fetch(self, real: Callable[..., None]) -> Callable[..., None]:
        def fetch(
            zone: PlainZone, wanted: Any, *, delivers: bool = False, withdrawn: Any = frozenset
        ) -> None:
            place = str(zone.folder)
            asked = _told(wanted)
            if self._machine.is_twin or asked is None:
                real(zone, wanted, delivers=delivers, withdrawn=withdrawn)
                return
            state = (_state_of(zone.bucket), self._changes.of(place))
            key = (real, place, asked, delivers, state)
            # Whoever is withdrawn is asked where a package went: then something changes, or raises.
            self.ask(key, partial(real, delivers=delivers, withdrawn=withdrawn), zone, wanted)

        return fetch

    def _reading(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def read(store: Store, act: Any) -> Any:
            if act not in _READINGS:
                return real(store, act)
            question = (act, str(store.file), self._database())
            return self.ask(question, real, store, act)

        return read


_READINGS = {parties_in, read_history}


def _sha256_of(path: Path) -> str:
    """Digest a file as the house does, which is small here and is read at once."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _state_of(bucket: Any) -> tuple[object, ...]:
    assert isinstance(bucket, MemoryBucket)
    return bucket.name, bucket.versions


def _told(act: Any) -> Any:
    """Return what tells a function from others that decide otherwise; None: nobody can say."""
    try:
        told = _told_of(act)
        hash(told)
    except TypeError:
        return None
    return told


def _told_of(value: Any) -> Any:
    if isinstance(value, partial):
        return _told_of(value.func), tuple(sorted(value.keywords.items())), value.args
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, FunctionType):
        cells = [_told_of(cell.cell_contents) for cell in value.__closure__ or ()]
        return value.__code__, tuple(cells)
    if isinstance(value, list):
        return tuple(value)
    return frozenset(value) if isinstance(value, set) else value
