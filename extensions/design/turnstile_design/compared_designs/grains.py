"""Which grain says anything: estimates beside what costs nothing, a city-wide mean and old tables.

A table is worth releasing at a grain where its estimates are wrong by at least a tenth less than
each naive baseline is: publish nothing, one city-wide mean, last year's table. Of trips the grain
to lead with is the finest of which nearly all that it counts can be used (`estimates.usable`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.usable import MOSTLY, Usable
from turnstile_design.compared_designs.predicted_errors import relative_error
from turnstile_design.markdown_tables import table_lines

Floats = NDArray[np.float64]

NOTHING, CITY_MEAN, LAST_YEAR = "publish nothing", "a city-wide mean", "last year's table"
BASELINES = (NOTHING, CITY_MEAN, LAST_YEAR)
_WORTH = 0.9  # of the best baseline's error


@dataclass(frozen=True, slots=True)
class GrainErrors:
    """Errors of one table at one grain.

    Args:
        table: name, in words.
        grain: places and times of its cells.
        estimates: error of what would be published, in `unit`.
        baselines: errors of the naive tables.
        unit: `%` (weighted relative error) or `km/h` (mean error, by bus-days).
        is_written: whether the programme as written publishes this grain.
        usable: how much of it has a predicted 90 % interval within a fifth; None of speeds.
        usable_first: the same of a first week, which has no earlier ones.
        is_published: whether the programme publishes it, as written or added up.
    """

    table: str
    grain: str
    estimates: float
    baselines: Mapping[str, float]
    unit: str
    is_written: bool
    usable: Usable | None = None
    usable_first: Usable | None = None
    is_published: bool = False

    @property
    def not_beaten(self) -> tuple[str, ...]:
        """Baselines that are nearly as good, or better."""
        return tuple(
            name for name, error in self.baselines.items() if self.estimates > _WORTH * error
        )

    @property
    def sentence(self) -> str:
        """Say whether this grain tells anything that the naive tables do not."""
        if not self.not_beaten:
            return f"{self.table}: {self.grain} beats every naive table."
        return (
            f"{self.table}: at {self.grain} a city of this size learns nothing that "
            f"{' or '.join(self.not_beaten)} does not tell ({self.estimates:.3g} {self.unit} "
            f"beside {min(self.baselines.values()):.3g})."
        )


def errors_of_counts(
    estimates: Floats, truth: Floats, old: Floats
) -> tuple[float, dict[str, float]]:
    """Return the error of estimates and of the naive tables, per cent; time is the last axis."""
    mean = np.broadcast_to(truth.mean(axis=tuple(range(truth.ndim - 1))), truth.shape)
    tables = {NOTHING: np.zeros(truth.shape), CITY_MEAN: mean, LAST_YEAR: old}
    errors = {name: 100 * relative_error(table, truth) for name, table in tables.items()}
    return 100 * relative_error(estimates, truth), errors


def grain_lines(rows: Sequence[GrainErrors]) -> Iterator[str]:
    """Yield the table, then the sentences."""
    heads = ("table", "grain", "estimates", *BASELINES, "not beaten", "usable")
    yield from table_lines(heads, map(_row, rows))
    yield ""
    yield from lead_lines(rows)
    yield from _sentences(rows)


def _row(row: GrainErrors) -> list[str]:
    """Return one grain as a row of the table."""
    figures = [row.estimates, *(row.baselines[name] for name in BASELINES)]
    shown = [f"{figure:.3g} {row.unit}" for figure in figures]
    grain = f"{row.grain}, as written" if row.is_written else row.grain
    return [row.table, grain, *shown, ", ".join(row.not_beaten), usable_text(row.usable)]


def usable_text(usable: Usable | None) -> str:
    """Say how much of a grain can be used; nothing of speeds."""
    return (
        "" if usable is None else f"{usable.counted:.0%} of taps, {usable.numbers:.0%} of numbers"
    )


def lead_lines(rows: Sequence[GrainErrors]) -> Iterator[str]:
    """Yield what to lead with: the finest grain of which nearly everything can be used.

    Args:
        rows: of each grain of places from the finest grain to the coarsest.
    """
    known = [(row, row.usable) for row in rows if row.usable is not None]
    fitting = [pair for pair in known if pair[1].counted >= MOSTLY]
    if not known:
        return
    row, usable = (fitting or [max(known, key=lambda pair: pair[1].counted)])[0]
    rest = "" if fitting else "; no grain reaches nine tenths of the taps"
    yield f"lead with {row.grain}: {usable_text(usable)} within a fifth of the value{rest}."


def _sentences(rows: Sequence[GrainErrors]) -> Iterator[str]:
    """Yield for each table the finest grain that says something, and whether the written one does.

    Args:
        rows: of each table from the finest grain to the coarsest.
    """
    for table in dict.fromkeys(row.table for row in rows):
        table_rows = [row for row in rows if row.table == table]
        finest = next((row for row in table_rows if not row.not_beaten), None)
        yield from (row.sentence for row in table_rows if row.is_written and row.not_beaten)
        if finest is None:
            yield f"{table}: no grain beats every naive table."
        else:
            yield f"{table}: the finest grain that beats every naive table: {finest.grain}."
