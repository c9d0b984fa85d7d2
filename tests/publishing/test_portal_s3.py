"""S3 against a real endpoint: races, a cut connection, another object in place, a locked bucket."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from object_store import CutProxy
from small_package import KEY, write_package

from turnstile.cli import main
from turnstile.errors import IntegrityError, TurnstileError
from turnstile_stores import bucket as bucket_client
from turnstile_stores.portals.s3 import S3Store
from turnstile_stores.portals.sending import send_release, verify_release
from turnstile_stores.portals.store import PortalError

Client = Any
ITMS = "itms/2016-W30/r0"  # fewer files than opal's


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Client:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of-tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return boto3.client("s3", endpoint_url=endpoint)


@pytest.fixture
def bucket(client: Client, request: pytest.FixtureRequest) -> str:
    """A bucket of its own for each test, which keeps versions, so an overwrite would show."""
    name = f"bucket-{abs(hash(request.node.name))}"
    client.create_bucket(Bucket=name)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return name


def _versions(client: Client, bucket: str) -> list[str]:
    listed = client.list_object_versions(Bucket=bucket)
    assert not listed.get("DeleteMarkers")
    return sorted(version["Key"] for version in listed.get("Versions", ()))


def _files(package: Path) -> list[str]:
    return sorted(
        f"{KEY}/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file()
    )


def _send(endpoint: str, bucket: str, package: Path) -> Exception | None:
    try:
        send_release(S3Store(bucket, "", endpoint), "s3://portal", package, KEY)
    except TurnstileError as error:
        return error
    return None


def test_two_publishers_that_race_make_one_publication(
    client: Client, endpoint: str, bucket: str, tmp_path: Path
) -> None:
    package = write_package(tmp_path / "one")
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: _send(endpoint, bucket, package), range(4)))
    assert outcomes == [None] * 4
    assert _versions(client, bucket) == _files(package)


def test_of_two_publishers_with_different_bytes_one_is_told(
    client: Client, endpoint: str, bucket: str, tmp_path: Path
) -> None:
    packages = [write_package(tmp_path / text, text=text) for text in ("one", "other")]
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda package: _send(endpoint, bucket, package), packages))
    (refused,) = [outcome for outcome in outcomes if outcome is not None]
    assert isinstance(refused, IntegrityError)
    assert "find out who put them there" in str(refused)
    winner = packages[outcomes.index(None)]
    assert _versions(client, bucket) == _files(winner)
    verify_release(S3Store(bucket, "", endpoint), "s3://portal", winner, KEY)


def test_a_connection_cut_in_the_middle_leaves_nothing_partial_and_is_taken_up(
    client: Client,
    endpoint: str,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bucket_client, "_TRIES", 1)
    package = write_package(tmp_path / "one")
    states = set()
    for bytes_up in range(1000, 10000, 1500):
        problem = _send(CutProxy(endpoint, bytes_up).address, bucket, package)
        there = _versions(client, bucket)
        states.add(len(there))
        if problem is not None:
            assert isinstance(problem, PortalError)
            assert "run the same command again" in str(problem)
        for key in there:  # moto keeps what was cut off, S3 does not
            content = client.get_object(Bucket=bucket, Key=key)["Body"].read()
            assert (package / key.removeprefix(f"{KEY}/")).read_bytes().startswith(content)
    assert len(states) > 2  # it was cut at several places
    assert _send(endpoint, bucket, package) is None
    assert sorted(set(_versions(client, bucket))) == _files(package)
    verify_release(S3Store(bucket, "", endpoint), "s3://portal", package, KEY)


def test_the_beginning_of_a_file_is_completed(
    client: Client, endpoint: str, bucket: str, tmp_path: Path
) -> None:
    package = write_package(tmp_path / "one")
    client.put_object(Bucket=bucket, Key=f"{KEY}/manifest.json", Body=b"{")
    assert _send(endpoint, bucket, package) is None
    verify_release(S3Store(bucket, "", endpoint), "s3://portal", package, KEY)


def test_another_object_in_place_is_never_overwritten(
    client: Client, endpoint: str, bucket: str, tmp_path: Path
) -> None:
    package = write_package(tmp_path / "one")
    place = f"{KEY}/tables/on_location.csv"
    client.put_object(Bucket=bucket, Key=place, Body=b"planted")
    assert "on_location.csv holds other bytes" in str(_send(endpoint, bucket, package))
    assert client.get_object(Bucket=bucket, Key=place)["Body"].read() == b"planted"
    assert f"{KEY}/manifest.json" not in _versions(client, bucket)


class Liar(S3Store):
    """Takes everything and keeps nothing."""

    def create(self, path: str, content: bytes) -> None:
        assert path
        assert content


def test_a_store_that_takes_and_keeps_nothing_is_found_out(
    endpoint: str, bucket: str, client: Client, tmp_path: Path
) -> None:
    package = write_package(tmp_path / "one")
    with pytest.raises(PortalError, match="is not there"):
        send_release(Liar(bucket, "", endpoint), "s3://portal", package, KEY)
    assert _versions(client, bucket) == []


def test_a_locked_bucket_holds_every_file(client: Client, endpoint: str, tmp_path: Path) -> None:
    client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 30}}
    locked = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    client.put_object_lock_configuration(Bucket="locked", ObjectLockConfiguration=locked)
    package = write_package(tmp_path / "one")
    for _ in range(2):
        assert _send(endpoint, "locked", package) is None
    assert _versions(client, "locked") == _files(package)
    for key in _files(package):
        head = client.head_object(Bucket="locked", Key=key)
        assert head["ObjectLockMode"] == "COMPLIANCE"
        with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
            client.delete_object(Bucket="locked", Key=key, VersionId=head["VersionId"])


def test_the_command_sends_verifies_and_tells_the_ledger_once(
    copied_home: Path,
    client: Client,
    endpoint: str,
    bucket: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    portal = f"s3://{bucket}/open?endpoint={endpoint}"
    send = ["portal", "send", "itms", "--to", portal]
    assert main(["portal", "list", "itms"]) == 0
    assert ITMS not in capsys.readouterr().out
    assert main(send) == 0
    assert main(["portal", "list", "itms"]) == 0
    assert f"{ITMS}\ts3://{bucket}/open\n" in capsys.readouterr().out
    there = _versions(client, bucket)
    assert len(there) == len(set(there))
    assert main(send) == 0
    assert _versions(client, bucket) == there  # not one byte was written again
    assert main(["portal", "verify", "itms", "--to", portal]) == 0
    entries = _entries(capsys)
    assert entries.count("delivered") == 1
    monkeypatch.setattr(bucket_client, "_TRIES", 1)
    client.put_object(Bucket=bucket, Key=f"open/{ITMS}/README.md", Body=b"planted")
    assert main(["portal", "verify", "itms", "--to", portal]) == 4
    shutil.rmtree(copied_home / "public/itms/series")
    assert main(["ledger", "withdraw", ITMS, "--reason", "twice"]) == 0
    assert main(send) == 0
    index = client.get_object(Bucket=bucket, Key="open/itms/series/index.json")["Body"].read()
    assert json.loads(index)["periods"][0]["state"] == "withdrawn"


def _entries(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["ledger", "entries", "--json"]) == 0
    return [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()]
