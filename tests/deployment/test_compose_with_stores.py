"""The deployment with zones in object storage, as processes: weeks over Celery, folders lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compose_natively import NativeCompose, missing
from object_store import ZONES, ObjectStore, bucket_of, object_store
from real_airflow import DAG, monday, small_checkout

from turnstile.operations.airflow_api import AirflowApi
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek

WEEKS = ("2016-W30", "2016-W31", "2016-W32")
LATER = ("2016-W33", "2016-W34")
ROOT = Path(__file__).resolve().parents[2]
SECRETS = {"worker-private": "store_worker_private", "worker": "store_worker", "page": "store_page"}

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[NativeCompose, AirflowApi, ObjectStore]]:
    base = tmp_path_factory.mktemp("compose")
    project = small_checkout(base / "project", {}).parent
    (project / "docker").symlink_to(ROOT / "docker")
    (base / "run").mkdir()
    with object_store(base / "objects") as store:
        variables = {
            f"{zone.upper()}_STORE": f"s3://{bucket_of(zone)}/city?endpoint={store.endpoint}"
            for zone in ZONES
        }
        override = ROOT / "docker-compose.stores.yaml"
        compose = NativeCompose(project, base / "run", override, variables)
        for user, name in SECRETS.items():
            shutil.copyfile(store.credentials / user, compose.secrets / name)
        with compose:
            _deliver(store, base / "delivered")
            yield compose, compose.unpaused(DAG, within_s=600), store


def _deliver(store: ObjectStore, folder: Path) -> None:
    """Put files of all weeks into the landing bucket, as the authority's user."""
    words = ["sample", "opal", "--weeks", f"{WEEKS[0]}:{LATER[-1]}", "--rows", "2000", "--seed",
             "3", "--out", str(folder)]  # fmt: skip
    script = str(Path(sys.executable).parent / "turnstile")
    home = {"PYTHONPATH": str(ROOT / "include"), "TURNSTILE_HOME": str(folder.with_name("home"))}
    subprocess.run([script, *words], check=True, env=home, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
    authority = store.client("authority")
    for path in sorted(folder.rglob("*.*")):
        if path.is_file():
            key = f"city/{path.relative_to(folder).as_posix()}"
            authority.put_object(Bucket=bucket_of("landing"), Key=key, Body=path.read_bytes())


def _objects(store: ObjectStore, zone: str) -> list[str]:
    pages = store.client("root").get_paginator("list_objects_v2").paginate(Bucket=bucket_of(zone))
    return [stored_object["Key"] for page in pages for stored_object in page.get("Contents", ())]


def _release(compose: NativeCompose, api: AirflowApi, week: str) -> None:
    api.release(load_programme("opal", ROOT / "include"), [ServiceWeek.parse(week)])

    def state() -> str:
        return next((run.state for run in api.runs(DAG) if run.starts == monday(week)), "none")

    compose.wait_until(lambda: state() in {"success", "failed"}, what=week, timeout_s=1500)
    assert state() == "success", compose.failure("worker-private") + compose.failure("worker")


def _must(compose: NativeCompose, service: str, *words: str) -> str:
    answer = compose.run_in(service, "turnstile", *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _lose_folders(compose: NativeCompose) -> None:
    """Empty every folder of a zone, in all services."""
    volumes = compose.base / "volumes"
    for folder in volumes.iterdir():
        if folder.name.split("-")[0] in ZONES:
            for path in (*folder.iterdir(),):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_weeks_are_released_and_every_folder_may_go_between_them(
    deployment: tuple[NativeCompose, AirflowApi, ObjectStore],
) -> None:
    compose, api, store = deployment
    for number, week in enumerate(WEEKS):
        _release(compose, api, week)
        assert f"city/opal/{week}/r0/manifest.json" in _objects(store, "public")
        if number:
            _lose_folders(compose)
        _must(compose, "worker", "ledger", "verify")
    entries = [
        json.loads(line)
        for line in _must(compose, "worker", "ledger", "entries", "--json").splitlines()
    ]
    kinds = [entry["kind"] for entry in entries]
    assert kinds.count("sealed") == kinds.count("published") == len(WEEKS)
    assert "burned" not in kinds


def _kept(store: ObjectStore, zone: str) -> dict[str, bytes]:
    """A backup of a bucket."""
    root, bucket = store.client("root"), bucket_of(zone)
    names = _objects(store, zone)
    return {name: root.get_object(Bucket=bucket, Key=name)["Body"].read() for name in names}


def _put_back(store: ObjectStore, zone: str, kept: dict[str, bytes]) -> None:
    """Make a bucket what it was."""
    root, bucket = store.client("root"), bucket_of(zone)
    for name in _objects(store, zone):
        root.delete_object(Bucket=bucket, Key=name)
    for name, content in kept.items():
        root.put_object(Bucket=bucket, Key=name, Body=content)


def test_a_bucket_put_back_to_yesterday_ends_recovered(
    deployment: tuple[NativeCompose, AirflowApi, ObjectStore],
) -> None:
    """The services have seen more: they say so, charge nothing, and give it back."""
    compose, api, store = deployment
    yesterday = _kept(store, "embargoed")
    _release(compose, api, LATER[0])
    sealed = {name for name in _kept(store, "embargoed") if LATER[0] in name}
    assert sealed
    _put_back(store, "embargoed", yesterday)
    for service in ("worker-private", "worker"):
        said = compose.run_in(service, "turnstile", "ledger", "verify")
        assert said.returncode == 4, said.stderr
        assert "stores restore" in said.stderr
        _must(compose, service, "stores", "restore")
    assert f"city/index/opal/{LATER[0]}/r0.json" in _objects(store, "embargoed")
    for service in ("worker-private", "worker"):
        _must(compose, service, "ledger", "verify")
    _release(compose, api, LATER[1])
    lines = _must(compose, "worker", "ledger", "entries", "--json").splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds.count("sealed") == kinds.count("published") == len(WEEKS) + len(LATER)
    assert "burned" not in kinds
    assert "loss_declared" not in kinds


def test_each_service_reaches_its_own_stores(
    deployment: tuple[NativeCompose, AirflowApi, ObjectStore],
) -> None:
    compose, _, _ = deployment
    for service, zones in (
        ("worker-private", set(ZONES)),
        ("worker", {"embargoed", "public"}),
        ("api-server", {"embargoed", "public"}),
    ):
        lines = _must(compose, service, "stores", "check").splitlines()
        assert {line.split(":")[0] for line in lines if line.endswith(" answers")} == zones
    root = compose.base / "containers/worker/var/lib/turnstile"
    assert not list((root / "landing").glob("*") if (root / "landing").exists() else ())


def test_no_log_holds_a_secret_of_a_store(
    deployment: tuple[NativeCompose, AirflowApi, ObjectStore],
) -> None:
    compose, _, store = deployment
    logs = [path for path in compose.base.rglob("*.log") if path.is_file()]
    text = "".join(path.read_text(errors="replace") for path in logs)
    assert len(text) > 10_000
    for user in SECRETS:
        secret = store.client(user)._request_signer._credentials.secret_key
        assert secret not in text
    page: Any = compose.run_in("api-server", "airflow", "config", "list", "--show-values")
    assert "secret-of-" not in page.stdout + page.stderr
