"""The rows of the backfill matrix, kept while its tests run and printed when they have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

ROWS = pytest.StashKey[list[tuple[str, ...]]]()
HEADING = ("what is done", "draws", "rho, card", "sealed before, kept", "newly sealed")


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for row in (HEADING, ["---"] * len(HEADING), *rows):
        yield f"| {' | '.join(row)} |"
