"""A snapshot: one week's canonical rows as they were delivered, named by the digest of its making.

It lives in the private zone and is written once. `rows/service_date=YYYY-MM-DD/part-000.parquet`
holds the rows, `quarantine/<rule>.parquet` those that broke a rule, `hours.parquet` the number of
rows by file and hour, `numbers.parquet` how those of gates go on, `snapshot.json` the files, the
exact counts, and the digests of all these; none of them leaves the zone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

from turnstile.durable_files import sha256_of
from turnstile.errors import IntegrityError

SNAPSHOT_FILE, HOURS_FILE = "snapshot.json", "hours.parquet"
NUMBERS_FILE, UNNAMED = "numbers.parquet", "duplicates_without_id"
_ROWS = "rows"
# `joined`: records that became part of another one's row, as a tap-off does of its trip.
TOTALS = ("rows_in", "rows_out", "duplicates", "joined")
_DIGITS_OF_FOLDER = 12


class PrivateCounts(Mapping[str, int]):
    """Exact counts by name, which do not print and cannot be pickled."""

    __slots__ = ("_counts",)

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)

    def __getitem__(self, key: str) -> int:
        """Return one exact count."""
        return self._counts[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._counts)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._counts)

    def __repr__(self) -> str:
        """Names of nothing: a count is not printed."""
        return "<private counts>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError("private counts stay in the process that read them")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One ingested week.

    Args:
        programme: name of the programme.
        period: service week, `2016-W30`.
        digest: SHA-256 over file digests, mapping and parser version, in hex.
        folder: where it is in the private zone.
        days: service days that have rows, in order.
        files: pairs (name, SHA-256) of the delivered files.
    """

    programme: str
    period: str
    digest: str
    folder: Path
    days: tuple[date, ...]
    files: tuple[tuple[str, str], ...]

    @property
    def rows_glob(self) -> str:
        """Glob of all Parquet files of rows."""
        return str(self.folder / _ROWS / "service_date=*" / "part-*.parquet")


def folder_of(private: Path, programme: str, week: str, digest: str) -> Path:
    """Return where a snapshot lives, present or not."""
    return private / programme / week / "snapshots" / digest[:_DIGITS_OF_FOLDER]


def write_record(
    snapshot: Snapshot, counts: Mapping[str, int], *, folder: Path, unnamed: int = 0
) -> None:
    """Write `snapshot.json` with the exact counts into a folder that is not in its place yet.

    Args:
        snapshot: whose record it is.
        counts: by name.
        folder: where it lies until it is in its place; with everything else that belongs to it.
        unnamed: duplicates that no id of their own tells from other records.
    """
    record = {
        "programme": snapshot.programme,
        "period": snapshot.period,
        "digest": snapshot.digest,
        "days": [day.isoformat() for day in snapshot.days],
        "files": [list(pair) for pair in snapshot.files],
        "counts": dict(counts),
        UNNAMED: unnamed,
        "parts": {name: sha256_of(folder / name) for name in _files_below(folder)},
    }
    (folder / SNAPSHOT_FILE).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def load_snapshot(private: Path, programme: str, week: str, digest: str) -> Snapshot:
    """Return a snapshot that was ingested before.

    Raises:
        IntegrityError: it is not there, or what is there is another one.
    """
    folder = folder_of(private, programme, week, digest)
    record = _record(folder)
    bound = (record.get("programme"), record.get("period"), record.get("digest"))
    if bound != (programme, week, digest):
        raise IntegrityError(
            f"the snapshot folder of {programme} {week} holds another snapshot than was asked for; "
            "restore the private zone, or ingest the week again"
        )
    return Snapshot(
        programme=programme,
        period=week,
        digest=digest,
        folder=folder,
        days=tuple(date.fromisoformat(day) for day in record["days"]),
        files=tuple((name, sha256) for name, sha256 in record["files"]),
    )


def require_whole(snapshot: Snapshot) -> None:
    """Refuse a snapshot of which files are gone or altered: a day without rows counts as zeros.

    Of one of an earlier version, whose record has no digests, days without a file are told.

    Raises:
        IntegrityError: it is not as it was ingested.
    """
    record = _record(snapshot.folder)
    there, first = {*_files_below(snapshot.folder)}, "service_date={}/part-000.parquet"
    parts = record.get("parts")
    if parts is None:
        is_whole = {f"{_ROWS}/{first.format(day)}" for day in record["days"]} <= there
    else:
        strangers = {name for name in there - parts.keys() if name.startswith(f"{_ROWS}/")}
        is_whole = parts.keys() <= there and not strangers
        is_whole = is_whole and all(
            sha256_of(snapshot.folder / name) == sha256 for name, sha256 in parts.items()
        )
    if not is_whole:
        raise IntegrityError(
            f"rows of {snapshot.programme} {snapshot.period} are gone or altered since they were "
            "ingested; restore them in the private zone, or ingest the week again"
        )


def _files_below(folder: Path) -> Iterator[str]:
    """Yield the files and links of a snapshot, by their paths below it."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix()


def counts_of(snapshot: Snapshot) -> PrivateCounts:
    """Return the exact counts of ingest by name.

    They are `TOTALS` and each broken rule: rows_in = rows_out + duplicates + joined + the rules.
    """
    return PrivateCounts(_record(snapshot.folder)["counts"])


def unnamed_of(snapshot: Snapshot) -> int:
    """Return how many duplicates no id tells from other records; private, 0 of older snapshots."""
    return int(_record(snapshot.folder).get(UNNAMED, 0))


def _record(folder: Path) -> dict[str, Any]:
    """Read `snapshot.json`."""
    try:
        record: dict[str, Any] = json.loads((folder / SNAPSHOT_FILE).read_text())
    except (OSError, ValueError):
        raise IntegrityError(
            "a snapshot is missing from the private zone or its record is damaged; "
            "ingest the week again"
        ) from None
    return record
