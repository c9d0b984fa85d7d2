"""A zone in a bucket: whole or not at all, whoever dies, races, plants or goes away."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from memory_bucket import MemoryBucket
from object_store import CutProxy, ObjectStore, object_store

from turnstile.durable_files import set_aside
from turnstile.errors import InputError, IntegrityError, StoreConflict, StoreError
from turnstile.release.zone_copies import ASIDE, Unnamed
from turnstile.settings import ZoneStore
from turnstile_stores import bucket as bucket_client
from turnstile_stores import unit_zone
from turnstile_stores.address import credentials_of, store_address
from turnstile_stores.bucket import Bucket
from turnstile_stores.unit_zone import ZONE, UnitZone

UNIT = "opal/2016-W30/r0"
SEALED = "sealed-0123456789abcdef.parquet"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store") / "run") as made:
        yield made


class Place:
    """A bucket's prefix of one test, and workers with folders of their own on it."""

    def __init__(self, server: ObjectStore, base: Path) -> None:
        self.server, self.base, self.prefix = server, base, base.name

    def worker(self, name: str, endpoint: str = "", user: str = "worker") -> UnitZone:
        endpoint = endpoint or self.server.endpoint
        address = f"s3://turnstile-embargoed/{self.prefix}?endpoint={endpoint}"
        store = ZoneStore("embargoed", address, self.server.credentials / user)
        bucket = Bucket(store_address(store), credentials_of(store))
        return UnitZone(bucket, self.base / name, 3, is_private=False)

    def names(self) -> list[str]:
        return sorted(self.backup())

    def put(self, name: str, content: bytes) -> None:
        root = self.server.client("root")
        root.put_object(Bucket="turnstile-embargoed", Key=f"{self.prefix}/{name}", Body=content)

    def backup(self) -> dict[str, bytes]:
        return self.server.behind("embargoed", self.prefix)

    def put_back(self, backup: dict[str, bytes]) -> None:
        """Put the bucket back to an earlier day, as operators do after an accident."""
        root = self.server.client("root")
        for name in self.names():
            root.delete_object(Bucket="turnstile-embargoed", Key=f"{self.prefix}/{name}")
        for name, content in backup.items():
            self.put(name, content)

    def index(self) -> dict[str, list[str]]:
        got = self.server.client("root").get_object(
            Bucket="turnstile-embargoed", Key=f"{self.prefix}/index/{UNIT}.json"
        )
        files: dict[str, list[str]] = json.loads(got["Body"].read())["files"]
        return files


@pytest.fixture
def place(server: ObjectStore, tmp_path: Path) -> Place:
    return Place(server, tmp_path)


def everything(_: str) -> bool:
    return True


def fetched(zone: UnitZone) -> dict[str, str]:
    """What a worker sees of the unit."""
    with zone.working_on(UNIT):
        zone.fetch((UNIT,), everything)
    return seen(zone)


def seen(zone: UnitZone) -> dict[str, str]:
    folder = zone.folder / UNIT
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def write(zone: UnitZone, **files: str) -> None:
    for name, text in files.items():
        path = zone.folder / UNIT / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ahead_of_its_store(place: Place, **today: str) -> UnitZone:
    """A worker that put a plan yesterday and more today, and a bucket put back to yesterday."""
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    yesterday = place.backup()
    write(worker, **today)
    worker.put(UNIT)
    place.put_back(yesterday)
    return worker


def test_what_a_step_made_is_there_for_a_worker_with_an_empty_folder(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    assert fetched(one) == {}
    write(one, plan="p", tables__a="1", tables__b="2")
    (one.folder / UNIT / ".lock").touch()
    one.put(UNIT)
    assert fetched(two) == {"plan": "p", "tables/a": "1", "tables/b": "2"}
    write(two, plan="q")
    (two.folder / UNIT / "tables/b").unlink()
    two.put(UNIT)
    assert fetched(one) == {"plan": "q", "tables/a": "1"}
    assert len(place.names()) == 3  # of what was replaced nothing stays
    put_at = one.put_at(one.folder / UNIT / "plan")
    assert put_at is not None
    assert one.put_at(one.folder / UNIT / "other") is None


def test_only_what_is_wanted_comes_and_the_rest_stays_in_the_store(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    write(one, rows__a="big", small="s")
    one.put(UNIT)
    with two.working_on(UNIT):
        two.fetch((UNIT,), lambda path: "rows" not in path)
    assert seen(two) == {"small": "s"}
    write(two, more="m")
    two.put(UNIT)
    assert fetched(place.worker("three")) == {"more": "m", "rows/a": "big", "small": "s"}


def test_a_step_that_changed_nothing_writes_no_state(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    (state,) = (worker.folder / ".store/units").rglob("*.json")
    before = state.stat().st_ino
    worker.put(UNIT)
    assert state.stat().st_ino == before
    write(worker, plan="q")  # the control: what changed is written down
    worker.put(UNIT)
    assert state.stat().st_ino != before


def test_what_a_step_left_that_died_is_gone_before_the_next_one(place: Place) -> None:
    worker = place.worker("one")
    fetched(worker)
    write(worker, plan="p")
    worker.put(UNIT)
    write(worker, plan="half", estimates__x="never put")
    assert fetched(worker) == {"plan": "p"}


@pytest.mark.parametrize("dies_at", range(6))
def test_a_worker_that_dies_in_the_middle_of_a_put_leaves_all_or_nothing(
    place: Place, dies_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = place.worker("one")
    write(worker, a="1", b="1")
    worker.put(UNIT)
    write(worker, a="2", b="2", c="2")
    calls = iter(range(100))
    send = worker.bucket._client.put_object

    def dying(**arguments: object) -> object:
        if next(calls) == dies_at:
            raise KeyboardInterrupt
        return send(**arguments)

    monkeypatch.setattr(worker.bucket._client, "put_object", dying)
    before, after = {"a": "1", "b": "1"}, {"a": "2", "b": "2", "c": "2"}
    if dies_at < 4:
        with pytest.raises(KeyboardInterrupt):
            worker.put(UNIT)
    else:
        worker.put(UNIT)
    assert fetched(place.worker("two")) == (before if dies_at < 4 else after)


@pytest.mark.parametrize("cut_after", [300, 1500, 3000, 6000, 8000])
def test_a_connection_that_is_cut_leaves_all_or_nothing_and_a_repeat_goes_on(
    place: Place, cut_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_client, "_TRIES", 1)
    proxy = CutProxy(place.server.endpoint, cut_after)
    cut = place.worker("one", proxy.address)
    files = {"a": "1" * 3000, "b": "2" * 3000}
    write(cut, **files)
    with pytest.raises(StoreError, match="run the same command again") as refused:
        cut.put(UNIT)
    assert "secret" not in str(refused.value)
    assert fetched(place.worker("two")) in ({}, files)
    again = place.worker("one")
    write(again, **files)
    again.put(UNIT)
    assert fetched(place.worker("three")) == files


def test_of_two_workers_that_write_the_same_file_one_is_told(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    for number, zone in enumerate((one, two)):
        fetched(zone)
        write(zone, package__manifest=f"built by {number}")
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(_outcome, (one, two)))
    (refused,) = [outcome for outcome in outcomes if outcome is not None]
    assert isinstance(refused, StoreConflict)
    assert "another worker wrote" in str(refused)
    winner = outcomes.index(None)
    assert fetched(place.worker("three")) == {"package/manifest": f"built by {winner}"}
    assert fetched((one, two)[1 - winner]) == {"package/manifest": f"built by {winner}"}


def _outcome(zone: UnitZone) -> Exception | None:
    try:
        zone.put(UNIT)
    except (StoreError, IntegrityError) as error:
        return error
    return None


def test_workers_that_write_different_files_both_keep_theirs(place: Place) -> None:
    zones = [place.worker(f"worker-{number}") for number in range(4)]
    for number, zone in enumerate(zones):
        fetched(zone)
        write(zone, **{f"file-{number}": "x"})
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_outcome, zones)) == [None] * 4
    assert len(fetched(place.worker("last"))) == 4


def test_what_another_worker_wrote_meanwhile_is_no_file_that_is_here(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    write(one, plan="old")
    one.put(UNIT)
    fetched(two)
    write(two, plan="new")
    two.put(UNIT)
    write(one, card="c")
    one.put(UNIT)  # both: their plan, our card
    assert fetched(one) == fetched(two) == {"card": "c", "plan": "new"}


def test_sealed_bytes_are_never_replaced(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    fetched(two)
    write(one, **{SEALED: "noise"})
    one.put(UNIT)
    write(two, **{SEALED: "other noise"})
    assert isinstance(_outcome(two), StoreError | IntegrityError)
    assert fetched(two) == {SEALED: "noise"}
    (two.folder / UNIT / SEALED).chmod(0o644)
    write(two, **{SEALED: "other noise"})
    with pytest.raises(IntegrityError, match="sealed with other bytes"):
        two.put(UNIT)
    assert fetched(place.worker("three")) == {SEALED: "noise"}


def test_the_same_sealed_bytes_again_change_nothing(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    fetched(two)
    for zone in (one, two):
        write(zone, **{SEALED: "noise"})
        zone.put(UNIT)
    assert fetched(place.worker("three")) == {SEALED: "noise"}


def test_bytes_that_somebody_changed_in_the_store_are_refused(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    place.put(place.index()["plan"][0], b"planted")
    with pytest.raises(IntegrityError, match="plan is not what its index says"):
        fetched(place.worker("two"))


@pytest.mark.parametrize(
    "planted",
    [
        b"{}",
        b"\xff",
        b'{"files": {"../../../key": ["files/opal/2016-W30/r0/x", 1, "0", ""]}}',
        b'{"files": {"a\\u0000b": ["files/opal/2016-W30/r0/x", 1, "0", ""]}}',
        b'{"files": {"a/.hidden": ["files/opal/2016-W30/r0/x", 1, "0", ""]}}',
        b'{"files": {"a": ["files/itms/2016-W30/r0/x", 1, "0", ""]}}',
        b'{"files": {"a": ["files/opal/2016-W30/r0/x", "one", "0", ""]}}',
    ],
)
def test_an_index_that_no_step_writes_is_refused(place: Place, planted: bytes) -> None:
    place.put(f"index/{UNIT}.json", planted)
    with pytest.raises(IntegrityError, match="index of opal/2016-W30/r0 is not what a step writes"):
        fetched(place.worker("one"))


@pytest.mark.parametrize(
    "name", ["../../key.json", "opal/2016-W30.json", "opal/../r0.json", "opal/2016-W30/r0", ".json"]
)
def test_an_index_where_no_step_writes_one_is_refused(place: Place, name: str) -> None:
    place.put(f"index/{name}", b'{"files": {}}')
    if "index/" not in "".join(place.names()):
        pytest.skip("the client does not send such a name")
    with pytest.raises(IntegrityError, match="an index stands where no step writes one"):
        fetched(place.worker("one"))
    assert not (place.base / "key.json").exists()


def test_an_index_that_is_gone_is_seen(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    root = place.server.client("root")
    root.delete_object(Bucket="turnstile-embargoed", Key=f"{place.prefix}/index/{UNIT}.json")
    with pytest.raises(IntegrityError, match="index of opal/2016-W30/r0 is gone"):
        fetched(worker)
    assert seen(worker) == {"plan": "p"}  # the last copy, perhaps


def test_an_older_index_takes_nothing_away_and_the_newer_files_are_put_back(place: Place) -> None:
    worker = ahead_of_its_store(place, plan="p2", **{SEALED: "noise"})
    for units in ((UNIT,), ()):
        with pytest.raises(IntegrityError, match="is older than the one that was here"):
            worker.fetch(units, everything)
    assert seen(worker) == {"plan": "p2", SEALED: "noise"}
    assert list(worker.restore()) == [(UNIT, 2, 0)]
    assert fetched(place.worker("two")) == seen(worker) == fetched(worker)
    assert list(worker.restore()) == []


def test_what_a_copied_home_holds_is_put_back_by_its_bytes(place: Place) -> None:
    ahead_of_its_store(place, exact="counts", **{SEALED: "noise"})
    shutil.copytree(place.base / "one", place.base / "copied", copy_function=shutil.copyfile)
    copied = place.worker("copied")
    assert list(copied.restore()) == [(UNIT, 2, 0)]
    assert fetched(place.worker("two")) == {"plan": "p", "exact": "counts", SEALED: "noise"}


def test_where_others_went_on_from_an_older_index_what_they_wrote_stays(place: Place) -> None:
    one, two = ahead_of_its_store(place, plan="p2", **{SEALED: "noise"}), place.worker("two")
    fetched(two)
    write(two, plan="p3")
    two.put(UNIT)
    with pytest.raises(IntegrityError, match="is older than"):
        fetched(one)
    write(one, plan="p4")
    with pytest.raises(IntegrityError, match="is older than"):
        one.put(UNIT)
    write(one, plan="p2")
    assert list(one.restore()) == [(UNIT, 1, 1)]
    assert fetched(one) == fetched(two) == {"plan": "p3", SEALED: "noise"}


@pytest.mark.parametrize("units", [(UNIT,), ()])
def test_what_a_restored_store_lacks_is_put_back_by_the_machine_that_has_it(
    place: Place, units: tuple[str, ...]
) -> None:
    """Found by a simulated world: who restored had no copy, and so the last one was removed."""
    one, two = place.worker("one"), place.worker("two")
    write(one, plan="p")
    one.put(UNIT)
    before = place.backup()
    write(one, exact="counts", **{SEALED: "noise"})
    one.put(UNIT)
    two.fetch((), lambda name: name.endswith("plan"))
    place.put_back(before)
    assert list(two.restore()) == [(UNIT, 0, 0)]
    one.fetch(units, everything)
    assert seen(one) == {"plan": "p", "exact": "counts", SEALED: "noise"}
    assert fetched(place.worker("three")) == seen(one) == fetched(two)
    assert "lacking" not in json.loads(place.backup()[f"index/{UNIT}.json"])


def restored_without_the_bytes(place: Place, **old: str) -> tuple[UnitZone, UnitZone]:
    """A store put back, and restored by who saw the newer index; the other has the newer bytes."""
    one, two = place.worker("one"), place.worker("two")
    write(one, **old)
    one.put(UNIT)
    backup = place.backup()
    fetched(two)
    write(two, exact="new")
    two.put(UNIT)
    with one.working_on(UNIT):
        one.fetch((UNIT,), lambda _: False)
    place.put_back(backup)
    assert list(one.restore()) == [(UNIT, 0, 0)]
    return one, two


@pytest.mark.parametrize("is_asked", [True, False])
def test_newer_bytes_of_a_file_that_the_older_store_has_come_back_from_whoever_has_them(
    place: Place, is_asked: object
) -> None:
    """Found by a hostile reader: who restores saw the newer index, and has not the bytes."""
    one, two = restored_without_the_bytes(place, exact="old", plan="p")
    if is_asked:
        assert list(two.restore()) == [(UNIT, 1, 0)]
        assert list(two.restore()) == []
    assert fetched(two) == fetched(one) == {"exact": "new", "plan": "p"}
    assert "lacking" not in json.loads(place.backup()[f"index/{UNIT}.json"])


def _aside(zone: UnitZone) -> list[str]:
    return [path.read_text() for path in (zone.folder / ".store/aside").rglob("exact")]


@pytest.mark.parametrize("units", [(UNIT,), ()])
def test_what_others_wrote_over_takes_the_last_copy_from_nobody(
    place: Place, units: tuple[str, ...]
) -> None:
    """Where others went on the newer bytes stay beside the unit, and so after a recount."""
    one, two = place.worker("one"), place.worker("two")
    write(one, exact="old", plan="p")
    one.put(UNIT)
    backup = place.backup()
    write(one, exact="new")
    one.put(UNIT)
    place.put_back(backup)
    fetched(two)
    write(two, other="z")
    two.put(UNIT)
    assert list(one.restore()) == [(UNIT, 0, 1)]
    one.fetch(units, everything)
    assert seen(one) == {"exact": "old", "plan": "p", "other": "z"}
    assert _aside(one) == ["new"]


def test_a_recount_since_the_restore_sets_the_lost_bytes_aside(place: Place) -> None:
    one, two = restored_without_the_bytes(place, plan="p")
    fetched(one)
    write(one, exact="recounted")
    one.put(UNIT)
    assert fetched(two) == {"exact": "recounted", "plan": "p"}
    assert _aside(two) == ["new"]


def test_a_store_with_other_sealed_bytes_is_not_restored_over(place: Place) -> None:
    one, two = ahead_of_its_store(place, **{SEALED: "noise"}), place.worker("two")
    fetched(two)
    write(two, **{SEALED: "other noise"})
    two.put(UNIT)
    with pytest.raises(IntegrityError, match="sealed with other bytes"):
        list(one.restore())
    assert seen(one)[SEALED] == "noise"


def test_an_index_that_is_gone_comes_back_from_a_home_that_saw_it(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p", **{SEALED: "noise"})
    worker.put(UNIT)
    place.put_back({})
    assert list(worker.restore()) == [(UNIT, 2, 0)]
    assert fetched(place.worker("two")) == {"plan": "p", SEALED: "noise"}


def test_an_index_of_an_earlier_version_is_read_and_gone_on_with(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    for path in (worker.folder / ".store" / "units" / f"{UNIT}.json",):
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {"steps": []}))
    content = json.loads(place.backup()[f"index/{UNIT}.json"])
    del content["steps"]
    place.put(f"index/{UNIT}.json", json.dumps(content).encode())
    assert fetched(worker) == fetched(place.worker("two")) == {"plan": "p"}
    write(worker, plan="q")
    worker.put(UNIT)
    assert fetched(place.worker("two")) == {"plan": "q"}


def test_an_older_index_of_an_earlier_version_takes_the_last_copy_from_nobody(
    place: Place,
) -> None:
    """It names no steps, so that nothing tells how old it is: what it lacks is set aside."""
    worker = ahead_of_its_store(place, tables="exact")
    index = f"index/{UNIT}.json"
    place.put(index, json.dumps(json.loads(place.backup()[index]) | {"steps": []}).encode())
    state = worker.folder / ".store" / "units" / f"{UNIT}.json"
    state.write_text(json.dumps(json.loads(state.read_bytes()) | {"steps": []}))
    write(worker, scratch="of a step that died")
    assert fetched(worker) == {"plan": "p"}
    aside = [path for path in (worker.folder / ASIDE).rglob("*") if path.is_file()]
    assert [path.read_text() for path in aside] == ["exact"]


@pytest.mark.parametrize("later", [timedelta(hours=23), timedelta(hours=25)])
def test_what_dead_steps_left_goes_by_the_clock_of_the_store(
    tmp_path: Path, later: timedelta
) -> None:
    """By a clock here that is years ahead every object was old that others had put just now."""
    instants = [datetime(2016, 8, 1, tzinfo=UTC)]
    bucket = MemoryBucket("s3://private", lambda *_: nullcontext(), lambda: instants[-1])
    worker = UnitZone(bucket, tmp_path / "zone", 3, is_private=True)
    bucket.create(f"files/{UNIT}/left", b"p")
    write(worker, plan="p")
    worker.put(UNIT)
    instants.append(instants[-1] + later)
    fetched(worker)
    worker.put(UNIT)
    assert (f"files/{UNIT}/left" in bucket.objects) is (later < timedelta(days=1))
    assert not [name for name, kept in bucket.objects.items() if not kept.content], "a probe"


def test_what_is_kept_and_set_aside_in_the_store_takes_nothing_else_there(place: Place) -> None:
    """A recovery looks at no other file here: it may be cut, gone or planted."""
    worker, dead = place.worker("one"), b"noise of a draw that died"
    name = f"sealed-{hashlib.sha256(dead).hexdigest()[:16]}.parquet"
    write(worker, plan="p", package__data="whole", **{SEALED: "s", name: dead.decode()})
    worker.put(UNIT)
    before = place.index()
    assert set_aside(worker.folder / UNIT / name)
    write(worker, package__data="cut", package__planted="x")
    (worker.folder / UNIT / "plan").unlink()
    worker.keep_sealed(UNIT, "0123456789abcdef" * 4)
    after = place.index()
    aside = [file for file in after if file.startswith("set-aside/")]
    assert {*after} == {"plan", "package/data", SEALED, *aside}
    assert [after[file] for file in aside] == [before.pop(name)]
    assert {file: after[file] for file in before} == before
    assert fetched(place.worker("two"))["package/data"] == "whole"


def test_sealed_bytes_that_no_index_names_are_brought_once_and_nothing_else(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine died between the object of a draw and the index that would name it."""
    worker, later = place.worker("one"), place.worker("two")
    write(worker, plan="p", **{f"sealed-{'ab' * 8}.parquet": "named"})
    worker.put(UNIT)
    write(worker, assessment="a", **{SEALED: "noise"})
    with monkeypatch.context() as killed:
        killed.delattr(unit_zone.UnitZone, "_put_index")  # it dies there
        with pytest.raises(AttributeError):
            worker.put(UNIT)
    shutil.rmtree(worker.folder)
    place.put(f"files/no/such/release/{'ab' * 16}-{SEALED}", b"planted")
    for _ in range(2):
        later.fetch((), lambda _: False)
        later.bring_unnamed()
        (aside,) = (later.folder / unit_zone.ASIDE).rglob("*.parquet")
        assert (aside.parents[1], aside.name) == (later.folder / unit_zone.ASIDE / UNIT, SEALED)
        assert aside.read_text() == "noise"
    assert fetched(later) == {"plan": "p", f"sealed-{'ab' * 8}.parquet": "named"}


def test_sealed_bytes_never_go_from_here_nor_from_the_store(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    write(worker, **{SEALED: "of a draw that died before it came to the store"})
    assert fetched(worker) == {"plan": "p"}
    (aside,) = worker.folder.rglob(SEALED)
    assert aside.read_text() == "of a draw that died before it came to the store"
    write(worker, **{SEALED: "noise"})
    worker.put(UNIT)
    (worker.folder / UNIT / SEALED).unlink()
    worker.put(UNIT)
    assert fetched(worker) == {"plan": "p", SEALED: "noise"}


def test_a_store_that_is_away_is_an_error_that_a_repeat_mends(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_client, "_TRIES", 1)
    with pytest.raises(StoreError, match="EndpointConnectionError"):
        fetched(place.worker("one", "http://127.0.0.1:9"))
    assert fetched(place.worker("one")) == {}


def test_who_may_not_is_told_and_no_secret_is(place: Place) -> None:
    zone = place.worker("one", user="page")
    assert fetched(zone) == {}
    write(zone, plan="p")
    with pytest.raises(StoreError, match="403 AccessDenied") as refused:
        zone.put(UNIT)
    assert "secret-of" not in str(refused.value)
    with pytest.raises(StoreError, match="403"):
        zone.require_writable(UNIT)
    place.worker("two").require_writable(UNIT)
    assert place.names() == []


@pytest.mark.parametrize("is_private", [True, False], ids=["private", "under embargo"])
def test_bytes_of_a_step_that_died_go_when_nobody_can_still_name_them(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, is_private: bool
) -> None:
    """But not under embargo, where an index of before does not name sealed bytes."""
    worker = replace(place.worker("one"), is_private=is_private)
    place.put(f"files/{UNIT}/left", b"p")
    fetched(worker)
    worker.put(UNIT)
    assert f"files/{UNIT}/left" in place.names()
    monkeypatch.setattr(unit_zone, "_LASTS_AT_MOST", timedelta(seconds=-1))
    write(worker, plan="p")
    worker.put(UNIT)
    fetched(worker)
    worker.put(UNIT)
    assert (f"files/{UNIT}/left" in place.names()) is not is_private
    assert fetched(place.worker("two")) == {"plan": "p"}


def test_sealed_bytes_that_an_index_of_before_does_not_name_outlive_every_home(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup that is laid over a bucket leaves newer objects there: the last copy."""
    worker = place.worker("one")
    write(worker, plan="p")
    worker.put(UNIT)
    backup = place.backup()
    write(worker, **{SEALED: "noise"})
    worker.put(UNIT)
    for name, content in backup.items():
        place.put(name, content)
    shutil.rmtree(worker.folder)
    monkeypatch.setattr(unit_zone, "_LASTS_AT_MOST", timedelta(seconds=-1))
    fresh = place.worker("fresh")
    fetched(fresh)
    write(fresh, plan="q")
    fresh.put(UNIT)
    assert b"noise" in place.backup().values()


@pytest.mark.parametrize("is_index_lost", [False, True], ids=["older index", "no index"])
def test_what_a_newer_index_names_is_no_leftover_to_a_home_that_never_saw_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, is_index_lost: bool
) -> None:
    """A backup was laid over the private bucket; the home that counted has its books alone."""
    worker, fresh = (replace(place.worker(name), is_private=True) for name in ("one", "fresh"))
    write(worker, plan="p")
    worker.put(UNIT)
    backup = place.backup()
    write(worker, exact="the last copy")
    worker.put(UNIT)
    (worker.folder / UNIT / "exact").unlink()
    for name, content in backup.items():
        place.put(name, content)
    place.put(f"files/{UNIT}/again", b"p")  # by a step that died and was repeated: the control
    if is_index_lost:
        index = f"{place.prefix}/index/{UNIT}.json"
        place.server.client("root").delete_object(Bucket="turnstile-embargoed", Key=index)
    monkeypatch.setattr(unit_zone, "_LASTS_AT_MOST", timedelta(seconds=-1))
    fetched(fresh)
    write(fresh, other="z")
    fresh.put(UNIT)
    assert b"the last copy" in place.backup().values()
    assert (f"files/{UNIT}/again" in place.names()) is is_index_lost
    assert list(worker.restore())
    assert (
        fetched(worker) == fetched(fresh) == {"plan": "p", "exact": "the last copy", "other": "z"}
    )


def test_a_home_that_lost_its_books_loses_no_last_copy_to_an_older_index(place: Place) -> None:
    worker = replace(ahead_of_its_store(place, exact="the last copy"), is_private=True)
    shutil.rmtree(worker.folder / ".store")
    assert fetched(worker) == {"plan": "p"}
    assert _aside(worker) == ["the last copy"]


def test_sealed_bytes_that_went_in_a_step_stay_in_the_store(place: Place) -> None:
    worker = place.worker("one")
    write(worker, **{SEALED: "noise"}, plan="p")
    worker.put(UNIT)
    fetched(worker)
    for name in (SEALED, "plan"):  # the plan is the control
        (worker.folder / UNIT / name).unlink()
    worker.put(UNIT)
    assert fetched(place.worker("two")) == {SEALED: "noise"}


def test_no_object_is_deleted_that_has_the_name_of_sealed_bytes(place: Place) -> None:
    place.put(f"opal/{SEALED}", b"noise")
    place.put("opal/rows", b"rows")
    bucket = place.worker("one", user="root").bucket
    with pytest.raises(IntegrityError, match="never deleted"):
        bucket.delete(f"opal/{SEALED}")
    bucket.delete("opal/rows")
    assert place.names() == [f"opal/{SEALED}"]


def test_a_unit_in_work_on_this_machine_is_left_alone(place: Place) -> None:
    worker, other = place.worker("one"), "opal/2016-W31/r0"
    write(place.worker("two"), plan="p")
    place.worker("two").put(UNIT)
    with worker.working_on(UNIT):
        write(worker, half="made")
        with worker.working_on(other):
            worker.fetch((other,), everything)
        assert seen(worker) == {"half": "made"}
    with worker.working_on(other):
        worker.fetch((other,), everything)
    assert seen(worker) == {"plan": "p"}


def test_files_of_the_zone_itself_are_a_unit(place: Place) -> None:
    one, two = place.worker("one"), place.worker("two")
    one.folder.mkdir()
    (one.folder / "bounding.key").write_text("k")
    one.put(ZONE)
    write(one, plan="p")
    with two.working_on(ZONE):
        two.fetch((ZONE,), lambda path: path == "bounding.key")
    assert (two.folder / "bounding.key").read_text() == "k"
    assert seen(two) == {}
    assert one.units() == (UNIT, ZONE)


def test_a_lost_folder_comes_back(place: Place) -> None:
    worker = place.worker("one")
    write(worker, plan="p", tables__a="1")
    worker.put(UNIT)
    before = seen(worker)
    shutil.rmtree(worker.folder)
    assert fetched(place.worker("one")) == before


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("https://bucket", "write s3://bucket"),
        ("s3://", "write s3://bucket"),
        ("s3://id:secret@bucket/x", "holds a name or password"),
        ("s3://bucket?region=x", "'region' is no option"),
        ("s3://bucket?encryption=rot13", "encryption is one of"),
        ("s3://bucket?kms_key=1", "kms_key needs"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as refused:
        store_address(ZoneStore("private", address, None))
    assert "TURNSTILE_PRIVATE_STORE" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("encryption", ["AES256", "aws:kms"])
def test_encryption_is_asked_for_with_every_object(place: Place, encryption: str) -> None:
    zone = place.worker("one")
    address = f"s3://turnstile-embargoed/{place.prefix}?encryption={encryption}&endpoint="
    store = ZoneStore(
        "embargoed", address + place.server.endpoint, place.server.credentials / "worker"
    )
    asking = replace(zone, bucket=Bucket(store_address(store), credentials_of(store)))
    write(asking, plan="p")
    asking.put(UNIT)
    assert len(place.names()) == 2
    root = place.server.client("root")
    for name in place.names():
        head = root.head_object(Bucket="turnstile-embargoed", Key=f"{place.prefix}/{name}")
        assert head["ServerSideEncryption"] == encryption


@pytest.mark.parametrize("content", ["", "[other]\na=b", "[default]\naws_access_key_id=1", "\x00["])
def test_credentials_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "credentials"
    with pytest.raises(InputError, match="credentials cannot be read"):
        credentials_of(ZoneStore("private", "s3://a", file))
    file.write_text(content)
    with pytest.raises(InputError, match=r"needs a section \[default\]"):
        credentials_of(ZoneStore("private", "s3://a", file))


def test_a_record_of_what_was_here_that_a_disk_damaged_is_said_to_be(
    server: ObjectStore, tmp_path: Path
) -> None:
    """Without it nobody knows whether the store is older than it was: a person looks."""
    worker = Place(server, tmp_path / "damaged").worker("a")
    with worker.working_on(UNIT):
        worker.fetch((UNIT,), lambda _: True)
        (worker.folder / UNIT).mkdir(parents=True)
        (worker.folder / UNIT / "plan.json").write_text("{}")
        worker.put(UNIT)
    state = worker.folder / f".store/units/{UNIT}.json"
    state.write_bytes(state.read_bytes()[:20])
    with pytest.raises(IntegrityError, match=r"r0\.json is damaged.*move the file away"):
        worker.fetch((), lambda _: True)
    state.unlink()
    worker.fetch((), lambda _: True)


def ageing(zone: Path) -> tuple[UnitZone, MemoryBucket, list[datetime]]:
    """A private zone in a store whose clock is the last of some instants."""
    instants = [datetime(2016, 8, 1, tzinfo=UTC)]
    bucket = MemoryBucket("s3://private", lambda *_: nullcontext(), lambda: instants[-1])
    return UnitZone(bucket, zone, 3, is_private=True), bucket, instants


def without_rows(path: str) -> bool:
    return "rows" not in path


@pytest.mark.parametrize("how", ["removed", "copied", "cut short"])
def test_a_step_that_wants_no_rows_takes_none_from_the_store(place: Place, how: str) -> None:
    """Rows that a worker had and has no more, or has with other times, were removed by no step."""
    worker = replace(place.worker("one"), is_private=True)
    write(worker, plan="p", rows__monday="taps")
    worker.put(UNIT)
    rows = worker.folder / UNIT / "rows/monday"
    if how == "removed":
        shutil.rmtree(worker.folder / "opal")
    elif how == "copied":
        rows.touch()
    else:
        rows.write_text("")
    with worker.working_on(UNIT):
        worker.fetch((UNIT,), without_rows)
        write(worker, plan="q")
        worker.put(UNIT)
    assert rows.exists() is (how == "copied")
    assert fetched(place.worker("two")) == {"plan": "q", "rows/monday": "taps"}
    assert fetched(worker) == {"plan": "q", "rows/monday": "taps"}


def test_what_a_step_removed_goes_from_the_store_and_what_retention_did_wherever_it_lay(
    place: Place,
) -> None:
    """The control: of what is not here when a step begins, retention's own list alone goes."""
    worker, other = place.worker("one"), place.worker("two")
    write(worker, plan="p", rows__monday="taps", rows__tuesday="taps", counts="c")
    worker.put(UNIT)
    with other.working_on(UNIT):
        other.fetch((UNIT,), without_rows)
        (other.folder / UNIT / "plan").unlink()
        other.put(UNIT, ["rows/monday", "rows/of no store"])
    assert fetched(worker) == {"rows/tuesday": "taps", "counts": "c"}
    with other.working_on(UNIT):
        other.fetch((UNIT,), without_rows)
        other.put(UNIT, ["rows"])  # a folder, of which nothing is here
    assert fetched(worker) == {"counts": "c"}


def test_what_killed_steps_spilled_goes_with_rows_that_went_elsewhere(tmp_path: Path) -> None:
    """It outlived the rows, and every retention: no store has it, and no list of files."""
    worker = ageing(tmp_path / "one")[0]
    other = replace(worker, folder=tmp_path / "two")
    write(other, snapshots__ab__rows="taps", counts="c")
    other.put(UNIT)
    fetched(worker)
    write(worker, **{"snapshots__.count-x__rows": "taps", "snapshots__.count.lock": ""})
    with other.working_on(UNIT):
        write(other, counts="d")
        other.put(UNIT)
    spilled = worker.folder / UNIT / "snapshots/.count-x/rows"
    fetched(worker)
    assert spilled.exists(), "rows are there: the next count takes it"
    shutil.rmtree(other.folder / UNIT / "snapshots")
    other.put(UNIT)
    with worker.working_on(UNIT):
        replace(worker).fetch((), everything)
        assert spilled.exists(), "a step works on it"
    worker.fetch((), everything)
    assert not spilled.parent.exists()
    assert seen(worker) == {"counts": "d"}


def test_a_copied_home_keeps_the_last_copy_of_what_its_store_lost(place: Place) -> None:
    worker = replace(place.worker("one"), is_private=True)
    write(worker, plan="p", counts="the last copy")
    worker.put(UNIT)
    (lost,) = (name for name, content in place.backup().items() if content == b"the last copy")
    place.server.client("root").delete_object(
        Bucket="turnstile-embargoed", Key=f"{place.prefix}/{lost}"
    )
    (worker.folder / UNIT / "counts").touch()
    assert fetched(worker) == {"plan": "p", "counts": "the last copy"}
    assert list(worker.restore()) == [(UNIT, 1, 0)]
    assert fetched(place.worker("two")) == {"plan": "p", "counts": "the last copy"}


def test_what_no_index_names_goes_after_the_days_that_rows_may_stay(tmp_path: Path) -> None:
    """A first step that died left rows in a unit of which no index is, and nobody works on it."""
    worker, bucket, instants = ageing(tmp_path / "zone")
    write(worker, plan="p")
    worker.put(UNIT)
    bucket.create("files/opal/2016-W31/r0/left", b"rows")
    for days, stays in ((34, True), (36, False)):
        instants.append(instants[0] + timedelta(days=days))
        worker.delete_unnamed(timedelta(days=35), lambda _: True)
        assert ("files/opal/2016-W31/r0/left" in bucket.objects) is stays
    assert len(bucket.objects) == 2  # an index and its file, and no probe
    assert fetched(UnitZone(bucket, tmp_path / "other", 3, is_private=True)) == {"plan": "p"}


@pytest.mark.parametrize("is_index_lost", [False, True], ids=["older index", "no index"])
def test_counts_that_no_index_names_stay_when_rows_go(
    tmp_path: Path, *, is_index_lost: bool
) -> None:
    """A home that never saw their index cannot tell; another one restores it."""
    worker, bucket, instants = ageing(tmp_path / "zone")
    write(worker, plan="p")
    worker.put(UNIT)
    older = bucket.objects[f"index/{UNIT}.json"].content
    write(worker, counts="c", snapshots__day="taps")
    worker.put(UNIT)
    for name in ("counts", "snapshots/day"):  # the store has the last copies
        (worker.folder / UNIT / name).unlink()
    tag = bucket.objects[f"index/{UNIT}.json"].tag
    if is_index_lost:
        bucket.delete(f"index/{UNIT}.json")
    else:
        bucket.replace(f"index/{UNIT}.json", older, tag)
    instants.append(instants[0] + timedelta(days=36))
    fresh, asked = UnitZone(bucket, tmp_path / "fresh", 3, is_private=True), list[Unnamed]()
    fresh.delete_unnamed(timedelta(days=35), lambda unnamed: bool(asked.append(unnamed)))
    assert {(unnamed.unit, unnamed.is_rows) for unnamed in asked} == {(UNIT, True), (UNIT, False)}
    fresh.delete_unnamed(timedelta(days=35), lambda unnamed: unnamed.is_rows)
    assert list(worker.restore()) == [(UNIT, 2 if is_index_lost else 1, 0)]
    assert fetched(fresh) == {"plan": "p", "counts": "c"}


def test_whoever_looks_at_everything_is_told_what_is_in_work_here(place: Place) -> None:
    worker = place.worker("one")
    write(place.worker("two"), plan="p")
    place.worker("two").put(UNIT)
    with ThreadPoolExecutor(1) as other, worker.working_on(UNIT):
        assert other.submit(worker.fetch, (), everything).result() == {UNIT}
    assert worker.fetch((), everything) == frozenset()
