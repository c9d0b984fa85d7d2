"""On a real scheduler: files come from a real server, and the first week stops at what is open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from landing_sources import PYTHON, s3
from real_airflow import QUICK, RealAirflow, running

WEEK = "2016-W30"
AS_SHIPPED = "  card_form: {kind: text, case: lower}\n"
DECIDED = "  card_form: {kind: digits, length: 16}\n"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """A programme that nobody decided the form of ids of; its files are at an authority's S3."""
    if not PYTHON.exists():
        pytest.skip("the providers are not here: make env-providers")
    server_folder, base = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("first_week")
    with ExitStack() as open_now:
        address, given, put = open_now.enter_context(s3(server_folder))
        extra = QUICK | {
            "TURNSTILE_LANDING_FROM": f"opal={address}",
            "AIRFLOW_CONN_AUTHORITY": given["AUTHORITY"],
        }
        packages = next(PYTHON.parents[1].glob("lib/python3*/site-packages"))
        started = running(base, WEEK, edits={AS_SHIPPED: ""}, extra=extra, packages=packages)
        instance = open_now.enter_context(started)
        landing = instance.home / "landing/opal" / WEEK
        delivered = {path.name: _spelt(path) for path in sorted(landing.iterdir())}
        shutil.rmtree(landing)
        put(delivered)
        instance.backfill(WEEK, WEEK)
        instance.until_ended(WEEK)
        yield instance


def _spelt(file: Path) -> bytes:
    """A file in which the card of the first trip is written in two ways."""
    header, first, *rest = file.read_text().splitlines()
    card = first.partition(",")[0]
    other = first.replace(card, f"00{card}")
    return "\n".join([header, first, other, *rest, ""]).encode()


def test_new_files_come_from_the_server_before_the_wait(airflow: RealAirflow) -> None:
    tasks = airflow.tasks(WEEK)
    assert (tasks["fetch"], tasks["wait"]) == ("success", "success")
    landing = airflow.home / "landing/opal" / WEEK
    assert len([path for path in landing.iterdir() if path.suffix == ".csv"]) == 7
    assert not [path for path in landing.iterdir() if path.name.startswith(".")]


def test_the_first_run_looks_and_stops_at_what_nobody_decided_until_somebody_does(
    airflow: RealAirflow,
) -> None:
    assert airflow.tasks(WEEK)["ingest"] == "failed"
    assert airflow.runs()[WEEK] == "failed"
    assert not airflow.ledger.entries() or all(not e.attempt_id for e in airflow.ledger.entries())
    page = airflow.home / f"private/opal/{WEEK}/snapshots/look/look.md"
    assert "**source.card_form**" in page.read_text()
    said = "".join(log.read_text() for log in (airflow.home / "airflow/logs").rglob("*ingest*/*"))
    assert "nobody has decided, and nothing is charged: source.card_form" in said

    programme = airflow.base / "include/programmes/opal.yaml"
    programme.write_text(programme.read_text().replace("\nsource:\n", f"\nsource:\n{DECIDED}"))
    airflow.clear(WEEK, "ingest")
    airflow.until_ended(WEEK)
    assert airflow.runs()[WEEK] == "success"
    assert (airflow.home / f"public/opal/{WEEK}/r0/manifest.json").exists()
