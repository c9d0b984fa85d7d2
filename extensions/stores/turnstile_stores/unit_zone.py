"""A zone whose store is written by steps: private, embargoed. Copies come, changes go back.

Only what is asked for comes; the rest of a unit stays in the store. What is here and not in the
store is what a step left that did not come to its end: it goes before the next step begins. Sealed
bytes never go: what may be the last copy of a draw is set aside. And nothing goes to an index that
is older than the one seen last, as a backup's is; `restore` brings the newer files back.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from turnstile.durable_files import (
    EVERYBODY_READS,
    OWNER_ONLY,
    SEALED,
    SET_ASIDE,
    exclusively,
    move_durably,
    sealed_name,
    sha256_of,
    sync_tree,
)
from turnstile.errors import IntegrityError, StoreConflict, StoreError, StoreObjectGone
from turnstile.release.zone_copies import ASIDE, SNAPSHOTS, Unnamed
from turnstile_stores.bucket import AT_ONCE, Bucket, Listed
from turnstile_stores.merging import digest_of, merged, require_written_once
from turnstile_stores.unit import (
    OTHERS,
    STATE,
    Stored,
    UnitState,
    files_here,
    index_bytes,
    is_plain,
    make_folder,
    read_index,
    remove,
    remove_hidden_folders,
    stamp_of,
)

ZONE = "zone"
"""The unit of files that lie in the zone's own folder."""
Wanted = Callable[[str], bool]
_INDEX, _FILES = "index/", "files/"
_ROWS = "-rows"
"""What the name of an object of rows ends with: where no index names it, it goes before others."""
_TRIES = 5
_LASTS_AT_MOST = timedelta(days=1)
"""A step; after that it names no object any more that it put."""


@dataclass(frozen=True, slots=True)
class UnitZone:
    """A zone and its store.

    Args:
        bucket: the store.
        folder: of the zone.
        parts: of the path of a unit: 3 for `opal/2016-W30/r0`.
        is_private: whether files are for the owner's eyes alone.
        leftovers: objects of steps that died, whose bytes the index of a unit names in others.
    """

    bucket: Bucket
    folder: Path
    parts: int
    is_private: bool
    leftovers: dict[str, frozenset[str]] = field(default_factory=dict)

    @contextmanager
    def working_on(self, *units: str) -> Iterator[None]:
        """Keep other steps on this machine from the copies of units while the block runs."""
        if not units:
            yield
            return
        with exclusively(self._lock(units[0])), self.working_on(*units[1:]):
            yield

    def fetch(self, own_units: tuple[str, ...], wanted: Wanted) -> frozenset[str]:
        """Bring what is wanted here as it is in the store.

        Args:
            own_units: units that this process works on, and holds.
            wanted: says of a path in the zone whether it is needed.

        Returns:
            Units that are as another process has them, which works on them here.

        Raises:
            StoreObjectGone: it has lost something of others' units; all that it has is here.
            StoreError: the store does not answer, or was written to meanwhile.
            IntegrityError: it does not hold what its own index says.
        """
        in_work, torn = set(), list[StoreObjectGone]()
        with exclusively(self._lock("")):
            listed = self.bucket.listed(_INDEX)
            there = {self._unit_named(name): entry.tag for name, entry in listed.items()}
            seen = {unit: UnitState.read(self._state(unit)) for unit in self._units_known()}
            if gone := _gone(seen, there):
                raise IntegrityError(
                    f"{self.bucket.name}: the index of {gone[0]} is gone, which was there; "
                    "restore the store or find out who deleted it, then turnstile stores restore "
                    "on this machine, which saw it"
                )
            for unit in sorted({*there, *own_units}):
                if unit in own_units:
                    self._fetch(unit, there.get(unit), wanted, is_own=True)
                    continue
                state = seen.get(unit)
                if state and state.tag == there[unit] and not self._missing(unit, state, wanted):
                    continue
                try:
                    with exclusively(self._lock(unit), waits=False):
                        self._fetch(unit, there[unit], wanted, is_own=False)
                except BlockingIOError:
                    in_work.add(unit)
                except StoreObjectGone as error:
                    torn.append(error)
        if torn:
            units = tuple(unit for error in torn for unit in error.units)
            raise StoreObjectGone(self.bucket.name, torn[0].problem, units)
        return frozenset(in_work)

    def bring_unnamed(self) -> None:
        """Set aside here sealed bytes that no index names: their draw died before it named them.

        Raises:
            StoreError: the store does not answer.
        """
        states = {unit: UnitState.read(self._state(unit)) for unit in self._units_known()}
        named = {stored.object for state in states.values() for stored in state.files.values()}
        for place in sorted(self.bucket.listed(_FILES).keys() - named):
            unit, _, last = place.removeprefix(_FILES).rpartition("/")
            name = last.partition("-")[2]
            aside = self.folder / ASIDE / unit
            is_sealed = unit in states and name.startswith(SEALED)  # no path that somebody planted
            if is_sealed and not [*aside.glob(f"*/{name}")]:
                self._fetched(place, aside / secrets.token_hex(4) / name)

    def put(self, unit: str, gone: Collection[str] = ()) -> None:
        """Bring what a step changed in a unit to the store, all of it or nothing.

        Args:
            unit: its name.
            gone: files and folders of it that retention deleted, whatever of them was here.

        Raises:
            StoreError: the store does not answer, or another worker was first.
            IntegrityError: a sealed file is in the store with other bytes.
        """
        before = UnitState.read(self._state(unit))
        after = self._changes(unit, before, gone)
        old = set(self.leftovers.pop(unit, ()))
        if after.files != before.files:
            old |= {stored.object for stored in before.files.values()}
            self._put_index(unit, before, after, before.steps)
        for name in old - {stored.object for stored in after.files.values()}:
            self.bucket.delete(name)
        if after != before:  # most steps change nothing in a zone: no write, no sync
            after.write(self._state(unit))

    def delete_unnamed(self, age: timedelta, may_go: Callable[[Unnamed], bool]) -> None:
        """Delete what no index names, if the store has it for so long and its days are over.

        A step that died put it; or an index of before stands there, or none, and another machine
        may restore the one that names it.

        Args:
            age: of what goes at least.
            may_go: whether the days of an object are over.

        Raises:
            StoreError: the store does not answer.
        """
        listed = self.bucket.listed(_FILES)
        unit_of = {name: name.removeprefix(_FILES).rpartition("/")[0] for name in listed}
        states = [self._index(unit) for unit in set(unit_of.values())]
        named = {stored.object for state in states for stored in state.files.values()}
        for name in sorted(self._older(listed.keys() - named, listed, age, ZONE)):
            unnamed = Unnamed(unit_of[name], name.endswith(_ROWS), listed[name].put_at)
            if may_go(unnamed):
                self.bucket.delete(name)

    def _older(
        self, names: Collection[str], listed: Mapping[str, Listed], age: timedelta, unit: str
    ) -> frozenset[str]:
        """Return which objects the store has for longer, by its own clock, asked in a unit."""
        now = self._now_there(unit) if names else None
        return frozenset(name for name in names if now and now - listed[name].put_at > age)

    def adopt(self, unit: str) -> None:
        """Put a unit of a folder that was the zone, or another store's copy, into an empty store.

        Raises:
            StoreError: the store does not answer; a repeat goes on.
        """
        if self._index(unit).tag is None:
            UnitState().write(self._state(unit))  # what is known is of another store
        self.put(unit)

    def elsewhere(self) -> Iterator[str]:
        """Yield what is not here and in the store alone of which this folder is the copy."""
        for unit in self._units_known():
            for name in UnitState.read(self._state(unit)).files:
                if not (self._place(unit) / name).is_file():
                    yield self._path_in_zone(unit, name)

    def keep_sealed(self, unit: str, digest: str) -> None:
        """Put sealed bytes that lie here alone: their draw died before it put them.

        Those of a draw that died, which somebody set aside, are aside in the store from then on.

        Raises:
            StoreError: the store does not answer.
            IntegrityError: its index is older than the one that was here.
        """
        name = sealed_name(digest)
        place = self._place(unit) / name
        with self.working_on(unit):
            seen = self._aside_in_store(unit, UnitState.read(self._state(unit)))
            if name in seen.files:
                return
            aside = (self.folder / ASIDE / unit).glob(f"*/{name}")
            here = next((path for path in (place, *aside) if _is_that(path, digest)), None)
            if here is not None:
                move_durably(here, place)
                state = self._read_index(unit, seen.tag, seen)
                self._given(unit, state, {name: digest}).write(self._state(unit))

    def _aside_in_store(self, unit: str, state: UnitState) -> UnitState:
        """Name sealed bytes that were set aside here so in the store, and nothing else of it."""
        folder, moved = self._place(unit), dict[str, str]()
        for name, stored in state.files.items():
            if name.startswith(SEALED) and not (folder / name).exists():
                aside = (folder / SET_ASIDE).glob(f"{name}.*")
                here = next((path for path in aside if _is_that(path, stored.sha256)), None)
                if here is not None:
                    moved[name] = f"{SET_ASIDE}/{here.name}"
        if not moved:
            return state
        files = {moved.get(name, name): stored for name, stored in state.files.items()}
        here_too = {name: stamp for name, stamp in state.here.items() if name not in moved}
        after = replace(state, files=files, here=here_too)
        self._put_index(unit, state, after, state.steps)
        for name in moved.values():
            self._note(after, name, folder)
        after.write(self._state(unit))
        return after

    def restore(self) -> Iterator[tuple[str, int, int]]:
        """Put back what is here and lost in the store, of every unit whose index is older.

        And of every unit whose objects somebody deleted or altered. Where others went on from an
        older index, what they wrote stays.

        Yields:
            the unit, how many files came back, and how many differ and stay as others wrote them.

        Raises:
            StoreError: the store does not answer; the same command goes on.
            IntegrityError: it holds other sealed bytes in the place of those here.
        """
        for unit in self._units_seen():
            with self.working_on(unit):
                seen = UnitState.read(self._state(unit))
                there = self._index(unit)
                if there.tag is None or seen.has_seen_more_than(there.steps):
                    yield (unit, *self._restore(unit, seen, there))
                elif back := self._lacked(unit, there):  # by whoever restored it before
                    self._given_back(unit, there)
                    yield unit, len(back), 0
                elif torn := self._torn(unit, there):
                    self._given(unit, there, torn)
                    yield unit, len(torn), 0

    def _torn(self, unit: str, there: UnitState) -> dict[str, str]:
        """Return what is here of an index whose objects somebody deleted or altered."""
        here = {
            name: stored
            for name, stored in there.files.items()
            if _is_that(self._place(unit) / name, stored.sha256)
        }
        with ThreadPoolExecutor(AT_ONCE) as threads:
            read = threads.map(lambda stored: self.bucket.read_back(stored.object), here.values())
            return {
                name: stored.sha256
                for (name, stored), back in zip(here.items(), read, strict=True)
                if back is None or back[0] != stored.sha256
            }

    def _restore(self, unit: str, seen: UnitState, there: UnitState) -> tuple[int, int]:
        """Put back a unit; return how many files came back, and how many stay as they are there."""
        folder, is_backup = self._place(unit), set(there.steps) <= set(seen.steps)
        require_written_once(unit, there.files, seen.files)
        objects = self.bucket.listed(f"{_FILES}{unit}/")
        lacking = there.lacking | seen.lacking
        after = UnitState(there.tag, dict(there.files), {}, there.steps, lacking)
        back, kept = 0, 0
        for name, stored in seen.files.items():
            if digest_of(there.files.get(name)) == stored.sha256:
                continue
            if name in there.files and not is_backup:
                after.lacking[name], kept = f"{stored.sha256} {OTHERS}", kept + 1
            elif stored.object in objects:
                after.files[name], back = stored, back + 1
            elif _is_that(folder / name, stored.sha256):
                after.files[name], back = self._put_file(unit, name, stored.sha256), back + 1
            else:  # another machine may have it
                older = digest_of(there.files.get(name))
                after.lacking[name] = f"{stored.sha256} {older}".strip()
        self._put_index(unit, there, after, tuple(dict.fromkeys((*there.steps, *seen.steps))))
        for name, stored in after.files.items():
            if _is_that(folder / name, stored.sha256):
                self._note(after, name, folder)
        after.write(self._state(unit))
        return back, kept

    def require_writable(self, unit: str) -> None:
        """Put an object and delete it again.

        Raises:
            StoreError: the store does not take it.
        """
        self._now_there(unit)

    def _now_there(self, unit: str) -> datetime:
        """Return the present instant by the store's own clock, which put an object and deleted it.

        Whoever asked the clock here, which may be a year ahead, would take what others put now for
        what a dead step left.
        """
        probe = f"{_FILES}{unit}/{secrets.token_hex(16)}"
        self.bucket.create(probe, b"")
        try:
            back = self.bucket.read_back(probe)
        finally:
            self.bucket.delete(probe)
        if back is None:
            raise StoreError(self.bucket.name, "an object does not come back as it was put")
        return back[1]

    def units(self) -> tuple[str, ...]:
        """Return every unit that is here, as last fetched or made since."""
        made = {unit for name in files_here(self.folder) if (unit := self._unit_of(name))}
        return tuple(sorted(made | set(self._units_known())))

    def put_at(self, path: Path) -> float | None:
        """Return when a file came to the store, in seconds since 1970; None: it is not there."""
        name = path.relative_to(self.folder).as_posix()
        unit = self._unit_of(name)
        stored = UnitState.read(self._state(unit)).files.get(self._name_in(unit, name))
        return stored and datetime.fromisoformat(stored.put_at).timestamp()

    def _fetch(self, unit: str, tag: str | None, wanted: Wanted, *, is_own: bool) -> None:
        """Bring a unit here."""
        folder, state = self._place(unit), UnitState.read(self._state(unit))
        is_new, before, was_here = state.tag != tag, state, dict(state.here)
        if is_new:
            state = self._given_back(unit, self._read_index(unit, tag, state))
        if is_own and self.is_private:  # under embargo it may be the last copy of sealed bytes
            self.leftovers[unit] = self._left_by_dead_steps(unit, state)
        if is_own or is_new:
            self._clear_others(unit, state, before, is_own=is_own)
        missing = self._missing(unit, state, wanted)
        for name in missing:
            if _is_that(folder / name, state.lacked(name)):
                self._set_aside(unit, name)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            done = threads.map(lambda name: self._bring(state.files[name], folder / name), missing)
            gone = [name for name, is_there in zip(missing, done, strict=True) if not is_there]
        for name in missing:
            if name not in gone:
                self._note(state, name, folder)
        if is_new or missing or was_here != state.here:
            state.write(self._state(unit))
        if gone:
            problem = (
                f"{unit}: {gone[0]}, which its index names, is not there; where a repeat says so, "
                "turnstile stores restore on a machine that has it, or bring it from a backup"
            )
            raise StoreObjectGone(self.bucket.name, problem, (unit,))

    def _left_by_dead_steps(self, unit: str, state: UnitState) -> frozenset[str]:
        """Return what no step that still goes on put, and the index names in another object.

        Other bytes that no index names stay: a newer one may name them, which this home never saw.
        """
        objects, digests = self.bucket.listed(f"{_FILES}{unit}/"), defaultdict[int, set[str]](set)
        for stored in state.files.values():
            digests[stored.size].add(stored.sha256)
        named = {stored.object for stored in state.files.values()}
        again = {name for name in objects.keys() - named if objects[name].size in digests}
        old = self._older(again, objects, _LASTS_AT_MOST, unit)
        read = {name: self.bucket.read_back(name) for name in old}
        return frozenset(
            n for n, back in read.items() if back and back[0] in digests[objects[n].size]
        )

    def _missing(self, unit: str, state: UnitState, wanted: Wanted) -> list[str]:
        """Return the files of a unit that are wanted and not here as in the store."""
        folder = self._place(unit)
        return [
            name
            for name in state.files
            if wanted(self._path_in_zone(unit, name)) and not state.is_here(name, folder)
        ]

    def _read_index(self, unit: str, tag: str | None, before: UnitState) -> UnitState:
        """Read an index; what is here of unchanged files stays known.

        Raises:
            IntegrityError: it is older than the one that was seen last.
        """
        if tag is None:
            return UnitState()
        state = self._index(unit)
        if state.tag is None:
            raise StoreError(self.bucket.name, f"the index of {unit} went while it was read")
        self._require_no_older(unit, before, state.steps)
        state.here = {
            name: stamp
            for name, stamp in before.here.items()
            if digest_of(state.files.get(name)) == before.files[name].sha256
        }
        return state

    def _index(self, unit: str) -> UnitState:
        """Return what the store says of a unit; nothing, without a tag, if it has no index."""
        index_file = self.bucket.read(f"{_INDEX}{unit}.json")
        return read_index(index_file and index_file.content, index_file and index_file.tag, unit)

    def _lacked(self, unit: str, state: UnitState) -> dict[str, str]:
        """Return what the store lost and is here, where nothing came in its place since."""
        said = {name: digests.partition(" ") for name, digests in state.lacking.items()}
        return {
            name: digest
            for name, (digest, _, older) in said.items()
            if digest_of(state.files.get(name)) == older
            and _is_that(self._place(unit) / name, digest)
        }

    def _given_back(self, unit: str, state: UnitState) -> UnitState:
        """Put back what the store lost and this machine has: of those bytes it may be the last."""
        lost_files = self._lacked(unit, state)
        return self._given(unit, state, lost_files) if lost_files else state

    def _given(self, unit: str, state: UnitState, named: Mapping[str, str]) -> UnitState:
        """Put files of a unit, named with their digests; return the unit as it is then."""
        files = {name: self._put_file(unit, name, digest) for name, digest in named.items()}
        after = replace(state, files=state.files | files)
        self._put_index(unit, state, after, state.steps)
        for name in named:
            self._note(after, name, self._place(unit))
        return after

    def _require_no_older(self, unit: str, before: UnitState, steps: tuple[str, ...]) -> None:
        """Refuse an index that lacks the last step seen here: what it does not name would go."""
        if before.has_seen_more_than(steps):
            raise IntegrityError(
                f"{self.bucket.name}: the index of {unit} is older than the one that was here, as "
                "after a backup; nothing was removed. Bring the newer files back: turnstile "
                "stores restore on this machine, which saw it"
            )

    def _clear_others(
        self, unit: str, state: UnitState, before: UnitState, *, is_own: bool
    ) -> None:
        """Remove what is not the store's; forget of an own unit what is not here any more.

        No step removed that, so no step takes it from the store.
        """
        folder = self._place(unit)
        for name in [*self._own_files(unit)]:
            if name not in state.files or (is_own and not state.is_here(name, folder)):
                self._clear(unit, name, state, before)
        rows = f"{SNAPSHOTS}/"
        if self.is_private and before.tag and not any(n.startswith(rows) for n in state.files):
            remove_hidden_folders(folder / SNAPSHOTS)  # of rows, spilled by steps that died
        if is_own:
            here = (name for name in state.here if state.is_here(name, folder))
            state.here = {name: state.here[name] for name in here}

    def _clear(self, unit: str, name: str, state: UnitState, before: UnitState) -> None:
        """Remove a file that is not the store's; what may be the last copy is set aside.

        An index of older code names no steps, so nothing tells whether it is older than the one
        that named a file. Of a home that was copied the times differ, and bytes are compared.
        """
        folder, is_sealed = self._place(unit), PurePosixPath(name).name.startswith(SEALED)
        may_be_older = bool(state.tag) and not state.steps and name in before.files
        has_no_books = self.is_private and before.tag is None
        if _is_that(folder / name, digest_of(state.files.get(name))):
            self._note(state, name, folder)
        elif (
            is_sealed or may_be_older or has_no_books or _is_that(folder / name, state.lacked(name))
        ):
            self._set_aside(unit, name)
        else:
            remove(folder, name)

    def _set_aside(self, unit: str, name: str) -> None:
        """Keep a file where no fetch reaches it."""
        aside = self.folder / ASIDE / unit / secrets.token_hex(4) / name
        move_durably(self._place(unit) / name, aside)

    def _bring(self, stored: Stored, target: Path) -> bool:
        """Write one file of a store here, whole or not at all; return whether it is there."""
        digest = self._fetched(stored.object, target, only=stored.sha256)
        if digest is not None and digest != stored.sha256:
            raise IntegrityError(
                f"{self.bucket.name}: {target.name} is not what its index says; look for who "
                "changed it, and restore it: turnstile stores restore on a machine that has "
                "it, or from a backup"
            )
        return digest is not None

    def _fetched(self, place: str, target: Path, *, only: str | None = None) -> str | None:
        """Write an object here, of one digest if that is named; return the digest that came."""
        target.parent.mkdir(parents=True, exist_ok=True)
        # Not beside its place: what a killed process leaves is in no package then.
        arriving = self.folder / STATE / f"arriving-{secrets.token_hex(4)}"
        try:
            digest = self.bucket.fetch(place, arriving)
            if digest is not None and only in {None, digest}:
                arriving.chmod(self._mode_of(target.name))
                sync_tree(arriving)
                move_durably(arriving, target)
        finally:
            arriving.unlink(missing_ok=True)
        return digest

    def _changes(self, unit: str, before: UnitState, gone: Collection[str]) -> UnitState:
        """Put what is new; return the unit as it is now."""
        folder, new = self._place(unit), dict[str, str]()
        after = replace(before, files=dict(before.files), here={})
        for name in self._own_files(unit):
            if not before.is_here(name, folder):
                digest = sha256_of(folder / name)
                if digest != digest_of(before.files.get(name)):
                    new[name] = digest
            self._note(after, name, folder)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            put = threads.map(lambda name: self._put_file(unit, name, new[name]), new)
            after.files |= dict(zip(new, put, strict=True))
        removed = {*before.here, *(name for name in before.files if _is_in(name, gone))}
        for name in removed - after.here.keys():
            stored = after.files.pop(name)
            if name.startswith(SEALED) and stored.sha256 not in map(
                digest_of, after.files.values()
            ):
                after.files[name] = stored  # nobody set it aside: the store may have the last copy
        return after

    def _put_file(self, unit: str, name: str, digest: str) -> Stored:
        """Put a file under a new name, and read it back.

        Raises:
            StoreError: what came back is something else.
        """
        file, place = self._place(unit) / name, f"{_FILES}{unit}/{secrets.token_hex(16)}"
        if file.name.startswith(SEALED):  # told by its name before an index names it
            place += f"-{file.name}"
        elif name.startswith(f"{SNAPSHOTS}/"):
            place += _ROWS
        self.bucket.put_file(place, file)
        back = self.bucket.read_back(place)
        if back is None or back[0] != digest:
            raise StoreError(self.bucket.name, f"{name} does not come back as it was put")
        return Stored(place, file.stat().st_size, digest, back[1].astimezone(UTC).isoformat())

    def _put_index(
        self, unit: str, before: UnitState, after: UnitState, steps: tuple[str, ...]
    ) -> None:
        """Replace the index; of what another worker wrote meanwhile, other files stay as they are.

        Args:
            unit: its name.
            before: the index that is replaced.
            after: what it names from now on; gets its tag and steps.
            steps: that are known so far.

        Raises:
            StoreConflict: it wrote to one of the same files.
            IntegrityError: one that is written once, or the index is older than `before`.
        """
        path, step = f"{_INDEX}{unit}.json", secrets.token_hex(8)
        for _ in range(_TRIES):
            require_written_once(unit, before.files, after.files)
            after.steps = (*steps, step)
            tag = self.bucket.put_if(path, index_bytes(after), before.tag)
            if tag is None:
                theirs = self._index(unit)
                steps = theirs.steps
                if step not in steps:  # else it was put, and the answer was lost
                    self._require_no_older(unit, before, steps)
                    ours, store = after.files, self.bucket.name
                    after.files = merged(before.files, ours, theirs.files, store, unit)
                    for name in {*after.here}:
                        if digest_of(after.files.get(name)) != digest_of(ours.get(name)):
                            del after.here[name]  # what is here is older than theirs
                    after.lacking, before = after.lacking | theirs.lacking, theirs
                    continue
                after.steps, tag = steps, theirs.tag
            after.tag = tag
            return
        raise StoreConflict(self.bucket.name, f"{unit} is written to by others all the time")

    def _note(self, state: UnitState, name: str, folder: Path) -> None:
        """Note that a file is here as it is in the store."""
        if stamp := stamp_of(folder / name):
            state.here[name] = stamp

    def _mode_of(self, name: str) -> int:
        if name.startswith(SEALED):
            return 0o444
        return OWNER_ONLY if self.is_private else EVERYBODY_READS

    def _own_files(self, unit: str) -> Iterator[str]:
        """Yield the files of a unit that are here."""
        if unit != ZONE:
            yield from files_here(self._place(unit))
            return
        paths = (path for path in sorted(self.folder.glob("*")) if path.is_file())
        yield from (path.name for path in paths if is_plain(path.name))

    def _unit_named(self, index: str) -> str:
        """Return the unit of an index in the store.

        Raises:
            IntegrityError: no step writes one there.
        """
        unit = index.removeprefix(_INDEX).removesuffix(".json")
        is_unit = unit == ZONE or (is_plain(unit) and unit.count("/") == self.parts - 1)
        if not is_unit or index != f"{_INDEX}{unit}.json":
            raise IntegrityError(
                f"{self.bucket.name}: an index stands where no step writes one; find out who put "
                "it there, and delete it"
            )
        return unit

    def _unit_of(self, name: str) -> str:
        """Return the unit of a path in the zone; empty for one that no step writes."""
        parts = name.split("/")
        if len(parts) == 1:
            return ZONE
        return "/".join(parts[: self.parts]) if len(parts) > self.parts else ""

    def _name_in(self, unit: str, name: str) -> str:
        return name if unit == ZONE else name.removeprefix(f"{unit}/")

    def _path_in_zone(self, unit: str, name: str) -> str:
        return name if unit == ZONE else f"{unit}/{name}"

    def _place(self, unit: str) -> Path:
        return self.folder if unit == ZONE else self.folder / unit

    def _units_known(self) -> Iterator[str]:
        """Yield the units of which something is written down."""
        for name in files_here(self.folder / STATE / "units"):
            if name.endswith(".json"):
                yield name.removesuffix(".json")

    def _units_seen(self) -> list[str]:
        """Return the units whose index was here."""
        return sorted(unit for unit in self._units_known() if UnitState.read(self._state(unit)).tag)

    def _state(self, unit: str) -> Path:
        return self.folder / f"{STATE}/units/{unit}.json"

    def _lock(self, unit: str) -> Path:
        """Return the lock of a unit, or of the whole zone; made if need be."""
        make_folder(self.folder, is_private=self.is_private)
        folder = self.folder / STATE / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / (unit.replace("/", "+") + ".lock")


def _is_in(name: str, folders: Collection[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)


def _gone(seen: dict[str, UnitState], there: dict[str, str]) -> list[str]:
    """Return the units whose index was here, and is there no more."""
    return sorted(unit for unit, state in seen.items() if state.tag and unit not in there)


def _is_that(path: Path, digest: str) -> bool:
    """Return whether a file is here by its bytes: a home that was copied has other times."""
    return bool(digest) and path.is_file() and sha256_of(path) == digest
