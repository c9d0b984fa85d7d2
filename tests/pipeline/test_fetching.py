"""Files that are fetched: new ones, whole or not at all, and never what retention has deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from small_deployment import Deployment

from turnstile.durable_files import DRAFT
from turnstile.errors import InputError, StoreError
from turnstile.pipeline.landing.fetching import Address, Elsewhere, address_of, fetch_new
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings

WEEK, FOLDER = "2016-W30", "/out/2016-W30"
AT = 1_469_413_800


@dataclass
class Shelf:
    """A server: folder to name to bytes and time; what is written to while it is read."""

    folders: dict[str, dict[str, tuple[bytes, int]]] = field(default_factory=dict)
    growing: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)

    def files(self, folder: str) -> Iterator[Elsewhere]:
        for name, (content, at) in self.folders.get(folder, {}).items():
            yield Elsewhere(name, len(content), at)

    def copy(self, folder: str, name: str, to: Path) -> None:
        self.order.append(name)
        assert to.name.startswith("."), "on its way"
        content = self.folders[folder][name][0]
        to.write_bytes(content + b"more" if name in self.growing else content)


@pytest.fixture
def fetched(deployment: Deployment) -> Callable[..., tuple[str, ...]]:
    def run(shelf: Shelf, **source: Any) -> tuple[str, ...]:
        programme = load_programme("opal", deployment.include)
        programme = replace(programme, source=replace(programme.source, **source))
        address = Address("sftp", "authority", "/out/{week}")
        landing = deployment.home / "landing"
        return fetch_new(
            programme, parse_period(WEEK), landing, deployment.ledger, (address, shelf)
        )

    return run


def shelf(**files: bytes) -> Shelf:
    named = {name.replace("_", "."): (content, AT) for name, content in files.items()}
    return Shelf({FOLDER: named})


def test_what_is_new_comes_once_and_what_is_changed_again(
    fetched: Callable[..., tuple[str, ...]], deployment: Deployment
) -> None:
    server = shelf(a_csv=b"1", b_csv=b"22")
    assert fetched(server) == (f"opal/{WEEK}/a.csv", f"opal/{WEEK}/b.csv")
    assert fetched(server) == ()
    server.folders[FOLDER]["a.csv"] = (b"1", AT + 60)
    server.folders[FOLDER]["c.csv"] = (b"3", AT)
    assert fetched(server) == (f"opal/{WEEK}/a.csv", f"opal/{WEEK}/c.csv")
    landed = {path.name: path.read_bytes() for path in deployment.landing("opal").iterdir()}
    assert landed == {"a.csv": b"1", "b.csv": b"22", "c.csv": b"3"}


def test_what_retention_has_deleted_is_never_fetched_again(
    fetched: Callable[..., tuple[str, ...]], deployment: Deployment
) -> None:
    server = shelf(a_csv=b"1")
    ledger = deployment.ledger
    ledger.record_deletion("opal", WEEK, "rows", 90)  # of rows: the files stay
    ledger.record_deletion("opal", "2016-W29", "files", 90)
    ledger.record_deletion("itms", WEEK, "files", 90)
    assert fetched(server) == (f"opal/{WEEK}/a.csv",)
    (deployment.landing("opal") / "a.csv").unlink()
    ledger.record_deletion("opal", WEEK, "files", 90)
    assert fetched(server) == ()
    assert not (deployment.landing("opal") / "a.csv").exists()


def test_what_is_written_to_is_not_there_until_it_is_whole(
    fetched: Callable[..., tuple[str, ...]], deployment: Deployment
) -> None:
    server = shelf(a_csv=b"1")
    server.growing.add("a.csv")
    with pytest.raises(StoreError, match="written to while it is fetched"):
        fetched(server)
    assert list(deployment.landing("opal").iterdir()) == []
    server.growing.clear()
    assert fetched(server) == (f"opal/{WEEK}/a.csv",)


def test_two_fetches_at_once_have_a_draft_each(
    fetched: Callable[..., tuple[str, ...]], deployment: Deployment
) -> None:
    class Meeting(Shelf):
        def copy(self, folder: str, name: str, to: Path) -> None:
            super().copy(folder, name, to)
            assert re.fullmatch(DRAFT, to.name)
            if len(self.order) == 1:
                assert fetched(self) == (f"opal/{WEEK}/a.csv",), "another one, from end to end"
                assert to.read_bytes() == b"1", "what it wrote is its own"

    assert fetched(Meeting({FOLDER: {"a.csv": (b"1", AT)}})) == (f"opal/{WEEK}/a.csv",)
    assert [path.name for path in deployment.landing("opal").iterdir()] == ["a.csv"]


def test_the_marker_of_a_week_comes_last_and_other_names_stay(
    fetched: Callable[..., tuple[str, ...]], deployment: Deployment
) -> None:
    names = ["../../e.csv", "x/y.csv", ".hidden", "notes.doc", "..", "2016-W30.done", "z.csv"]
    server = Shelf({FOLDER: dict.fromkeys(names, (b"1", AT))})
    got = fetched(server, landing="opal/{week}/*.csv", marker="opal/{week}.done")
    assert got == (f"opal/{WEEK}/z.csv", f"opal/{WEEK}.done")
    assert server.order == ["z.csv", "2016-W30.done"]
    everywhere = {path.name for path in deployment.home.rglob("*") if path.is_file()}
    assert not everywhere & {"e.csv", "y.csv", ".hidden", "notes.doc"}


def test_a_folder_that_is_not_there_yet_has_nothing(
    fetched: Callable[..., tuple[str, ...]],
) -> None:
    assert fetched(Shelf()) == ()


def place(given: str, monkeypatch: pytest.MonkeyPatch) -> Address | None:
    monkeypatch.setenv("TURNSTILE_LANDING_FROM", given)
    return address_of("opal", Settings.from_environment())


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("itms=x opal=sftp://tfnsw/out/{week}", Address("sftp", "tfnsw", "/out/{week}")),
        ("opal=s3://aws/bucket/in/{week}/", Address("s3", "aws", "bucket/in/{week}")),
        ("itms=sftp://tfnsw/out/{week}", None),
        ("", None),
    ],
)
def test_addresses_name_a_connection_and_a_folder_of_the_week(
    monkeypatch: pytest.MonkeyPatch, given: str, address: Address | None
) -> None:
    assert place(given, monkeypatch) == address


@pytest.mark.parametrize(
    ("given", "says"),
    [
        *(
            (f"opal={address}", "is no address; write sftp")
            for address in ("/out/{week}", "sftp://tfnsw", "sftp://tfnsw/out", "s3:///b")
        ),
        ("opal", "holds what is no pair"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, given: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        place(given, monkeypatch)


def test_a_landing_zone_that_is_a_store_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("LANDING", "EMBARGOED", "PUBLIC"):
        monkeypatch.setenv(f"TURNSTILE_{zone}_STORE", "s3://bucket/x")
    assert place("", monkeypatch) is None
    with pytest.raises(InputError, match="the landing zone is a store"):
        place("opal=sftp://c/{week}", monkeypatch)
