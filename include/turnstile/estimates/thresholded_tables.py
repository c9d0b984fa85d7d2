"""Thresholded histograms as people read them: released counts alone, in the fixed public order.

Nothing is reconciled: what was suppressed is missing from every sum. A cell without a row says that
its noisy number was below the threshold or that nobody was there, and not which.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from turnstile.arrow_columns import column
from turnstile.estimates.labelled import labelled
from turnstile.release.drawn import Drawn


def thresholded_tables(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the released rows of every table."""
    tables = {}
    for table in drawn.programme.tables:
        vectors = drawn.vectors(table, "count")
        deviation = round(math.sqrt(drawn.variance(table, "count")), 4)
        columns = {
            "count": list(vectors.values()),
            "standard_deviation": [np.full(v.size, deviation) for v in vectors.values()],
        }
        tables[table.name] = released(labelled(drawn.domain, table, list(vectors), columns))
    return tables


def released(table: pa.Table) -> pa.Table:
    """Return a thresholded table without the rows that hold nothing."""
    return table.filter(pc.greater(table["count"], 0))


def synthetic_rows(table: pa.Table) -> pa.Table:
    """Return the source's output form: each row as many times as its count, in the same order."""
    counts = table["count"].to_numpy()
    rows = np.repeat(np.arange(counts.size, dtype=np.int64), np.maximum(counts, 0))
    labels = [name for name in table.column_names if not _is_number(table.schema.field(name).type)]
    return table.select(labels).take(column(rows))


def _is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers, not labels."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
