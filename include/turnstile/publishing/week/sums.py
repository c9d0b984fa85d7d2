"""Sums of any set of published cells, with an interval of their own: intervals never add up.

The sum of estimates with the interval that `sums.py` of every package gives it, and the unbiased
sum of the drawn numbers, whose noise is declared and independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from turnstile.errors import InputError
from turnstile.estimates.combined_noise import Noise, SumError, integer_sum_error
from turnstile.estimates.week_estimates import FOLDER
from turnstile.publishing.carried.sums import Package as Estimated
from turnstile.publishing.carried.sums import Sum
from turnstile.publishing.package_reader import read_package

_COUNT = "count"


@dataclass(frozen=True, slots=True)
class CellSum:
    """The sum of some cells of one table.

    Args:
        cells: how many.
        estimate: sum of their estimates, with its interval; None if the package has none.
        unbiased: sum of their drawn numbers.
        error: of the unbiased sum.
    """

    cells: int
    estimate: Sum | None
    unbiased: int
    error: SumError


def sum_of(folder: Path, table: str, where: Mapping[str, frozenset[str]]) -> CellSum:
    """Return the sum of the cells of a table whose labels are among those asked for.

    Args:
        folder: package.
        table: one that was drawn.
        where: labels by column; a column that is not named is not restricted.

    Raises:
        InputError: no such table, column or cell.
    """
    package = read_package(folder)
    counts = {
        event.table: event
        for event in package.draw_by_label.values()
        if event.statistic == _COUNT and event.threshold is None
    }
    event = counts.get(table)
    if event is None:
        rule = f"{table!r} is no dense table of counts; there are {', '.join(counts) or 'none'}"
        raise InputError(where=str(folder), field="--table", rule=rule)
    drawn = package.tables[table]
    chosen = _chosen(drawn, where)
    cells = int(chosen.sum())
    if not cells:
        raise InputError(where=str(folder), field="--where", rule="no cell has these labels")
    estimate = None
    if (folder / FOLDER / f"{table}.csv").exists():
        estimate = Estimated(folder).total(
            f"{FOLDER}/{table}", lambda row: all(row[name] in where[name] for name in where)
        )
    unbiased = int(drawn.column(_COUNT).to_numpy()[chosen].sum())
    return CellSum(
        cells, estimate, unbiased, integer_sum_error(Noise(event.noise, event.scale), cells)
    )


def _chosen(rows: pa.Table, where: Mapping[str, frozenset[str]]) -> NDArray[np.bool_]:
    """Mark the rows whose labels are asked for."""
    chosen = np.ones(len(rows), dtype=np.bool_)
    for name, labels in where.items():
        if name not in rows.column_names or name == _COUNT:
            rule = f"the table has no label {name!r}; it has {', '.join(rows.column_names[:-1])}"
            raise InputError(where="--where", field=name, rule=rule)
        column = rows.column(name).cast(pa.string())
        chosen &= pc.is_in(column, value_set=pa.array(sorted(labels))).to_numpy()
    return chosen
