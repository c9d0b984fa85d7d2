"""Fixtures: programmes, landing zones and ingested weeks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

from turnstile.cli import main
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.snapshot import Snapshot, counts_of
from turnstile.sources.ingest.week import ingest

Read = Callable[..., tuple[list[tuple[Any, ...]], dict[str, int]]]
_INCLUDE = Path(__file__).resolve().parents[2] / "include"


def texts(*values: bytes) -> pa.Array:
    """A column of texts that need be none."""
    return pa.array(values, pa.binary()).view(pa.string())


@dataclasses.dataclass(frozen=True)
class Zones:
    """A landing zone and a private zone, and what can be done with them."""

    root: Path

    @property
    def landing(self) -> Path:
        return self.root / "landing"

    @property
    def private(self) -> Path:
        return self.root / "private"

    def deliver(self, week: str, files: Mapping[str, str | bytes]) -> None:
        """Put files into the landing zone of a week."""
        folder = self.landing / week
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(data)

    def sample(self, programme: str, week: str, *arguments: str) -> None:
        """Put a generated week into the landing zone."""
        made = self.root / "made"
        asked = ["sample", programme, "--weeks", week, "--out", str(made)]
        assert main([*asked, *arguments]) == 0
        self.landing.mkdir(exist_ok=True)
        (made / programme / week).rename(self.landing / week)

    def ingest(self, programme: Programme, week: str) -> Snapshot:
        """Ingest a week."""
        return ingest(
            programme,
            ServiceWeek.parse(week),
            landing=self.landing,
            private=self.private,
            progress=lambda _: None,
        )


@pytest.fixture
def zones(tmp_path: Path) -> Zones:
    return Zones(tmp_path)


@pytest.fixture(scope="session")
def programme_of() -> Callable[..., Programme]:
    """Make a programme from a shipped one, with another source, name, zone or begin of a day."""

    def make(
        name: str, *, zone: str | None = None, day_starts: int = 0, **source: Any
    ) -> Programme:
        shipped = load_programme(name, _INCLUDE)
        time = dataclasses.replace(shipped.time, day_starts=day_starts)
        time = dataclasses.replace(time, zone=ZoneInfo(zone)) if zone else time
        changed = dataclasses.replace(shipped.source, landing="{week}/*", **source)
        return dataclasses.replace(shipped, source=changed, time=time)

    return make


@pytest.fixture(scope="session")
def rows_of() -> Callable[..., list[tuple[Any, ...]]]:
    """Read canonical rows of a snapshot, in order."""

    def read(snapshot: Snapshot, columns: str = "*") -> list[tuple[Any, ...]]:
        source = f"read_parquet('{snapshot.rows_glob}', hive_partitioning=false)"
        return duckdb.execute(f"SELECT {columns} FROM {source} ORDER BY ALL").fetchall()

    return read


@pytest.fixture
def ingested(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> Read:
    """Ingest a file of a header and lines; return rows and the exact counts that are not 0."""

    def run(
        *lines: str,
        header: str,
        read: str = "*",
        name: str = "opal",
        week: str = "2016-W30",
        **source: Any,
    ) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
        zones.deliver(week, {"a.csv": "\n".join([header, *lines]) + "\n"})
        snapshot = zones.ingest(programme_of(name, **source), week)
        counts = {rule: count for rule, count in counts_of(snapshot).items() if count}
        return (rows_of(snapshot, read) if snapshot.days else []), counts

    return run
