"""Spark counts what the embedded engine counts, also on a cluster that loses a worker."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from of_an_index import uv
from pandas_trips import pandas_tables

from turnstile.cli import main
from turnstile.counting.bounding import Bounding, Limit, install_key, keep_at_most
from turnstile.counting.engine import Connection, engine
from turnstile.counting.engines import engine_named
from turnstile.counting.exact_tables import count
from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.week import ingest
from turnstile_spark.counting import _kept_sql

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK = ServiceWeek(2016, 30)
SECRET = b"a secret of the release"
PACKAGES = ("pyspark==4.3.0", "sqlglot==30.30.0")
RECORDS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c|1", "é"]), st.integers(0, 3), st.integers(0, 2)),
    max_size=25,
)
LIMITS = st.sampled_from([(), (Limit(("x",), 1),), (Limit(("x",), 1), Limit(("y",), 2))])


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with engine(tmp_path_factory.mktemp("work")) as opened:
        install_key(opened, SECRET)
        yield opened


@settings(max_examples=60, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 5), limits=LIMITS)
def test_ranks_by_windows_keep_what_ranks_in_arrays_keep(
    connection: Connection,
    records: list[tuple[str, int, int]],
    at_most: int,
    limits: tuple[Limit, ...],
) -> None:
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE rec (day_index INTEGER, card VARCHAR, x INTEGER, y INTEGER)"
    )
    columns = [[record[place] for record in records] for place in range(3)]
    connection.execute(
        "INSERT INTO rec SELECT 0, unnest(?::VARCHAR[]), unnest(?::INTEGER[]), "
        "unnest(?::INTEGER[])",
        columns,
    )
    bounding = Bounding("card", ("x", "y"), at_most, limits)
    keep_at_most(connection, "rec", "kept_rec", bounding=bounding, scope="2016-07-25")
    by_arrays = connection.execute("SELECT * FROM kept_rec ORDER BY ALL").fetchall()
    windows = _kept_sql("rec", bounding, "2016-07-25")
    by_windows = connection.execute(f"SELECT * FROM ({windows}) ORDER BY ALL").fetchall()
    assert by_windows == by_arrays


def counted_by_spark(programme: Programme, folder: Path) -> None:
    """Count a week of no rows by the engine that the programme's deployment names."""
    engine_named("spark")(
        programme,
        load_domain(programme, INCLUDE),
        WEEK.days,
        folder,
        secret=SECRET,
        work=folder,
        progress=lambda _: None,
    )


def test_a_deployment_without_spark_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    programme = load_programme("opal", INCLUDE)
    with pytest.raises(InputError, match=r"\.\[spark\]"):
        counted_by_spark(programme, tmp_path)


def test_readings_of_buses_are_refused(tmp_path: Path) -> None:
    programme = load_programme("itms", INCLUDE)
    with pytest.raises(ProgrammeError, match="duckdb"):
        counted_by_spark(programme, tmp_path)


Vectors = Mapping[tuple[str, str, date | None], np.ndarray]
COUNT = """
import sys
from pathlib import Path
import numpy as np
from turnstile.counting.engines import engine_named
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile_spark import counting
name, rows, include, out = sys.argv[1:]
opened = counting._session
def looked_on():
    with opened() as spark:
        assert spark.sparkContext.uiWebUrl is None, "a page shows how many rows there are"
        conf = spark.sparkContext.getConf()
        assert conf.get("spark.eventLog.enabled") == "false"
        assert conf.get("spark.io.encryption.enabled") == "true"
        yield spark
counting._session = counting.contextmanager(looked_on)
programme = load_programme(name, Path(include))
tables = engine_named("spark")(
    programme, load_domain(programme, Path(include)), ServiceWeek(2016, 30).days, Path(rows),
    secret=b"a secret of the release", work=Path(out),
    progress=lambda said: print(said, flush=True),
)
np.savez(out, *(table.reveal_to_mechanism() for table in tables))
"""


@dataclass
class Cluster:
    """A master and its workers, each a process of its own."""

    packages: Path
    master: str
    workers: list[subprocess.Popen[bytes]]
    folder: Path

    def counting(self, name: str, rows: Path) -> subprocess.Popen[str]:
        """Begin to count on the cluster."""
        path = os.pathsep.join([str(INCLUDE), *sys.path, str(self.packages)])
        submit = (
            f"--master {self.master} --conf spark.ui.enabled=true "  # as a cluster may have it
            "--conf spark.sql.shuffle.partitions=4 --conf spark.executor.memory=512m "
            "--conf spark.driver.host=127.0.0.1 pyspark-shell"
        )
        arguments = [name, str(rows), str(INCLUDE), str(self.folder / f"{name}.npz")]
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and code
                [sys.executable, "-c", COUNT, *arguments],
                env={**os.environ, "PYTHONPATH": path, "PYSPARK_SUBMIT_ARGS": submit},  # noqa: TID251 - handed to a child
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def kill_worker(self) -> None:
        """End a worker and what it runs, at once."""
        worker = self.workers.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def spark_class(packages: Path, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start one process of Spark in a session of its own."""
    home = packages / "pyspark"
    with (folder / f"{arguments[0]}.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - what this test installed
            [str(home / "bin" / "spark-class"), *arguments],
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder)},  # noqa: TID251 - handed to a child
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise TimeoutError


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone cluster of two workers, from packages that only this test installs."""
    folder = tmp_path_factory.mktemp("cluster")
    packages = folder / "packages"
    uv("pip", "install", "--quiet", "--target", packages, *PACKAGES)
    port = free_port()
    place = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    master = spark_class(packages, folder, "org.apache.spark.deploy.master.Master", *place)
    address = f"spark://127.0.0.1:{port}"
    workers = []
    try:
        wait_for(port)
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        workers = [
            spark_class(
                packages, folder, "org.apache.spark.deploy.worker.Worker", *options, address
            )
            for _ in range(2)
        ]
        yield Cluster(packages, address, workers, folder)
    finally:
        for process in (master, *workers):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Canonical rows of a week of trips, for each programme."""
    root = tmp_path_factory.mktemp("week")
    options = ["--rows", "2000", "--seed", "3", "--out", str(root / "landing")]
    assert main(["sample", "opal", "--weeks", str(WEEK), *options]) == 0
    rows = {}
    for name in ("opal", "opal_year"):
        programme = load_programme(name, INCLUDE)
        snapshot = ingest(
            programme,
            WEEK,
            landing=root / "landing",
            private=root / "private",
            progress=lambda _: None,
        )
        rows[name] = snapshot.folder / "rows"
    return rows


def by_duckdb(name: str, rows: Path, work: Path) -> Vectors:
    programme = load_programme(name, INCLUDE)
    tables = count(
        programme,
        load_domain(programme, INCLUDE),
        WEEK.days,
        rows,
        secret=SECRET,
        work=work,
        progress=lambda _: None,
    )
    return {table.label: table.reveal_to_mechanism() for table in tables}


def digest_of(vectors: Mapping[object, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for vector in vectors.values():
        digest.update(vector.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("name", ["opal", "opal_year"])
def test_pandas_and_the_embedded_engine_count_the_same(
    snapshots: dict[str, Path], tmp_path: Path, name: str
) -> None:
    programme = load_programme(name, INCLUDE)
    domain = load_domain(programme, INCLUDE)
    vectors = by_duckdb(name, snapshots[name], tmp_path)
    wanted = pandas_tables(programme, domain, WEEK.days, snapshots[name], SECRET)
    assert set(vectors) == set(wanted)
    assert all(np.array_equal(vectors[label], wanted[label]) for label in vectors)
    other = pandas_tables(programme, domain, WEEK.days, snapshots[name], b"another secret")
    assert any(not np.array_equal(vectors[label], other[label]) for label in vectors)


@pytest.mark.long
@pytest.mark.parametrize("name", ["opal_year", "opal"])
def test_a_cluster_counts_the_same_though_a_worker_is_killed(
    cluster: Cluster, snapshots: dict[str, Path], tmp_path: Path, name: str
) -> None:
    wanted = by_duckdb(name, snapshots[name], tmp_path)
    with cluster.counting(name, snapshots[name]) as counting:
        assert counting.stdout is not None
        said = counting.stdout.readline()
        assert said.startswith("counted "), (cluster.folder / f"{name}.log").read_text()
        if name == "opal":  # day by day: six are left
            cluster.kill_worker()
        counting.stdout.read()
    assert counting.returncode == 0, (cluster.folder / f"{name}.log").read_text()
    vectors = np.load(cluster.folder / f"{name}.npz")
    assert digest_of(dict(vectors.items())) == digest_of(wanted)
