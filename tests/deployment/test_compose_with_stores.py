"""The deployment with zones in object storage, as processes: weeks over Celery, folders lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compose_natively import NativeCompose, missing
from object_store import (
    ZONES,
    ObjectStore,
    backup_of,
    bucket_of,
    object_store,
    objects_of,
    put_back,
)
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


def _kinds(compose: NativeCompose) -> Counter[str]:
    lines = _must(compose, "worker", "ledger", "entries", "--json").splitlines()
    return Counter(json.loads(line)["kind"] for line in lines)


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
        assert f"city/opal/{week}/r0/manifest.json" in objects_of(store.client("root"), "public")
        if number:
            _lose_folders(compose)
        _must(compose, "worker", "ledger", "verify")
    kinds = _kinds(compose)
    assert kinds["sealed"] == kinds["published"] == len(WEEKS)
    assert "burned" not in kinds


def test_a_bucket_put_back_to_yesterday_ends_recovered(
    deployment: tuple[NativeCompose, AirflowApi, ObjectStore],
) -> None:
    """The services have seen more: they say so, charge nothing, and give it back."""
    compose, api, store = deployment
    root = store.client("root")
    yesterday, kinds = backup_of(root, "embargoed"), _kinds(compose)
    _release(compose, api, LATER[0])
    sealed = {name for name in backup_of(root, "embargoed") if LATER[0] in name}
    assert sealed
    put_back(root, "embargoed", yesterday)
    for service in ("worker-private", "worker"):
        said = compose.run_in(service, "turnstile", "ledger", "verify")
        assert said.returncode == 4, said.stderr
        assert "stores restore" in said.stderr
        _must(compose, service, "stores", "restore")
    assert f"city/index/opal/{LATER[0]}/r0.json" in objects_of(root, "embargoed")
    for service in ("worker-private", "worker"):
        _must(compose, service, "ledger", "verify")
    _release(compose, api, LATER[1])
    more = _kinds(compose) - kinds
    assert more["sealed"] == more["published"] == len(LATER)
    assert "burned" not in more
    assert "loss_declared" not in more


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
