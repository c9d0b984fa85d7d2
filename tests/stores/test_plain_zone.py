"""A zone whose store holds files by their names: what a killed process leaves is no file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from memory_bucket import MemoryBucket

from turnstile_stores.plain_zone import PlainZone
from turnstile_stores.unit import STATE

MANIFEST = "opal/2016-W30/r0/manifest.json"


class Killed(BaseException):
    """Nothing cleans up after it."""


@contextmanager
def _quiet(*_: str) -> Iterator[None]:
    yield


def test_a_fetch_that_was_killed_leaves_nothing_beside_the_files_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draft in a package is a file that no manifest lists: found by the simulated world."""
    bucket = MemoryBucket("s3://public", _quiet, lambda: datetime(2016, 8, 1, tzinfo=UTC))
    bucket.create(MANIFEST, b"{}")
    zone = PlainZone(bucket, tmp_path / "public", is_private=False, is_whole=True)
    with monkeypatch.context() as killed:
        killed.setattr(Path, "replace", _killed)
        killed.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Killed), zone.alone():
            zone.fetch(lambda _: lambda _: True)
    package = zone.folder / MANIFEST
    assert [*package.parent.iterdir()] == []
    assert len([*(zone.folder / STATE).glob("arriving-*")]) == 1
    with zone.alone():
        zone.fetch(lambda _: lambda _: True)
    assert package.read_bytes() == b"{}"
    assert [*(zone.folder / STATE).glob("arriving-*")] == []


def _killed(*_: object) -> None:
    raise Killed
