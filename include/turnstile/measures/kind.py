"""What tells one measure from another, wherever a table is planned, counted, estimated or shown.

A measure is one record in `registry`; one that is drawn or added up as no other is has a class
of its own too. Nothing here knows a programme: a table hands in what it states (`options`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Options = tuple[int, ...]  # a clamp, limits, or classes
BusDays = Mapping[str, Any]  # columns of a bus, service day and cell, each shape (rows,)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a measure is drawn and added up; its fields tell it from others of its class.

    Args:
        option: key of the table that it needs; empty if it needs none.
        row_column: column of canonical rows that it alone reads; empty if it reads none.
        states: what a feed must state for that, in words.
        by_timetable: whether a public timetable states it where the feed does not.
        has_every_bus: whether its statistic `buses` counts every bus-day of a cell.
    """

    option: str = ""
    row_column: str = ""
    states: str = ""
    by_timetable: bool = False
    has_every_bus: bool = False
    is_of_trips: ClassVar[bool] = False

    def statistics(self, options: Options) -> tuple[str, ...]:
        """Return the names of the integer vectors that are drawn: numbers of buses by default."""
        del options
        return ("buses",)

    def adds(self, options: Options, statistic: str, counted: BusDays) -> Ints:
        """Return what each bus-day adds to its cell, shape (rows,), int64: 1 by default."""
        import numpy as np  # programmes are read where nothing is counted

        del options, statistic
        return np.ones(len(counted["readings"]), dtype=np.int64)

    def mean_range(self, options: Options) -> int | None:
        """Return the width of the public range of what a mean is taken of; None without a mean."""
        del options
        return None
