"""What one gate found."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA = 1e-9  # chance that a correct release is stopped by one gate


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
