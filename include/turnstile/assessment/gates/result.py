"""What one gate found."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA = 1e-9  # chance that a correct release is stopped by one gate
# Fewer squared deviates than these may all happen to be large and alike, and so seem sure of
# themselves: at 4 normal ones a test with their own spread is wrong 2e-6 of the time.
SQUARES_LEAST = 30


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate found.

    Args:
        gate: name.
        passed: False stops the publication.
        statement: what was checked and found, from published numbers alone.
    """

    gate: str
    passed: bool
    statement: str
