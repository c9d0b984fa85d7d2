"""Zones of a container deployment in object storage: a server beside it, users, the landing bucket.

The server is tests/support/object_store.py in a container of its own. It holds all objects in
memory, so it is not killed: it is cut off from the network that tasks have, and comes back.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from object_store import USERS, ZONES, bucket_of, policy_of

ROOT = Path(__file__).resolve().parents[2]
OVERRIDE = "docker-compose.stores.yaml"
SERVICE_OF = {"worker-private": "worker-private", "worker": "worker", "page": "api-server"}
"""User of the store to the service that has its credentials."""
IMAGE = "python:3.11-slim-bookworm"
_PORT = 9000
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - of a container


class Store:
    """An S3 server whose users may do what docker/store-policies lets them.

    Args:
        name: of the deployment.
        base: folder for its file of accounts.
        port: of the loopback interface, for who delivers files.
    """

    def __init__(self, name: str, base: Path, port: int) -> None:
        self.container, self.network = f"{name}-store", f"{name}_work"
        self.port, self.base = port, base
        self.users = {
            user: {"id": secrets.token_hex(10), "secret": secrets.token_urlsafe(32),
                   "policy": policy_of(user)}
            for user in (*USERS, "root")
        }  # fmt: skip
        self.variables = {
            f"{zone.upper()}_STORE": f"s3://{bucket_of(zone)}/city?endpoint=http://store:{_PORT}"
            for zone in ZONES
        }

    def start(self, folder: Path) -> None:
        """Start the server; write the credentials of each service into a folder of secrets."""
        for user in SERVICE_OF:
            credentials = self.users[user]
            path = folder / f"store_{user.replace('-', '_')}"
            path.write_text(f"[default]\naws_access_key_id = {credentials['id']}\n"
                            f"aws_secret_access_key = {credentials['secret']}\n")  # fmt: skip
            path.chmod(0o444)
        accounts = self.base / "accounts.json"
        buckets = [bucket_of(zone) for zone in ZONES]
        accounts.write_text(json.dumps({"buckets": buckets, "users": self.users}))
        packages = Path(sysconfig.get_paths()["purelib"]).resolve()
        mounts = (f"{packages}:/packages:ro", f"{ROOT}:/checkout:ro",
                  f"{accounts}:/accounts.json:ro")  # fmt: skip
        docker("run", "--detach", "--name", self.container,
                "--publish", f"127.0.0.1:{self.port}:{_PORT}", "--env", "PYTHONPATH=/packages",
                *(word for mount in mounts for word in ("--volume", mount)), IMAGE,
                "python", "/checkout/tests/support/object_store.py", _EVERYWHERE, str(_PORT),
                "/accounts.json")  # fmt: skip

    def connect(self) -> None:
        """Put the server on the network of the deployment, as `store`, if it is not there."""
        if self.network not in self._networks():
            docker("network", "connect", "--alias", "store", self.network, self.container)

    def cut(self) -> None:
        """Take the server off the network, in the middle of whatever is sent."""
        if self.network in self._networks():
            docker("network", "disconnect", "--force", self.network, self.container)

    def remove(self) -> None:
        """End the server; every object goes with it."""
        subprocess.run(
            ["docker", "rm", "--force", self.container], capture_output=True, check=False
        )

    def deliver(self, folder: Path) -> None:
        """Put files into the landing bucket, as the authority's user."""
        client = self.client("authority")
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            key = f"city/{path.relative_to(folder).as_posix()}"
            client.put_object(Bucket=bucket_of("landing"), Key=key, Body=path.read_bytes())

    def client(self, user: str) -> Any:
        """Return a client of this machine with a user's credentials; `root` may do everything."""
        import boto3

        credentials = self.users[user]
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=credentials["id"],
            aws_secret_access_key=credentials["secret"],
        )

    def _networks(self) -> set[str]:
        output = docker("inspect", "--format", "{{json .NetworkSettings.Networks}}", self.container)
        return set(json.loads(output))


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, check=False, text=True)
    if done.returncode:
        raise AssertionError(f"docker {words[0]}: {done.stderr}")
    return done.stdout
