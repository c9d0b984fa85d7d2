"""CKAN against a server that speaks its API: time-outs, 409s, failures, and one that lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from ckan_server import CkanServer
from small_package import KEY, write_package

from turnstile.errors import IntegrityError
from turnstile_stores.portals import ckan
from turnstile_stores.portals.ckan import Ckan
from turnstile_stores.portals.store import PortalError


@pytest.fixture
def server() -> Iterator[CkanServer]:
    with CkanServer().serving() as served:
        yield served


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / KEY)


def _portal(server: CkanServer, **options: str) -> Ckan:
    return Ckan(
        server.address, organization="transport", timeout_s=0.5, wait=lambda _: None, **options
    )


def _is_whole(server: CkanServer, package: Path) -> bool:
    files = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    shown = {
        resource["name"]
        for resource in server.resources.values()
        if server.contents[resource["id"]] == (package / resource["name"]).read_bytes()
    }
    (dataset,) = server.datasets.values()
    return shown == files and not dataset["private"]


def test_a_release_is_a_dataset_and_its_files_are_resources(
    server: CkanServer, package: Path
) -> None:
    _portal(server).send_release(package, KEY)
    assert _is_whole(server, package)
    assert list(server.datasets) == ["opal-2016-w30-r0"]
    server.calls.clear()
    _portal(server).send_release(package, KEY)
    assert not {call for call in server.calls if not call.endswith("_show")}
    _portal(server).verify_release(package, KEY)


@pytest.mark.parametrize("fault", ["late", "500", "409"])
@pytest.mark.parametrize("action", ["package_create", "resource_create", "package_patch"])
def test_time_outs_failures_and_conflicts_end_in_one_whole_dataset(
    server: CkanServer, package: Path, action: str, fault: str
) -> None:
    if (action, fault) == ("package_patch", "409"):
        pytest.skip("a patch makes nothing, so nothing conflicts")
    server.faults[action] = [fault]
    _portal(server).send_release(package, KEY)
    assert _is_whole(server, package)
    assert len(server.datasets) == 1


def test_a_server_that_stays_away_shows_nothing_and_is_taken_up_again(
    server: CkanServer, package: Path
) -> None:
    server.faults["resource_create"] = ["none", "500", "500", "500"]
    with pytest.raises(PortalError, match="run the same command again"):
        _portal(server).send_release(package, KEY)
    (dataset,) = server.datasets.values()
    assert dataset["private"]
    assert len(server.resources) == 1
    _portal(server).send_release(package, KEY)
    assert _is_whole(server, package)


def test_a_dataset_of_another_release_is_left_alone(server: CkanServer, package: Path) -> None:
    _portal(server).send_release(package, KEY)
    before = dict(server.contents)
    other = write_package(package.parent / "other", text="other numbers")
    with pytest.raises(IntegrityError, match="another release"):
        _portal(server).send_release(other, KEY)
    assert server.contents == before


def test_a_catalogue_that_keeps_other_bytes_is_found_out(server: CkanServer, package: Path) -> None:
    server.faults["resource_create"] = ["other bytes"]
    with pytest.raises(IntegrityError, match="other bytes"):
        _portal(server).send_release(package, KEY)
    (dataset,) = server.datasets.values()
    assert dataset["private"]


def test_large_files_are_links_that_have_to_serve_the_bytes(
    server: CkanServer, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ckan, "LINK_ABOVE_BYTES", 700)
    large = package / "tables/on_location.csv"
    portal = _portal(server, files=f"{server.address}/download")
    with pytest.raises(PortalError, match="404"):
        portal.send_release(package, KEY)
    server.contents[large.name] = large.read_bytes()
    portal.send_release(package, KEY)
    links = [resource["url"] for resource in server.resources.values() if KEY in resource["url"]]
    assert links == [f"{server.address}/download/{KEY}/{large.relative_to(package).as_posix()}"]
    assert httpx.get(links[0]).content == large.read_bytes()


def test_a_withdrawn_release_says_so_once(server: CkanServer, package: Path) -> None:
    _portal(server).send_release(package, KEY)
    for _ in range(2):
        _portal(server).withdraw(KEY, "counted twice")
    (dataset,) = server.datasets.values()
    assert dataset["title"].count("[withdrawn]") == 1
    assert dataset["notes"].startswith("**Withdrawn: counted twice**")
