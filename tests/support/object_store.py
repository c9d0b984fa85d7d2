"""An S3 server whose users may do what their policies say, and nothing else: moto, enforcing IAM.

    python tests/support/object_store.py HOST PORT ACCOUNTS.json

The file names buckets, and users with id, secret and policy: those of `docker/store-policies`.
"""

from __future__ import annotations

import io
import json
import logging
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

ZONES = ("landing", "private", "embargoed", "public")
POLICIES = Path(__file__).resolve().parents[2] / "docker/store-policies"
_BACK_DOOR = "-behind"
_WRITING = threading.Lock()
_IN_PART = {"HTTP_RANGE", "HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE"}
_LIST, _PAGE = {"list-type", "prefix", "encoding-type"}, 1000
USERS = tuple(sorted(path.stem for path in POLICIES.glob("*.json")))


def bucket_of(zone: str) -> str:
    return f"turnstile-{zone}"


def policy_of(user: str) -> dict[str, Any]:
    """The policy that the project ships; root may do everything."""
    if user == "root":
        statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        return {"Version": "2012-10-17", "Statement": [statement]}
    policy: dict[str, Any] = json.loads((POLICIES / f"{user}.json").read_text())
    return policy


def may(user: str, zone: str) -> set[str]:
    """What a policy lets a user do with a zone."""
    return {
        action
        for statement in policy_of(user)["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
        if resource.removesuffix("/*") == f"arn:aws:s3:::{bucket_of(zone)}"
    }


def objects_of(client: Any, zone: str) -> list[str]:
    """Every key of a zone's bucket."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket_of(zone))
    return [stored_object["Key"] for page in pages for stored_object in page.get("Contents", ())]


def backup_of(client: Any, zone: str) -> dict[str, bytes]:
    """Every object of a zone's bucket."""
    bucket = bucket_of(zone)
    return {
        name: client.get_object(Bucket=bucket, Key=name)["Body"].read()
        for name in objects_of(client, zone)
    }


def put_back(client: Any, zone: str, backup: Mapping[str, bytes]) -> None:
    """Make a bucket what it was."""
    bucket = bucket_of(zone)
    for name in objects_of(client, zone):
        client.delete_object(Bucket=bucket, Key=name)
    for name, content in backup.items():
        client.put_object(Bucket=bucket, Key=name, Body=content)


def serve(host: str, port: int, accounts: Mapping[str, Any]) -> None:
    """Serve until the process ends."""
    from moto import settings
    from moto.core import DEFAULT_ACCOUNT_ID, serialize
    from moto.iam.models import iam_backends
    from moto.s3.models import s3_backends
    from moto.server import create_backend_app
    from werkzeug.serving import run_simple

    # Of the time that a list takes, a third is the reading of when each object was put.
    parsed = lru_cache(maxsize=2**16)(serialize.parse_to_aware_datetime)  # type: ignore[attr-defined]
    serialize.parse_to_aware_datetime = parsed  # type: ignore[attr-defined]
    iam, s3 = iam_backends[DEFAULT_ACCOUNT_ID]["aws"], s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for bucket in accounts["buckets"]:
        s3.create_bucket(bucket, "us-east-1")
    for name, user in accounts["users"].items():
        iam.create_user("us-east-1", name)
        iam.put_user_policy(name, "zones", json.dumps(user["policy"]))
        key = iam.create_access_key(name)
        key.access_key_id, key.secret_access_key = user["id"], user["secret"]
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    run_simple(host, port, _behind(create_backend_app("s3"), s3), threaded=True)


def _behind(app: Callable[..., Any], s3: Any) -> Callable[..., Any]:
    """What serves; and by its back door all objects of a prefix come, or are copied, at once."""
    read = _Read(app, s3)

    def answer(environ: Mapping[str, Any], start: Callable[..., Any]) -> Any:
        _, door, *words = environ["PATH_INFO"].split("/")
        if door != _BACK_DOOR:
            if environ["REQUEST_METHOD"] != "PUT":
                return read(environ, start)
            # What is put on a condition is looked at and put in two steps by this server alone. A
            # body that never comes keeps nobody else waiting.
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            with _WRITING:
                return app({**environ, "wsgi.input": io.BytesIO(body)}, start)
        bucket, prefix, *targets = words
        objects = s3.buckets[bucket].keys
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for key in [key for key in objects if key.startswith(f"{prefix}/")]:
                name, content = key.removeprefix(f"{prefix}/"), objects[key].value
                archive.writestr(name, content)
                for target in targets:
                    s3.put_object(bucket, f"{target}/{name}", content)
        start("200 OK", [("Content-Length", str(packed.tell()))])
        return [packed.getvalue()]

    return answer


class _Read:
    """Answers at once whom moto gave an object, or a list, of this bucket: policies are of buckets.

    It takes six times as long to say yes again. Who was never given one, parts, pages and whatever
    else is asked for are for moto to judge.
    """

    def __init__(self, app: Callable[..., Any], s3: Any) -> None:
        self._app, self._s3 = app, s3
        self._given: set[tuple[str, str, bool]] = set()

    def __call__(self, environ: Mapping[str, Any], start: Callable[..., Any]) -> Any:
        _, bucket, key = f"{environ['PATH_INFO']}/".split("/", 2)
        key, asked = key.removesuffix("/"), parse_qs(environ.get("QUERY_STRING", ""))
        is_plain = asked.keys() == (set() if key else _LIST)
        is_plain &= environ["REQUEST_METHOD"] == "GET" and _IN_PART.isdisjoint(environ)
        user = environ.get("HTTP_AUTHORIZATION", "").partition("/")[0]
        given = (user, bucket, bool(key))
        if is_plain and given in self._given:
            objects = self._s3.buckets[bucket].keys
            found = _whole(objects, key) if key else _list(objects, bucket, asked["prefix"][0])
            if found is not None:
                headers, content = found
                start("200 OK", [*headers.items()])
                return [content]

        def noted(status: str, *more: Any) -> Any:
            if is_plain and status.startswith("200"):
                self._given.add(given)
            return start(status, *more)

        return self._app(environ, noted)


def _whole(objects: Mapping[str, Any], key: str) -> tuple[dict[str, str], bytes] | None:
    """What moto answers with a whole object."""
    if (stored := objects.get(key)) is None:
        return None
    algorithm = stored.checksum_algorithm
    sums = {f"x-amz-checksum-{algorithm}": stored.checksum_value} if algorithm else {}
    return {**stored.response_dict, **sums, **stored.metadata}, stored.value


def _list(
    objects: Mapping[str, Any], bucket: str, prefix: str
) -> tuple[dict[str, str], bytes] | None:
    """What moto answers with a list of one page."""
    found = sorted(key for key in [*objects] if key.startswith(prefix))
    if len(found) > _PAGE:
        return None
    entries = (
        f"<Contents><Key>{quote(key)}</Key><LastModified>{stored.last_modified_ISO8601}"
        f"</LastModified><ETag>{stored.etag}</ETag><Size>{stored.size}</Size></Contents>"
        for key in found
        if (stored := objects.get(key)) is not None
    )
    content = (
        f"<ListBucketResult><Name>{bucket}</Name><Prefix>{quote(prefix)}</Prefix>"
        f"<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>{''.join(entries)}"
        "</ListBucketResult>"
    ).encode()
    return {"Content-Type": "application/xml", "Content-Length": str(len(content))}, content


@dataclass(frozen=True)
class ObjectStore:
    """A running server with a bucket for each zone, and files of credentials for its users."""

    endpoint: str
    credentials: Path

    def environment(self, user: str, prefix: str = "city") -> dict[str, str]:
        """The environment of a process of this user, as far as it concerns stores."""
        variables = {}
        for zone in (zone for zone in ZONES if user == "root" or may(user, zone)):
            name = f"TURNSTILE_{zone.upper()}_STORE"
            variables[name] = f"s3://{bucket_of(zone)}/{prefix}?endpoint={self.endpoint}"
            variables[f"{name}_CREDENTIALS"] = str(self.credentials / user)
        return variables

    def behind(self, zone: str, *prefixes: str) -> dict[str, bytes]:
        """All objects below a prefix; they are copied below the others."""
        with closing(HTTPConnection(urlsplit(self.endpoint).netloc)) as connection:
            connection.request("GET", "/".join(("", _BACK_DOOR, bucket_of(zone), *prefixes)))
            packed = io.BytesIO(connection.getresponse().read())
        with zipfile.ZipFile(packed) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    @lru_cache(maxsize=8)  # noqa: B019 - as many as users; making one takes long
    def client(self, user: str) -> Any:
        import boto3

        words = (self.credentials / user).read_text().split()
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=words[3],
            aws_secret_access_key=words[6],
        )


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Serve in a process of its own while the block runs."""
    from ports import free_port

    port = free_port(0)
    users = {
        name: {"id": f"AKIA{name}", "secret": f"secret-of-{name}", "policy": policy_of(name)}
        for name in (*USERS, "root")
    }
    folder.mkdir()
    for name, user in users.items():
        text = f"[default]\naws_access_key_id = {user['id']}\n"
        (folder / name).write_text(f"{text}aws_secret_access_key = {user['secret']}\n")
    accounts = folder / "accounts.json"
    buckets = [bucket_of(zone) for zone in ZONES]
    accounts.write_text(json.dumps({"buckets": buckets, "users": users}))
    command = [sys.executable, __file__, "127.0.0.1", str(port), str(accounts)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 - ourselves
    store = ObjectStore(f"http://127.0.0.1:{port}", folder)
    try:
        _wait_for(store, process)
        yield store
    finally:
        process.kill()
        process.wait()


def _wait_for(store: ObjectStore, process: subprocess.Popen[bytes]) -> None:
    from botocore.exceptions import BotoCoreError

    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            store.client("root").list_objects_v2(Bucket=bucket_of("public"))
        except BotoCoreError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError((store.credentials / "log").read_text())


class CutProxy:
    """Passes connections on to a server, until so many bytes went up; then the line is dead."""

    def __init__(self, target: str, bytes_up: int) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._left = bytes_up
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                down, _ = self._listener.accept()
            except OSError:
                return
            up = socket.create_connection(self._target)
            for source, sink, counts in ((down, up, True), (up, down, False)):
                threading.Thread(
                    target=self._pump, args=(source, sink, counts), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:  # noqa: FBT001
        try:
            while chunk := source.recv(256):
                if counts:
                    self._left -= len(chunk)
                    if self._left < 0:
                        self._listener.close()
                        break
                sink.sendall(chunk)
        except OSError:
            pass
        for connection in (source, sink):
            connection.close()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text()))
