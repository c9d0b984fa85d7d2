"""What a simulated world asks once of the house, because nothing that it depends on has changed.

Pure functions of their arguments, programmes and domains by their digests, and readings of the
database, which are forgotten at the next transaction or when another file stands in its place.
Nothing that may fail in a world is left out: a reading begins no transaction of a writer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives import serialization
from remembered import Remembered

from turnstile import cli
from turnstile.ledger import attempts, records
from turnstile.ledger.custody import signed_note, zone_index
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.database import store
from turnstile.ledger.database.store import Store
from turnstile.ledger.entries import read_entry
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.promise import promise_problems
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.tlog import checkpoints, merkle
from turnstile.privacy import accounts
from turnstile.programme.domain.files import load_domain
from turnstile.programme.terms import binding_terms
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings
from turnstile_stores import unit

_READINGS = (
    "find", "revision", "weeks", "attempts", "bounding_keys", "entries_of", "head", "parties",
    "assessment", "approvals", "decisions_on_revision",
)  # fmt: skip
"""What reads the database alone, and changes nothing: asked a hundred times a week."""
_PURE = (
    (attempts, ("to_attempt",)),
    (records, ("revision_of",)),
    (zone_index, ("is_in_work",)),
    (signed_note, ("verifies", "parse_note", "key_id")),
    (checkpoints, ("parse_checkpoint", "parse_step", "parse_proof")),
    (merkle, ("is_consistent", "is_included")),
    (cli, ("_parser_of",)),
    (store, ("make_url",)),
)
_NAMES = (
    "TURNSTILE_HOME", "TURNSTILE_INCLUDE", "TURNSTILE_LEDGER_URL", "TURNSTILE_LEDGER_KEY",
    "TURNSTILE_WITNESS", "TURNSTILE_LANDING_STORE",
)  # fmt: skip
"""What a world's machines put into the environment; of zones all have a store or none."""
_MADE: dict[tuple[object, ...], Any] = {}
_MADE_AT_MOST, _PARSED_AT_MOST = 1_000, 100_000


class AskedOnce:
    """Answers of one world.

    Args:
        database: its ledger's file.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._state: tuple[object, ...] = ()
        self._answers: dict[tuple[object, ...], Any] = {}
        self._with_tables: set[tuple[object, ...]] = set()
        self.written = 0
        self._domains: dict[str, Any] = {}

    def forget(self) -> None:
        """The database is written to, or is another one."""
        self.written += 1

    def patches(self, remembered: Remembered) -> Iterator[Any]:
        """Yield what takes the place of the house's own functions, and what a world remembers."""
        for name in _READINGS:
            yield patch.object(Ledger, name, self._reading(getattr(Ledger, name), remembered))
        all_entries = Ledger.entries
        entries = self._reading(
            lambda ledger, after: tuple(all_entries(ledger, after=after)), remembered
        )
        yield patch.object(Ledger, "entries", lambda ledger, after=0: iter(entries(ledger, after)))
        yield patch.object(Store, "_migrate", self._migrating(Store._migrate))
        key_of = lru_cache(100)(serialization.load_pem_private_key)
        yield patch.object(serialization, "load_pem_private_key", key_of)
        yield patch.object(_PATHS, "parse_parts", _parse_parts)
        yield patch.object(unit, "json", _JSON)
        yield patch.object(ReleaseKey, "parse", _KEY_OF)
        yield patch.object(merkle.Tree, "of", lambda hashes: _TREE_OF(tuple(hashes)))
        yield patch.object(Settings, "from_environment", _settings)
        yield patch.object(ServiceWeek, "days", property(_DAYS_OF))
        yield patch.object(Signer, "line_of", lambda signer, name: _line(signer._private, name))
        yield patch.object(Signer, "note", lambda signer, *said: _note(signer._private, *said))
        once: dict[Any, Any] = {make_plan: _plan, load_domain: self._domain, binding_terms: _terms}
        once[promise_problems] = _problems
        once[accounts.postings] = _postings
        pure = [getattr(module, name) for module, names in _PURE for name in names]
        once |= {real: lru_cache(20_000)(real) for real in (*pure, read_entry)}
        once |= remembered.functions()
        for module in _modules():
            for name, value in list(vars(module).items()):
                if callable(value) and getattr(value, "__hash__", None) and value in once:
                    yield patch.object(module, name, once[value])

    def _reading(self, real: Callable[..., Any], remembered: Remembered) -> Callable[..., Any]:
        beside = str(self._database.parent)

        def read(ledger: Any, *asked: Any) -> Any:
            state = (self.written, remembered.count_of(beside))
            if self._state != state:
                self._state, self._answers = state, {}
            question = (real, ledger._store.file, *asked)
            if question not in self._answers:
                self._answers[question] = real(ledger, *asked)
            return self._answers[question]

        return read

    def _domain(self, programme: Any, include: Path) -> Any:
        """Read a domain once in a world: a file is read, which is a call that may fail."""
        if programme.digest not in self._domains:
            self._domains[programme.digest] = load_domain(programme, include)
        return self._domains[programme.digest]

    def _migrating(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Look for the tables once in a file; what is put in its place is another file."""

        def migrate(store: Any) -> None:
            if (store.file, *_file(store.file)[:1]) not in self._with_tables:
                real(store)
                self._with_tables.add((store.file, *_file(store.file)[:1]))

        return migrate


_JSON = SimpleNamespace(loads=lru_cache(5_000)(json.loads), dumps=json.dumps)
"""For what is written down of units, which nobody changes in place: read each time, parsed once."""
_PATHS = PurePosixPath._flavour
_PARSED: dict[tuple[str, ...], tuple[str, str, list[str]]] = {}
_REAL_PARSE = _PATHS.parse_parts


def _parse_parts(parts: list[str]) -> tuple[str, str, list[str]]:
    """Take a path apart once: pathlib is a sixth of a world, and changes no list that it made."""
    asked = tuple(parts)
    parsed = _PARSED.get(asked)
    if parsed is None:
        if len(_PARSED) > _PARSED_AT_MOST:
            _PARSED.clear()
        parsed = _PARSED[asked] = _REAL_PARSE(parts)
    return parsed


_KEY_OF = lru_cache(5_000)(ReleaseKey.parse)
_TREE_OF = lru_cache(100)(merkle.Tree.of)
_REAL_SETTINGS = Settings.from_environment


@lru_cache(10)
def _settings_of(_: tuple[str | None, ...]) -> Settings:
    return _REAL_SETTINGS()


def _settings() -> Settings:
    """Read the environment anew where a machine's names stand in it."""
    return _settings_of(tuple(map(os.environ.get, _NAMES)))  # noqa: TID251 - another one?


_DAYS_OF = lru_cache(1_000)(ServiceWeek.days.fget)
_REAL_LINE, _REAL_NOTE = Signer.line_of, Signer.note


@lru_cache(1_000)
def _line(private: Any, name: str) -> str:
    """Return a key's line; its signer is made for each process."""
    return _REAL_LINE(SimpleNamespace(_private=private), name)  # type: ignore[arg-type]


@lru_cache(10_000)
def _note(private: Any, name: str, text: str) -> str:
    """Sign a text once: Ed25519 gives the same signature each time."""
    return _REAL_NOTE(SimpleNamespace(_private=private), name, text)  # type: ignore[arg-type]


def _modules() -> list[ModuleType]:
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("turnstile")]


def _file(path: Path) -> tuple[int, ...]:
    """What tells a file from what it was; empty if there is none."""
    try:
        seen = path.stat()
    except OSError:
        return ()
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _made(question: tuple[object, ...], make: Callable[[], Any]) -> Any:
    if question not in _MADE:
        if len(_MADE) > _MADE_AT_MOST:
            _MADE.clear()
        _MADE[question] = make()
    return _MADE[question]


def _plan(programme: Any, domain: Any, week: Any, *, revision: int = 0) -> Any:
    asked = ("plan", programme.digest, domain.digest, str(week), revision)
    return _made(asked, lambda: make_plan(programme, domain, week, revision=revision))


def _terms(programme: Any, period: Any) -> Any:
    asked = ("terms", programme.digest, str(period))
    return _made(asked, lambda: dict(binding_terms(programme, period)))


_POSTINGS_OF = lru_cache(1_000)(accounts.postings)


def _postings(events: Any) -> Any:
    """Sum up the same draws once."""
    return _POSTINGS_OF(tuple(events))


def _problems(entry: Any) -> Iterator[str]:
    """Compare an entry with its draws once: both are in its text."""
    asked = ("problems", entry.record)
    return iter(_made(asked, lambda: tuple(promise_problems(entry))))
