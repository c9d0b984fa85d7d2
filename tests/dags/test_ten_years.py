"""The page takes below a second of CPU with ten years of weekly entries, over HTTP, to a user."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnstile.ledger.ledger import Ledger
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = ServiceWeek(2016, 1)
YEARS = 10
LIMIT_CPU_S = 1.0
ENTRIES_A_YEAR = 52 * 4  # reserved, draw begun, sealed, published
PATHS = (
    "/",
    "/calendar",
    "/plan",
    "/quality",
    "/ledger",
    "/ledger?kind=sealed&page=9",
    "/data/balance.json",
    "/data/forecast.json",
    "/data/entries.json",
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The ledger's benchmark, which knows how to fill a year."""
    spec = importlib.util.spec_from_file_location("bench_ledger", ROOT / "benchmarks/ledger.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory, benchmark: ModuleType) -> Iterator[Ledger]:
    """Ten years of releases, of runs and of verdicts on the input."""
    home = tmp_path_factory.mktemp("ten_years")
    with pytest.MonkeyPatch.context() as patching:
        patching.setenv("TURNSTILE_HOME", str(home))
        patching.setenv("TURNSTILE_INCLUDE", str(ROOT / "include"))
        patching.delenv("TURNSTILE_LEDGER_URL", raising=False)
        settings = Settings.from_environment()
        made = Ledger.open(settings.ledger_url, clock=lambda: NOW)
        for year in range(YEARS):
            benchmark.build_year(made, home, FIRST.plus(52 * year))
        _write_journal(Journal.of(settings))
        yield made


def _write_journal(journal: Journal) -> None:
    verdicts = {f"rule_{k}": "pass" for k in range(20)}
    for n in range(52 * YEARS):
        week = str(FIRST.plus(n))
        journal.write(Line(NOW.isoformat(), Happening.BEGUN, "opal", week, f"scheduled__{week}"))
        details = {"verdicts": verdicts}
        journal.write(Line(NOW.isoformat(), Happening.JUDGED, "opal", week, details=details))
        journal.write(Line(NOW.isoformat(), Happening.ENDED, "opal", week, f"scheduled__{week}"))


@pytest.fixture(scope="module")
def load(
    ledger: Ledger, mounted_page: Callable[[], Any], bearer: Callable[[str], dict[str, str]]
) -> Callable[[str], tuple[float, str]]:
    """Load a path of the page as a viewer; return its processor time in seconds and what came."""
    assert ledger.head()[0] > YEARS * ENTRIES_A_YEAR
    site, viewer = mounted_page(), bearer("viewer")

    def loaded(path: str) -> tuple[float, str]:
        began = time.process_time()
        answer = site.get(f"/privacy-budget{path}", headers=viewer)
        took_s = time.process_time() - began
        assert answer.status_code == 200
        return took_s, answer.text

    deadline = time.monotonic() + 60  # the API server reads the ledger once, when it starts
    while "2025-W" not in loaded("/data/entries.json")[1] and time.monotonic() < deadline:
        time.sleep(1)
    return loaded


@pytest.mark.parametrize("path", PATHS)
def test_every_section_loads_below_a_second(
    load: Callable[[str], tuple[float, str]], path: str
) -> None:
    took_s, text = load(path)
    assert len(text) > 100
    assert took_s < LIMIT_CPU_S


def test_a_page_after_another_week_shows_it_and_still_loads_below_a_second(
    load: Callable[[str], tuple[float, str]],
    ledger: Ledger,
    benchmark: ModuleType,
    tmp_path: Path,
) -> None:
    week = FIRST.plus(52 * YEARS)
    assert f"opal/{week}/r0" not in load("/ledger")[1]
    benchmark.one_release(ledger, tmp_path, benchmark.requests_of(week)[0])
    took_s, text = load("/ledger")
    assert f"opal/{week}/r0" in text
    assert took_s < LIMIT_CPU_S
