"""The page answers below a second with ten years of weekly entries."""

from __future__ import annotations

import importlib.util
import time
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from turnstile.ledger.ledger import Ledger
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.page import BudgetPage
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = 10
LIMIT_S = 1.0
SEEN = frozenset({"opal"})


def _benchmark() -> ModuleType:
    """Return the ledger's benchmark, which knows how to fill a year."""
    spec = importlib.util.spec_from_file_location("bench_ledger", ROOT / "benchmarks/ledger.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_every_section_answers_below_a_second_with_ten_years_of_weeks(tmp_path: Path) -> None:
    settings = Settings(tmp_path, f"sqlite:///{tmp_path}/ledger.sqlite", (), ROOT / "include")
    ledger = Ledger.open(settings.ledger_url, clock=lambda: NOW)
    benchmark, first = _benchmark(), ServiceWeek(2016, 1)
    journal = Journal.of(settings)
    for year in range(YEARS):
        benchmark.one_year(ledger, first.plus(52 * year))
    for n in range(52 * YEARS):
        week = str(first.plus(n))
        journal.write(Line(NOW.isoformat(), Happening.BEGUN, "opal", week, f"scheduled__{week}"))
        verdicts = {f"rule_{k}": "pass" for k in range(20)}
        told = {"verdicts": verdicts}
        journal.write(Line(NOW.isoformat(), Happening.JUDGED, "opal", week, told=told))
    page = BudgetPage(settings, lambda: NOW)
    page.warm()  # once, when the API server starts
    for section in (page.budget, page.calendar, page.plan, page.quality):
        began = time.perf_counter()
        assert "<main" in section(SEEN)
        assert time.perf_counter() - began < LIMIT_S, section.__name__
    began = time.perf_counter()
    page.ledger(SEEN, {"kind": "sealed"})
    assert time.perf_counter() - began < LIMIT_S
    benchmark.one_year(ledger, first.plus(52 * YEARS))  # a later reader follows what was appended
    began = time.perf_counter()
    assert len(page.picture().lines) == ledger.head()[0]
    assert time.perf_counter() - began < 2 * LIMIT_S
