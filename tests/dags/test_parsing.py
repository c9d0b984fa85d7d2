"""Parsing a DAG file is quick and imports nothing heavy: Airflow does it every half minute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "pandas duckdb great_expectations opendp numpy pyarrow h3 scipy dp_accounting altair"
# Airflow is imported once; each file is parsed in a fork of that process.
PARSE = f"""
import importlib.util, os, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {str(ROOT / "plugins")!r})
import airflow.sdk, airflow.providers.standard.operators.python
for path in sys.argv[1:]:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, path
        continue
    began = time.process_time()
    spec = importlib.util.spec_from_file_location("dag_file", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    used = time.process_time() - began
    print(path, used, *(one for one in {HEAVY!r}.split() if one in sys.modules), flush=True)
    os._exit(0)
"""
CPU_S = 1.0  # of the processor; 0.1 on a quiet machine, 0.5 on a slow one with others on it
Parsed = dict[str, tuple[float, list[str]]]


def _parse(home: Path, *files: Path) -> Parsed:
    """CPU seconds of each file beyond Airflow's own import, and the heavy packages it brought."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", PARSE, *map(str, files)],
        env={"PATH": os.defpath, "AIRFLOW_HOME": str(home), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()[-len(files) :]]
    return {Path(path).name: (float(seconds), heavy) for path, seconds, *heavy in lines}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    """Every DAG file; and two of which something is to be seen, between them and after them."""
    folder = tmp_path_factory.mktemp("parsed")
    (folder / "heavy.py").write_text("import numpy\n", encoding="utf-8")
    (folder / "slow.py").write_text(
        "import time\nend = time.process_time() + 1.1\nwhile time.process_time() < end: ...\n"
    )
    first, *others = sorted((ROOT / "dags").glob("*.py"))
    return _parse(folder, first, folder / "heavy.py", *others, folder / "slow.py")


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "dags").glob("*.py")))
def test_parsing_is_quick_and_imports_nothing_heavy(name: str, parsed: Parsed) -> None:
    seconds, heavy = parsed[name]
    assert heavy == []
    assert seconds < CPU_S


def test_a_dag_file_that_imports_something_heavy_is_seen(parsed: Parsed) -> None:
    assert parsed["heavy.py"][1] == ["numpy"]


def test_a_dag_file_that_takes_its_time_is_seen(parsed: Parsed) -> None:
    assert parsed["slow.py"][0] > CPU_S


def test_airflow_looks_for_plugins_in_those_modules_alone_that_hold_one() -> None:
    modules = (ROOT / "plugins").glob("*.py")
    others = {path.name for path in modules if "(AirflowPlugin)" not in path.read_text()}
    ignored = (ROOT / "plugins" / ".airflowignore").read_text().splitlines()[1:]
    assert ignored == sorted(others)
