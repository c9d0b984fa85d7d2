"""Who can open what in a running deployment: each promise with a case in which it must fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine import Containers
from layers import leaks_of
from object_store import ZONES, bucket_of, may

from stores import SERVICE_OF

_PRIVATE = ("/var/lib/turnstile/landing", "/var/lib/turnstile/private")
_DUMP = ("pg_dump", "--username", "postgres", "airflow")
_LOOK = "find {} -type f -exec cat {{}} + 2>/dev/null | head -c 100 | wc -c"


# What a container's own credentials open: a line for each bucket and action.
_TRY = """
import os, sys, boto3, botocore.exceptions
user, *buckets = sys.argv[1:]
os.environ["AWS_SHARED_CREDENTIALS_FILE"] = "/run/secrets/store_" + user
s3 = boto3.client("s3", endpoint_url="http://store:9000", region_name="us-east-1")
for b in buckets:
    for action, call, more in (
        ("s3:ListBucket", s3.list_objects_v2, {}),
        ("s3:GetObject", s3.get_object, {"Key": "city/none"}),
        ("s3:PutObject", s3.put_object, {"Key": "elsewhere/none", "Body": b""}),
    ):
        try:
            call(Bucket=b, **more)
            code = "open"
        except botocore.exceptions.ClientError as error:
            code = error.response["Error"]["Code"].replace("NoSuchKey", "open")
        print(b, action, code)
"""


def check_doors(place: Containers) -> None:
    """Look through every door that has to be closed, and one that has to be open."""
    assert _bytes_seen(place, "worker-private") > 0  # there is something to see
    for name in ("worker", "api-server", "scheduler", "triggerer", "dag-processor"):
        assert _bytes_seen(place, name) == 0, name
    copies = place.store is not None  # each service has folders of its own
    for folder in ("operations",) if copies else ("public", "embargoed", "operations"):
        assert _fails(place, "api-server", f"touch /var/lib/turnstile/{folder}/mine")
    for name in ("worker", "worker-private", "api-server"):
        assert _fails(place, name, "touch /opt/turnstile/include/mine"), name
        assert not _fails(place, name, "touch /tmp/mine"), name
    assert {name for name in place.services if place.reaches_out(name)} == {"worker", "api-server"}
    log_server = f"{place.address_in('worker', 'outside')!r}, 8793"
    outside = f'python -c "import socket; socket.create_connection(({log_server}), 5)"'
    assert _fails(place, "worker-private", outside)
    assert not _fails(place, "api-server", outside)
    no_metadata = "python -c 'import os; os.environ[\"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD\"]'"
    for name in ("worker", "worker-private"):
        assert _fails(place, name, no_metadata)
        assert _fails(place, name, "cat /run/secrets/airflow_database_password")
    assert not _fails(place, "scheduler", no_metadata)


def check_store_doors(place: Containers) -> None:
    """Try every zone's bucket with what each container has: only its own policy's doors open."""
    buckets = [bucket_of(zone) for zone in ZONES]
    for user, service in SERVICE_OF.items():
        words = ("python", "-c", _TRY, user.replace("-", "_"), *buckets)
        doors = place.run(service, *words).stdout.decode().splitlines()
        expected = [
            f"{bucket_of(zone)} {action} {'open' if action in may(user, zone) else 'AccessDenied'}"
            for zone in ZONES
            for action in ("s3:ListBucket", "s3:GetObject", "s3:PutObject")
        ]
        assert doors == expected, (service, doors)


def check_secrets(place: Containers, more: dict[str, str]) -> None:
    """Look for every secret in whatever people, logs and images show."""
    shown = {
        "image and settings": place.image_and_settings(),
        "logs": place.all_logs(),
        "processes": place.processes(),
        "airflow config": _printed(place, "airflow config list --show-values --hide-sensitive"),
        # Rendered templates, XComs, connections, the audit log.
        "Airflow's database": place.run("postgres", *_DUMP).stdout.decode(),
        **more,
    }
    # The last word: a file of a store's credentials has other words before the secret.
    secrets = {file.name: file.read_text().split()[-1] for file in _files(place.secrets)}
    for where, text in shown.items():
        assert len(text) > 100, where
        exposed_secrets = [name for name, secret in secrets.items() if secret in text]
        assert not exposed_secrets, f"{where} show {exposed_secrets}"
    assert secrets["redis_password"] in _printed(place, "cat /run/secrets/redis_password")
    assert "rendered_task_instance_fields" in shown["Airflow's database"]
    planted = {"control": b"Prints an address with a secret in the place of its %s"}
    sought = {name: text.encode() for name, text in {**secrets, "pip": place.mark}.items()}
    leaks = leaks_of(place.image(), {**sought, **planted})
    assert leaks == {"control in opt/turnstile/docker/with-secret.sh"}, leaks


def _files(folder: Path) -> list[Path]:
    """Return the files whose content nobody may see."""
    return [file for file in folder.iterdir() if file.name != "airflow_connections"]


def _bytes_seen(place: Containers, service: str) -> int:
    return int(place.run(service, "sh", "-c", _LOOK.format(" ".join(_PRIVATE))).stdout)


def _fails(place: Any, service: str, command: str) -> bool:
    return bool(place.run(service, "sh", "-c", command).returncode)


def _printed(place: Containers, command: str) -> str:
    return str(place.run("scheduler", "sh", "-c", command).stdout.decode(errors="replace"))
