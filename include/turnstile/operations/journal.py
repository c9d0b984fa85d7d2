"""The journal of runs: which run worked on which week, how it ended, what people were sent.

One append-only file of JSON lines for each programme and week, beside the zones. The ledger knows
nothing of orchestrators; this does, and no decision about privacy is ever read from it. What is
written here is an output: verdicts of rules without numbers, sentences without values.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from turnstile import errors
from turnstile.durable_files import exclusively
from turnstile.settings import Settings

FOLDER = "operations"
_DETAILS = "told"  # in the file, as every version wrote it


class Happening(StrEnum):
    """What a line of the journal says."""

    BEGUN = "begun"  # a run takes up a week; details: triggered_by, note
    JUDGED = "judged"  # details: verdicts, rule to pass, warn, fail or broken
    FAILED = "failed"  # a step stopped the run; details: step, kind, sentence
    ENDED = "ended"  # the last step succeeded
    ASKED = "asked"  # people are asked; details: task, sentence
    WAITS = "waits"  # a run waits; details: sentence, what for
    RESUMED = "resumed"  # a run goes on: after a wait, an answer or a clear; details: step
    NOTIFIED = "told"  # an alert was delivered; details: identity, severity
    VERIFIED = "verified"  # the ledger was verified; details: sequence, hash, found
    COMPARED = "compared"  # private data were compared with it; details: found
    EXPIRES = "expires"  # data of a week without a release go soon; details: day
    OVERSTAYS = "overstays"  # private data stay beyond their days; details: why, of, part
    CHANGED = "changed"  # retention met another file of the programme; details: digest, days
    RESTATED = "restated"  # the landing files are no longer those that were sealed


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Args:
        at: ISO 8601, UTC, to the second.
        happening: what kind of line.
        programme: name; `ledger` for what concerns no programme.
        week: ISO week; `all` for what concerns no week.
        run_id: of the orchestrator; empty where none was involved.
        details: of what happened, without any private value; `told` in the file.
    """

    at: str
    happening: Happening
    programme: str
    week: str
    run_id: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class Journal:
    """The journal of a deployment.

    Args:
        folder: made on first use; may be shared by processes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of(cls, settings: Settings) -> Journal:
        """Return the deployment's journal."""
        return cls(settings.home / FOLDER / "journal")

    def write(self, line: Line) -> None:
        """Append a line, and make it durable; one that is cut short is none."""
        parts = asdict(line)
        parts[_DETAILS] = parts.pop("details")
        append_line(self._path(line.programme, line.week), parts)

    def of_week(self, programme: str, week: str) -> tuple[Line, ...]:
        """Return the lines about a week, oldest first."""
        return tuple(_lines(self._path(programme, week)))

    def of_programme(self, programme: str) -> tuple[Line, ...]:
        """Return the lines about a programme, by week, oldest first in each."""
        paths = sorted((self._folder / programme).glob("*.jsonl"))
        return tuple(line for path in paths for line in _lines(path))

    def programmes(self) -> tuple[str, ...]:
        """Return the names under which anything was written."""
        if not self._folder.is_dir():
            return ()
        return tuple(sorted(path.name for path in self._folder.iterdir() if path.is_dir()))

    def _path(self, programme: str, week: str) -> Path:
        """Name the file of a week."""
        return self._folder / programme / f"{week}.jsonl"


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record to a file of JSON lines, and make it durable.

    What a crash or a full disk cut short before it stays a line of its own, which no reader reads.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (json.dumps(record, sort_keys=True) + "\n").encode()
    with exclusively(path) as file:
        if path.stat().st_size and not _ends_a_line(path):
            content = b"\n" + content
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _ends_a_line(path: Path) -> bool:
    """Return whether the last byte of a file ends a line."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def open_runs(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """Return the lines that took up the runs which neither failed nor ended since.

    Examples:
        >>> begun = Line("2026-11-20T10:00:00+00:00", Happening.BEGUN, "opal", "2016-W30", "a")
        >>> ended = Line("2026-11-20T10:05:00+00:00", Happening.ENDED, "opal", "2016-W30", "a")
        >>> len(open_runs((begun,))), len(open_runs((begun, ended)))
        (1, 0)
    """
    runs: dict[str, Line] = {}
    for line in lines:
        if line.happening is Happening.BEGUN:
            runs[line.run_id] = line
        elif line.happening is Happening.RESUMED:
            runs.setdefault(line.run_id, line)
        elif line.happening in {Happening.FAILED, Happening.ENDED}:
            runs.pop(line.run_id, None)
    return tuple(runs.values())


def starters(lines: Iterable[Line]) -> frozenset[str]:
    """Return everybody who is on record as having started a run of a week."""
    return frozenset(
        str(line.details["triggered_by"])
        for line in lines
        if line.happening is Happening.BEGUN and line.details.get("triggered_by")
    )


def error_of(line: Line) -> type[Exception]:
    """Return the class of the error that stopped a run; Exception for a library's own."""
    kind = str(line.details.get("kind", ""))
    error: type[Exception] = getattr(errors, kind, getattr(builtins, kind, Exception))
    return error


def _lines(path: Path) -> Iterator[Line]:
    """Read a file; a half-written line, left by a crash or a full disk, is passed over."""
    if not path.exists():
        return
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            parts = json.loads(text)
            parts["details"] = parts.pop(_DETAILS)
            yield Line(**(parts | {"happening": Happening(parts["happening"])}))
        except (ValueError, TypeError, KeyError):
            continue
