"""What all tests share: a home of their own, a throw-away Airflow, and where the real data lies."""

from __future__ import annotations

# The product first: numpy reads once how many threads it gets, and two wait for each other.
from turnstile import errors  # noqa: F401

# isort: split
import atexit
import gc
import os
import re
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from core_alone import lacks_an_extension
from deployment_fixtures import (
    PATCHES,
    assessed,
    begun_homes,
    begun_week,
    check_refuses,
    deployment,
    engines_lent,
    generated,
    half_hour_weeks,
    homes,
    judged_anew,
    judged_once,
    landed,
    own_engines,
    public_week,
    published,
    published_weeks,
    turnstile,
)
from hypothesis import HealthCheck, settings
from own_state import PersonsState, folder_in_memory
from row_table import tables
from xdist.scheduler import LoadScopeScheduling

# fixtures, for every room
__all__ = [
    "assessed",
    "begun_homes",
    "begun_week",
    "check_refuses",
    "deployment",
    "engines_lent",
    "generated",
    "half_hour_weeks",
    "homes",
    "judged_anew",
    "judged_once",
    "landed",
    "own_engines",
    "public_week",
    "published",
    "published_weeks",
    "turnstile",
]

_ROOT = Path(__file__).resolve().parents[1]
_SHARED_DATA = _ROOT / "../shared/data"
# Folders of tests lie in memory where it has room: what is written durably there waits for no disk.
if "TMPDIR" not in os.environ and (in_memory := folder_in_memory()):  # noqa: TID251
    os.environ["TMPDIR"] = tempfile.tempdir = in_memory  # noqa: TID251
_STATE = Path(tempfile.mkdtemp(prefix="state-of-tests-"))
_AIRFLOW_HOME = _STATE / "airflow"
_PERSONS = PersonsState(os.environ)  # noqa: TID251 - before any test changes it
_HOMES = count()
_ALL_LONG = re.compile(r"^pytestmark = .*\bmark\.long\b", re.MULTILINE)
_CPU_S_OF_WORKERS: list[float] = []

# The same examples every time, and no limit of time for one: a busy machine makes no property
# false. `--hypothesis-profile default` looks for new examples.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


def pytest_configure() -> None:
    """Leave nothing of the person's in the environment; Airflow reads its own once, on import."""
    gc.disable()  # hardly anything goes while modules are imported; looking for it takes a fifth
    _PERSONS.watch()
    PATCHES.watch()
    # `python -m pytest` adds the checkout, whose folders a search for plugins would look through.
    sys.path[:] = [place for place in sys.path if place not in {"", str(_ROOT)}]
    for folder in (_AIRFLOW_HOME, _STATE / "person"):
        folder.mkdir()
    for name in [variable for variable in os.environ if variable.startswith("TURNSTILE_")]:  # noqa: TID251
        del os.environ[name]  # noqa: TID251
    os.environ.update(  # noqa: TID251
        {
            "HOME": str(_STATE / "person"),
            "TURNSTILE_HOME": str(_STATE / "none"),
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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of extensions that are not installed (`make test-core`), and long ones.

    A module whose tests are all long is not imported for a run without them.
    """
    if collection_path.is_dir():
        return True if lacks_an_extension(collection_path) else None
    if not (collection_path.suffix == ".py" and collection_path.name.startswith("test_")):
        return None
    is_left_out = _is_short(config) and bool(_ALL_LONG.search(collection_path.read_text()))
    return True if is_left_out or lacks_an_extension(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the cases of a test beyond its `some` be long ones."""
    seen = Counter[str]()
    for item in items:
        of_test = item.nodeid.partition("[")[0]
        seen[of_test] += 1
        some = item.get_closest_marker("some")
        if some is not None and seen[of_test] > some.args[0]:
            item.add_marker(pytest.mark.long)


def _is_short(config: pytest.Config) -> bool:
    return bool(config.getoption("markexpr") == "not long")


class OneAirflow(LoadScopeScheduling):
    """Keeps the tests of a file on one worker, and those of the whole matrix on one Airflow.

    Without the long ones, which start Airflows, one worker imports Airflow and parses the DAGs.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        suffixes = ("/backfill_matrix", "/dags")[: 2 if _is_short(self.config) else 1]
        return folder if folder.endswith(suffixes) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Say what `--dist loadfile` keeps together."""
    return OneAirflow(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage from now on, seldom, and not among what was imported and collected."""
    gc.set_threshold(40_000, 20, 20)
    gc.enable()
    gc.freeze()


def _cpu_s(*whose: int) -> float:
    """CPU seconds of this process, or of those too that it started and saw end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, *whose)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker cost to the process that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cpu_s"] = _cpu_s(resource.RUSAGE_CHILDREN)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker cost."""
    _CPU_S_OF_WORKERS.append(getattr(node, "workeroutput", {}).get("cpu_s", 0.0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests cost, and the tables of rows that they kept."""
    # What this process saw end may hold workers too, which say it themselves.
    seconds = _cpu_s() if _CPU_S_OF_WORKERS else _cpu_s(resource.RUSAGE_CHILDREN)
    terminalreporter.write_line(f"{seconds + sum(_CPU_S_OF_WORKERS):,.0f} CPU seconds")
    reports = (report for kind in terminalreporter.stats.values() for report in kind)
    for title, lines in tables(reports):
        terminalreporter.section(title)
        terminalreporter.write("\n".join([*lines, ""]))


def pytest_unconfigure() -> None:
    """Remove the folder again, and let the count of tests be what is said last.

    DuckDB's binding lists what lives at the end of a process, hundreds of lines on standard error.
    """
    shutil.rmtree(_STATE, ignore_errors=True)
    if "duckdb" in sys.modules:
        atexit.register(_say_no_more)  # after pytest has given its own streams back


def _say_no_more() -> None:
    sys.stderr.flush()
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 2)


@pytest.fixture
def persons_state() -> PersonsState:
    """What belongs to the person who runs the tests."""
    return _PERSONS


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, persons_state: PersonsState) -> Iterator[None]:
    """Give the test a home of its own, and fail it if it touched the person's."""
    if os.environ["TURNSTILE_HOME"] == str(_STATE / "none"):  # noqa: TID251 - nobody chose one
        monkeypatch.setenv("TURNSTILE_HOME", str(_STATE / f"home-{next(_HOMES)}"))
    yield
    touched = persons_state.taken()
    assert not touched, f"the test touched what is not its own: {touched[:3]}"


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
