"""What one gate found, and what it could have found."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA = 1e-9  # chance that a correct release is stopped by one gate
POWER = 0.99  # with which a gate detects the fault that it states
ANY_COUNTS = "any raw counts"  # of which a chance of a false alarm is nearly reached
EMPTY_CELLS = "empty cells"


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate found.

    Args:
        gate: name.
        passed: False stops the publication.
        statement: what was checked and found, from published numbers alone.
        false_alarm: chance, at most, that it stops a correct release; 0 where it is exact.
        reached_by: raw counts of which it is the chance itself but for what its parts share: any
            (`ANY_COUNTS`), or cells that are all empty (`EMPTY_CELLS`), others having a smaller
            one; '' where it is a bound only.
        detects: the fault that it finds in a release of this size, and how often where that can be
            worked out.
        is_applicable: whether it judged; False where the release holds nothing that it reads.
    """

    gate: str
    passed: bool
    statement: str
    false_alarm: float = 0.0
    detects: str = ""
    is_applicable: bool = True
    reached_by: str = ""

    @property
    def false_alarm_in_words(self) -> str:
        """The chance of a false alarm, and of which raw counts it is nearly reached."""
        if not self.is_applicable:
            return "-"
        if self.false_alarm == 0:
            return "none"
        chance = f"at most {self.false_alarm:.2g}"
        return f"{chance}, nearly reached with {self.reached_by}" if self.reached_by else chance

    @property
    def outcome(self) -> str:
        """`passed`, `FAILED` or `not applicable`."""
        if not self.is_applicable:
            return "not applicable"
        return "passed" if self.passed else "FAILED"


def not_applicable(gate: str, why: str) -> GateResult:
    """Return the result of a gate that has nothing to judge."""
    return GateResult(gate, passed=True, statement=why, is_applicable=False)


def headline(gates: tuple[GateResult, ...]) -> str:
    """Return how many gates judged, and what they said; those that did not are counted apart."""
    judged = [gate for gate in gates if gate.is_applicable]
    failed = [gate.gate for gate in judged if not gate.passed]
    idle = len(gates) - len(judged)
    rest = f"; {idle} not applicable" if idle else ""
    if failed:
        return f"{len(failed)} of {len(judged)} gates failed: {', '.join(failed)}{rest}"
    return f"{len(judged)} gates judged, all passed{rest}"
