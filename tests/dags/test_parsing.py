"""Parsing a DAG file is quick and imports nothing heavy: Airflow does it every half minute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "pandas duckdb great_expectations opendp numpy pyarrow h3 scipy dp_accounting altair"
PARSE = f"""
import importlib.util, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {str(ROOT / "plugins")!r})
import airflow.sdk, airflow.providers.standard.operators.python
began = time.process_time()
for number, path in enumerate(sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(f"dag_file_{{number}}", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
print(time.process_time() - began, *(name for name in {HEAVY!r}.split() if name in sys.modules))
"""
CPU_S = 0.5  # of the processor, so others on the machine hardly matter; 0.1 in practice


def _parse(home: Path, *files: Path) -> tuple[float, list[str]]:
    """Return CPU seconds, beyond Airflow's own import, and the heavy packages that came along."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", PARSE, *map(str, files)],
        env={"PATH": os.defpath, "AIRFLOW_HOME": str(home), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds, *heavy = done.stdout.splitlines()[-1].split()
    return float(seconds), heavy


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "dags").glob("*.py")))
def test_parsing_is_quick_and_imports_nothing_heavy(name: str, tmp_path: Path) -> None:
    seconds, heavy = _parse(tmp_path, ROOT / "dags" / name)
    assert heavy == []
    assert seconds < CPU_S


def test_a_dag_file_that_imports_something_heavy_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "heavy.py"
    file.write_text("import numpy\n", encoding="utf-8")
    assert _parse(tmp_path, file)[1] == ["numpy"]


def test_a_dag_file_that_takes_its_time_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(
        "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: ...\n"
    )
    assert _parse(tmp_path, file)[0] > CPU_S


def test_airflow_looks_for_plugins_in_those_modules_alone_that_hold_one() -> None:
    modules = (ROOT / "plugins").glob("*.py")
    others = {path.name for path in modules if "(AirflowPlugin)" not in path.read_text()}
    ignored = (ROOT / "plugins" / ".airflowignore").read_text().splitlines()[1:]
    assert ignored == sorted(others)
