"""A gate is one module and one entry."""

from __future__ import annotations

from pathlib import Path

from scratch_copy import ROOT, ScratchCopy

GATE = '''"""Every vector holds a number."""

from turnstile.assessment.gates.numbers import Numbers
from turnstile.assessment.gates.result import GateResult


def not_empty(numbers: Numbers) -> GateResult:
    """Judge the lengths."""
    passed = all(len(one.values) for one in numbers.vectors)
    return GateResult("not_empty", passed, "every vector holds a number")
'''
JUDGED = f"""
import sys
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
from assessment_releases import case_of
from turnstile.assessment.gates.numbers import numbers_of_release
from turnstile.assessment.gates.registry import NUMBER_GATES
numbers = numbers_of_release(case_of("itms").drawn, ())
print([gate(numbers).gate for gate in NUMBER_GATES])
"""


def test_a_gate_is_one_module_and_one_entry(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    assert "not_empty" not in copy.run(JUDGED)
    registry = "include/turnstile/assessment/gates/registry.py"
    copy.add("include/turnstile/assessment/gates/not_empty.py", GATE)
    copy.replace(registry, "    noise_kind,\n)", "    noise_kind,\n    not_empty,\n)")
    line = "from turnstile.assessment.gates.noise_kind import noise_kind\n"
    added = "from turnstile.assessment.gates.not_empty import not_empty\n"
    copy.replace(registry, line, line + added)
    assert len(copy.touched_sources) <= 3
    assert "not_empty" in copy.run(JUDGED)
