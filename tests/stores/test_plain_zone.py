"""A zone whose store holds files by their names: what a killed process leaves is no file."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from memory_bucket import MemoryBucket
from object_store import object_store

from turnstile.errors import IntegrityError
from turnstile.settings import ZoneStore
from turnstile_stores.address import credentials_of, store_address
from turnstile_stores.bucket import Bucket
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
        with pytest.raises(Killed):
            _fetch(zone)
    package = zone.folder / MANIFEST
    assert [*package.parent.iterdir()] == []
    assert len([*(zone.folder / STATE).glob("arriving-*")]) == 1
    _fetch(zone)
    assert package.read_bytes() == b"{}"
    assert [*(zone.folder / STATE).glob("arriving-*")] == []


def test_an_authority_calls_its_files_as_it_likes(tmp_path: Path) -> None:
    """One that is called as our sealed bytes are goes from the landing zone like any other."""
    name = "opal/2016-W30/sealed-0123456789abcdef.parquet"
    with object_store(tmp_path / "store") as server:
        address = f"s3://turnstile-landing/all?endpoint={server.endpoint}"
        store = ZoneStore("landing", address, server.credentials / "root")
        bucket = Bucket(store_address(store), credentials_of(store))
        zone = PlainZone(bucket, tmp_path / "landing", is_private=True, is_whole=False)
        for is_here in (True, False):  # retention deletes it, or somebody in the store
            bucket.create(name, b"1")
            _fetch(zone)
            if is_here:
                zone.delete(zone.folder / name)
                assert not bucket.listed("")
            else:
                bucket.delete(name, delivered=True)
            _fetch(zone)
        assert not (zone.folder / name).exists()


@pytest.fixture
def filled(tmp_path: Path) -> PlainZone:
    """A public zone that has seen a package of one table, and a page beside it."""
    bucket = MemoryBucket("s3://public", _quiet, lambda: datetime(2016, 8, 1, tzinfo=UTC))
    bucket.create("index.html", b"a page")
    bucket.create("opal/2016-W30/r0/tables/day.csv", b"1")
    bucket.create("opal/2016-W30/r0/planted.csv", b"2")
    files = [{"path": "tables/day.csv", "sha256": hashlib.sha256(b"1").hexdigest()}]
    bucket.create(MANIFEST, json.dumps({"files": files}).encode())
    zone = PlainZone(bucket, tmp_path / "public", is_private=False, is_whole=True)
    _fetch(zone)
    return zone


def test_no_fetch_removes_a_file_that_a_package_lost_in_its_bucket(filled: PlainZone) -> None:
    """The copy here may be the last; the manifest alone was looked for."""
    lost = "opal/2016-W30/r0/tables/day.csv"
    filled.bucket.delete(lost)
    with pytest.raises(IntegrityError, match=f"{lost} is gone, which was there"):
        _fetch(filled)
    assert (filled.folder / lost).read_bytes() == b"1"
    assert filled.packages_gone() == ["opal/2016-W30/r0"]


def test_no_fetch_without_its_book_removes_a_package_that_its_bucket_lost(
    filled: PlainZone,
) -> None:
    """The book is moved away where a disk damaged it, as its sentence says; a backup is older."""
    (filled.folder / ".store/copies.json").unlink()
    for name in list(filled.bucket.listed("opal/")):
        filled.bucket.delete(name)
    with pytest.raises(IntegrityError, match="turnstile stores restore"):
        _fetch(filled)
    assert (filled.folder / MANIFEST).exists()
    assert filled.packages_gone() == ["opal/2016-W30/r0"]


def test_a_package_of_a_publication_that_died_goes_though_nothing_ever_came(
    filled: PlainZone, tmp_path: Path
) -> None:
    bucket = MemoryBucket("s3://empty", _quiet, lambda: datetime(2016, 8, 1, tzinfo=UTC))
    zone = PlainZone(bucket, tmp_path / "empty", is_private=False, is_whole=True)
    _fetch(zone)
    shutil.copytree(filled.folder / "opal", zone.folder / "opal")
    _fetch(zone)
    assert not (zone.folder / MANIFEST).exists()


@pytest.mark.parametrize("name", ["opal/2016-W30/r0/tables/day.csv", MANIFEST])
def test_no_fetch_replaces_a_file_of_a_package_by_other_bytes(filled: PlainZone, name: str) -> None:
    whole = (filled.folder / name).read_bytes()
    filled.bucket.delete(name)
    filled.bucket.create(name, b"3")
    with pytest.raises(IntegrityError, match=f"{name} holds other bytes than it did"):
        _fetch(filled)
    assert (filled.folder / name).read_bytes() == whole
    filled.bucket.delete(name)
    filled.bucket.create(name, whole)  # another version of the same bytes
    _fetch(filled)


def test_a_copy_that_a_disk_damaged_comes_again(filled: PlainZone) -> None:
    copy = filled.folder / "opal/2016-W30/r0/tables/day.csv"
    copy.write_bytes(b"damaged")
    _fetch(filled)
    assert copy.read_bytes() == b"1"


def test_a_withdrawn_package_may_be_taken_down(filled: PlainZone) -> None:
    lost = "opal/2016-W30/r0/tables/day.csv"
    filled.bucket.delete(lost)
    with filled.alone():
        filled.fetch(lambda _: lambda _: True, withdrawn=lambda: {"opal/2016-W30/r0"})
    assert not (filled.folder / lost).exists()


def test_what_else_went_from_the_bucket_goes_here(filled: PlainZone) -> None:
    """Rows that somebody took away must not stay public, a list of files with them or not."""
    listing = {"files": [{"path": "rows.csv", "sha256": hashlib.sha256(b"2").hexdigest()}]}
    names = ["index.html", "opal/2016-W30/r0/planted.csv", "opal/new/rows.csv"]
    filled.bucket.create(names[-1], b"2")
    filled.bucket.create("opal/new/manifest.json", json.dumps(listing).encode())
    _fetch(filled)
    for name in (*names, "opal/new/manifest.json"):
        assert (filled.folder / name).exists()
        filled.bucket.delete(name)
    _fetch(filled)
    assert [name for name in names if (filled.folder / name).exists()] == []


def test_a_stranger_in_a_package_goes_before_that_is_sent_again(filled: PlainZone) -> None:
    package = "opal/2016-W30/r0"
    filled.remove_strangers(package)
    here = [path.name for path in (filled.folder / package).rglob("*") if path.is_file()]
    assert sorted(here) == ["day.csv", "manifest.json"]


def _fetch(zone: PlainZone) -> None:
    with zone.alone():
        zone.fetch(lambda _: lambda _: True)


def _killed(*_: object) -> None:
    raise Killed
