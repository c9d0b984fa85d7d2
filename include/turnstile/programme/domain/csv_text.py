"""Lists as CSV text: equal rows have equal bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return rows under their header, a line each.

    Examples:
        >>> print(csv_text(("mode", "area"), [("train", "Central, east")]), end="")
        mode,area
        train,"Central, east"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((header, *rows))
    return text.getvalue()
