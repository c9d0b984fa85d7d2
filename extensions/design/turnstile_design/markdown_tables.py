"""Tables of reports and plans, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def table_lines(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)
