"""What all tests share: a throw-away Airflow folder, and where the real data lies."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from deployment_fixtures import (
    assessed,
    check_refuses,
    deployment,
    generated,
    landed,
    published,
    published_weeks,
    turnstile,
)
from hypothesis import HealthCheck, settings
from row_table import tables
from xdist.scheduler import LoadScopeScheduling

# fixtures, for every room
__all__ = [
    "assessed",
    "check_refuses",
    "deployment",
    "generated",
    "landed",
    "published",
    "published_weeks",
    "turnstile",
]

_ROOT = Path(__file__).resolve().parents[1]
_SHARED_DATA = _ROOT / "../shared/data"
_AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="airflow-of-tests-"))

# The same examples every time, and no limit of time for one: a busy machine makes no property
# false. `--hypothesis-profile default` looks for new examples.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


def pytest_configure() -> None:
    """Set Airflow's environment before any test, in any order, imports it."""
    os.environ.update(  # noqa: TID251 - Airflow reads it, once, when it is first imported
        {
            "AIRFLOW_HOME": str(_AIRFLOW_HOME),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(_ROOT / "plugins"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(_ROOT / "dags"),
            "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            # Of wall time, 30 s by default: the first file also waits for Airflow's own import.
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
        }
    )
    sys.path.insert(0, str(_ROOT / "plugins"))


class OneAirflow(LoadScopeScheduling):
    """Keeps the tests of a file on one worker, and those of the whole matrix on one Airflow."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder.endswith("/backfill_matrix") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Say what `--dist loadfile` keeps together."""
    return OneAirflow(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables of rows that tests kept."""
    reports = (one for kind in terminalreporter.stats.values() for one in kind)
    for title, lines in tables(reports):
        terminalreporter.section(title)
        terminalreporter.write("\n".join([*lines, ""]))


def pytest_unconfigure() -> None:
    """Remove the folder again."""
    shutil.rmtree(_AIRFLOW_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Folder of the Airflow that the tests import."""
    return _AIRFLOW_HOME


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data; it belongs to its publishers and is not part of the project."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the real data of ../shared/data is not on this machine")
    return _SHARED_DATA.resolve()
