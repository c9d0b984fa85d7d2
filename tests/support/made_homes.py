"""Released homes, each made once: a cache addressed by content, which all workers share.

A test fills a folder with `include/` and `var/landing` and names the commands that release it. The
same sources, folder and commands give the same home; another byte of any of them gives a new one.
Readers get the home itself, a test that changes something gets a copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest
from small_deployment import Deployment

from turnstile.cli import main
from turnstile.durable_files import exclusively
from turnstile.pipeline.steps import STEPS, step_named

ROOT = Path(__file__).resolve().parents[2]
_KEPT_S = 3 * 3600  # homes of other sources may serve another checkout's run beside this one
Command = tuple[str, ...]


class AlteredHomeError(AssertionError):
    """A file of a kept home is not the one that was made."""


@dataclass(frozen=True)
class MadeHome:
    """Zones and programmes as commands left them.

    Args:
        root: folder of `include` and `var`.
        printed: what each command printed.
    """

    root: Path
    printed: tuple[str, ...]

    @property
    def home(self) -> Path:
        return self.root / "var"

    @property
    def include(self) -> Path:
        return self.root / "include"

    def enter(self, environment: pytest.MonkeyPatch) -> None:
        """Let this process be of this home."""
        Deployment(self.home, self.include).enter(environment)

    def copy(self, to: Path) -> MadeHome:
        """Return a copy that a test may change, in a folder that is empty or does not exist."""
        shutil.copytree(self.root, to, symlinks=True, dirs_exist_ok=True)
        return MadeHome(to, self.printed)


@dataclass(frozen=True)
class MadeHomes:
    """The homes of these sources.

    Args:
        kept: folder of the cache; it may exist.
        of: digest of the product's sources, and the day: nothing else that is read may differ.
    """

    kept: Path
    of: str
    _checked: dict[Path, dict[str, tuple[int, ...]]] = field(default_factory=dict)

    @classmethod
    def of_sources(cls, kept: Path, root: Path = ROOT) -> MadeHomes:
        """Open the cache for the sources as they are."""
        kept.mkdir(parents=True, exist_ok=True)
        sources = [p for p in _files(root / "include/turnstile") if p.suffix != ".pyc"]
        day = date.today().isoformat()  # noqa: DTZ011, TID251 - the machine's own
        return cls(kept, f"{day} {_digest(root, [*sources, root / 'requirements.lock'])}")

    def get(self, prepared: Path, *commands: Command) -> MadeHome:
        """Return the home that commands make of a folder; it is made if nobody has made it.

        Args:
            prepared: `include/` and `var/`; it is copied, and stays as it is.
            commands: of the console script, each of which must end with 0; or a step of a week by
                its name (`("ingest", "opal", "2016-W30")`).

        Raises:
            AlteredHomeError: a file of it was changed since.
        """
        asked = [self.of, _digest(prepared, _files(prepared)), *map(list, commands)]
        key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:24]
        place = self.kept / key
        with exclusively(self.kept / f"{key}.lock"):
            if not (place / "made.json").exists():
                self._make(place, prepared, commands)
        printed = json.loads((place / "made.json").read_text())["printed"]
        return self.unchanged(MadeHome(place / "root", tuple(printed)))

    def unchanged(self, made: MadeHome) -> MadeHome:
        """Return a home that was asked for before.

        Raises:
            AlteredHomeError: a file of it was changed since.
        """
        place = made.root.parent
        self._check(place, json.loads((place / "made.json").read_text())["digests"])
        os.utime(place)
        return made

    def _make(self, place: Path, prepared: Path, commands: tuple[Command, ...]) -> None:
        self._forget_others()
        shutil.rmtree(place, ignore_errors=True)  # what a killed run began
        made = MadeHome(place / "root", ())
        shutil.copytree(prepared, made.root, symlinks=True)
        printed = []
        with pytest.MonkeyPatch.context() as environment:
            made.enter(environment)
            for command in commands:
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    _do(command)
                printed.append(out.getvalue())
        for ledger in made.home.glob("*.sqlite"):  # what its journal still holds belongs to it
            with contextlib.closing(sqlite3.connect(ledger)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        digests = {name: _of_file(made.root / name) for name in self._names(made.root)}
        text = json.dumps({"of": self.of, "printed": printed, "digests": digests})
        (place / "made.json").write_text(text)

    def _check(self, place: Path, digests: dict[str, str]) -> None:
        """Compare the files with what was made: bytes once a process, then size and time."""
        root = place / "root"
        now = {name: _marks(root / name) for name in self._names(root)}
        if self._checked.get(place) == now:
            return
        of_bytes = {name: _of_file(root / name) for name in now}
        if of_bytes != digests:
            names = {name for name, _ in of_bytes.items() ^ digests.items()}
            shutil.rmtree(place)
            raise AlteredHomeError(
                f"a test changed a home that others read: {', '.join(sorted(names))}. "
                "Let it ask for a copy; the home is made anew by the next run."
            )
        self._checked[place] = now

    def _forget_others(self) -> None:
        """Remove homes of other sources and days that nobody has asked for in a while."""
        for place in self.kept.glob("*/made.json"):
            is_old = time.time() - place.parent.stat().st_mtime > _KEPT_S
            if is_old and json.loads(place.read_text())["of"] != self.of:
                shutil.rmtree(place.parent, ignore_errors=True)

    @staticmethod
    def _names(root: Path) -> list[str]:
        return [path.relative_to(root).as_posix() for path in _files(root)]


def _do(command: Command) -> None:
    if command[0] in STEPS:
        step_named(command[0])(command[1], command[2], 0)
    else:
        assert main(list(command)) == 0, command


def _files(root: Path) -> Iterator[Path]:
    """Yield the files of a folder, in order; a ledger's journal comes and goes with its readers."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.endswith(("-wal", "-shm")):
            yield path


def _digest(root: Path, files: Iterable[Path]) -> str:
    every = hashlib.sha256()
    for path in files:
        name = path.relative_to(root).as_posix()
        every.update(f"{len(name)} {name} {_of_file(path)}\n".encode())
    return every.hexdigest()


def _of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _marks(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
