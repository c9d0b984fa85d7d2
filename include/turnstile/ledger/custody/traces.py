"""Traces of releases on disk, and whether the ledger knows them: packages and sealed files.

    <public>/opal/2016-W30/r0/manifest.json, release_card.json
    <embargoed>/opal/2016-W30/r0/package/manifest.json
    <embargoed>/opal/2016-W30/r0/sealed-0123456789abcdef.parquet
    <embargoed>/opal/2016-W30/r0/set-aside/...           sealed files of draws that died
    <embargoed>/.store/aside/opal/2016-W30/r0/...        the same, where a store did not have them

A trace that the ledger does not know is a draw that a restored ledger forgot. All of them are read
before every charge (PRIVACY 6.2), files first and the ledger second: a file appears after the entry
that it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from turnstile.durable_files import SEALED, SET_ASIDE, is_named_sealed, sealed_name
from turnstile.ledger.custody.folders import all_below, content_of, listed, release_folders
from turnstile.ledger.custody.notes import head_findings
from turnstile.ledger.records import Attempt, Finding

MANIFEST = "manifest.json"
CARD = "release_card.json"
STAGED = "package"
STORE_ASIDE = ".store/aside"
_CARD_HEAD = re.compile(rb'"head_sha256":\s*"([0-9a-f]{64})",\s*"sequence":\s*(\d{1,18})\b')


class TraceKind(StrEnum):
    """What was found."""

    PACKAGE = "public package"
    STAGED = "staged package"
    SEALED = "sealed file"
    ASIDE = "set-aside file"

    @property
    def check(self) -> str:
        """Name of the check, in findings."""
        return "manifest" if self is TraceKind.PACKAGE else self.value.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace of a release.

    Args:
        kind: what it is.
        path: the package's folder, or the sealed file.
        key: release that its folder names.
        sealed: digest of the sealed bytes that it states; of a file the first 16 digits.
        manifest: digest of its manifest, of packages.
        head: sequence and hash of the ledger's head that its card states, if it has one.
        folder: of the release under embargo, of a file that was set aside.
    """

    kind: TraceKind
    path: Path
    key: str
    sealed: str | None
    manifest: str | None = None
    head: tuple[int, str] | None = None
    folder: Path | None = None

    @property
    def file(self) -> str:
        """Name of the sealed file, without what was put after it when it was set aside."""
        return self.path.name.partition(".")[0]


def sealed_file(digest: str | None) -> str:
    """Return the name of the file of sealed bytes, as `Trace.file` has it.

    Args:
        digest: of the bytes, as the ledger or a package states it.
    """
    return sealed_name(digest or "").partition(".")[0]


FILES = frozenset({TraceKind.SEALED, TraceKind.ASIDE})
AttemptsOf = Mapping[str, Iterable[Attempt]]
HashOf = Callable[[tuple[int, str]], str | None]


def traces(public: Path | None, embargoed: Path | None) -> tuple[Trace, ...]:
    """Read every trace of every release.

    Raises:
        InputError: a folder cannot be read.
    """
    all_traces = []
    if public is not None:
        all_traces += [
            package_trace(TraceKind.PACKAGE, *release_folder)
            for release_folder in release_folders(public)
        ]
    if embargoed is not None:
        for key, folder in release_folders(embargoed):
            all_traces += _under_embargo(key, folder)
        for key, folder in release_folders(embargoed / STORE_ASIDE):
            all_traces += _set_aside(key, folder, embargoed / key)
    return tuple(all_traces)


def by_key(all_traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    """Return the traces of each release key."""
    of_keys: dict[str, list[Trace]] = {}
    for trace in all_traces:
        of_keys.setdefault(trace.key, []).append(trace)
    return of_keys


def _under_embargo(key: str, folder: Path) -> Iterator[Trace]:
    """Yield the staged package and the sealed files of one release."""
    for entry in listed(folder):
        if entry.name == STAGED and entry.is_dir():
            yield package_trace(TraceKind.STAGED, key, folder / STAGED)
        elif entry.name == SET_ASIDE:
            yield from _set_aside(key, folder / SET_ASIDE, folder)
        elif entry.name.startswith(SEALED) and entry.name.endswith(".parquet"):
            path = Path(entry.path)
            digits = path.stem.removeprefix(SEALED) if is_named_sealed(path) else None
            yield Trace(TraceKind.SEALED, path, key, digits)


def _set_aside(key: str, aside: Path, folder: Path) -> Iterator[Trace]:
    """Yield the sealed files of draws that died: charged, and in nobody's way."""
    for _, entry in all_below(aside):
        if entry.name.startswith(SEALED):
            yield Trace(TraceKind.ASIDE, Path(entry.path), key, None, folder=folder)


def package_trace(kind: TraceKind, key: str, folder: Path) -> Trace:
    """Read what a package states; what cannot be read is None."""
    sealed = digest = head = None
    try:
        content = content_of(f"{folder}/{MANIFEST}")
        digest = hashlib.sha256(content).hexdigest()
        stated = json.loads(content)
        sealed = str(stated["sealed_sha256"]) if stated["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        match = _CARD_HEAD.search(content_of(f"{folder}/{CARD}"))
        head = None if match is None else (int(match[2]), match[1].decode())
    except OSError:
        pass
    return Trace(kind, folder, key, sealed, digest, head)


def trace_findings(
    all_traces: Iterable[Trace], attempts: AttemptsOf, hash_of: HashOf
) -> Iterator[Finding]:
    """Yield every trace that the ledger does not know, or knows otherwise.

    Args:
        all_traces: as read, before the ledger.
        attempts: what the ledger says of each key.
        hash_of: looks up the hash of the entry that a card names, by its sequence and hash.
    """
    for trace in all_traces:
        past_attempts = tuple(attempts.get(trace.key, ()))
        problem = (
            _sealed_problem(trace, past_attempts)
            if trace.kind in FILES
            else _package_problem(trace, past_attempts)
        )
        if problem is not None:
            yield Finding(trace.kind.check, None, f"{trace.path}: {problem}")
        elif trace.head is not None:
            for finding in head_findings(trace.head, trace.path / CARD, hash_of(trace.head)):
                yield Finding("card", finding.sequence, finding.problem)


def _sealed_problem(trace: Trace, attempts: tuple[Attempt, ...]) -> str | None:
    """Say what is wrong with a sealed file. One of a draw that died is a leftover, and is known."""
    if any(attempt.is_charged for attempt in attempts):
        return None
    return f"sealed bytes of {trace.key}, which this ledger never drew: an old copy was restored"


def _package_problem(trace: Trace, attempts: tuple[Attempt, ...]) -> str | None:
    """Say what is wrong with a package."""
    name = trace.kind.value
    sealed = next((attempt for attempt in attempts if attempt.is_sealed), None)
    if sealed is None:
        return f"a {name} of {trace.key}, which this ledger never sealed: an old copy was restored"
    is_public = trace.kind is TraceKind.PACKAGE
    if trace.manifest is None or trace.sealed is None:
        return f"a {name} without a readable manifest of {trace.key}"
    if trace.sealed != sealed.artefact_digest:
        return f"a {name} of other sealed bytes than those of {trace.key}"
    if is_public and not sealed.is_public:
        return f"a {name} of {trace.key}, which this ledger did not publish"
    if is_public and trace.manifest != sealed.manifest_digest:
        return f"is not the manifest that {trace.key} was published with"
    return None
