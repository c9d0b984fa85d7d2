"""Rows that a test found out, kept beside its report and printed as tables when all have ended.

They travel with the report, so they arrive wherever the test ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

Row = tuple[str, ...]
MATRIX, DAY, SEEDS = "backfill matrix", "day of people", "seeds of searches"
MOMENTS = "draws that lost a process, each time later"
HEADINGS: dict[str, Row] = {
    MATRIX: ("what is done", "draws", "rho, card", "sealed before, kept", "newly sealed"),
    DAY: ("what was done", "rho of a card", "in all"),
    SEEDS: ("case", "seed"),
    MOMENTS: ("what is killed", "moments", "charged then, and not sealed", "burned"),
}


def keep(item: pytest.Item, name: str, rows: list[Row]) -> None:
    """Move rows to the report of a test that has run.

    Args:
        item: the test.
        name: of the table, a key of `HEADINGS`.
        rows: found since the last test; emptied.
    """
    item.user_properties += [(name, row) for row in rows]
    rows.clear()


def tables(reports: Iterable[object]) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and lines of the Markdown table of each name that was kept."""
    properties = [
        pair
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
        for pair in report.user_properties
    ]
    for name, heading in HEADINGS.items():
        rows = [row for kept, row in properties if kept == name]
        if rows:
            lines = (heading, ("---",) * len(heading), *rows)
            yield f"{name}: {len(rows)} rows", [f"| {' | '.join(line)} |" for line in lines]
