"""The DAG files, parsed once as Airflow parses them, in a throw-away Airflow folder."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def parse(airflow_home: Path) -> Callable[[Path], Any]:
    """Parse a folder or file of DAGs, and return Airflow's DagBag."""
    assert airflow_home.is_dir()

    def parsed(path: Path) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Airflow's own, on its own import
            dagbag = importlib.import_module("airflow.dag_processing.dagbag")
            return dagbag.DagBag(path)

    return parsed


@pytest.fixture(scope="session")
def bag(parse: Callable[[Path], Any]) -> Any:
    """The project's DAGs."""
    return parse(ROOT / "dags")


@pytest.fixture(scope="session")
def release_dag(bag: Any) -> ModuleType:
    """The module that makes the DAGs."""
    assert bag.dags
    return importlib.import_module("release_dag")


@pytest.fixture(params=["release_opal", "release_itms"])
def dag(request: pytest.FixtureRequest, bag: Any) -> Any:
    """Each DAG in turn."""
    return bag.dags[request.param]
