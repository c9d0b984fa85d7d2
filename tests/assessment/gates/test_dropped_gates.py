"""Stored reports that name gates which are gone are shown, asked about and verified."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from kept_homes import OF_0_1_0, OF_PACKAGES_1, lived_in

from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.cli import main
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.people.approval import question
from turnstile.pipeline.context import open_release
from turnstile.settings import Settings, system_clock

_GONE = {
    OF_0_1_0: ("scale_below_zero", "scale_of_any_counts"),
    OF_PACKAGES_1: ("scale_below_zero", "scale_of_any_counts", "noise_moved", "shared_totals"),
}
WEEK = "2016-W30"


@pytest.mark.parametrize(
    ("home", "gate"), [(home, gate) for home, gates in _GONE.items() for gate in gates]
)
def test_a_report_of_a_gate_that_is_gone_is_read(
    home: str, gate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gate not in {one.__name__ for one in NUMBER_GATES}
    package = lived_in(home, tmp_path, monkeypatch) / "public" / "opal" / WEEK / "r0"
    stored = json.loads((package / "assessment.json").read_bytes())["gates"]
    test_a_report = next(one for one in stored if one["gate"] == gate)

    page = BudgetPage(Settings.from_environment(), system_clock)
    shown = html.unescape(page.week("opal", WEEK, AirflowNow()))
    assert test_a_report["statement"] in shown
    assert f">{gate.replace('_', ' ')}<" in shown
    asked = question(open_release("opal", WEEK), frozenset(), "")
    assert (
        f"| {gate} | {test_a_report.get('outcome', 'passed')} | {test_a_report['statement']} |"
        in asked
    )
    assert main(["package", "verify", str(package)]) == 0
