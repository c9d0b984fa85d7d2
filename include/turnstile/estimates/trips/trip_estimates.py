"""Estimates of a week of trips as tables: every published table again, with borrowed strength.

A pure function of published numbers (`release.numbers`): an outsider makes the same bytes. Errors
are calibrated for each quantity over all modes, tap-ons and tap-offs together, and for each mode as
far as its own numbers tell (`error_model`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.estimates.fitting.error_model import (
    USUAL,
    ErrorModel,
    ErrorTerms,
    Judged,
    calibrated,
)
from turnstile.estimates.intervals import BEYOND_0, LEVELS, PARTS, error_by_size, interval
from turnstile.estimates.labelled import labelled
from turnstile.estimates.published_tables import (
    FINEST_FIRST,
    PARTS_OF,
    Part,
    PublishedTable,
    Quantity,
    edges_of,
    published_tables,
    values_of,
)
from turnstile.estimates.trips.mode_estimates import (
    ModeEstimates,
    estimates_by_mode,
    judged_numbers,
    numbers_of,
)
from turnstile.estimates.trips.trip_sums import trip_correlations
from turnstile.estimates.trips.trip_weeks import days_with_input
from turnstile.estimates.week_to_estimate import WeekToEstimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Tables of estimates, and what is known of their errors.

    Args:
        tables: by name.
        errors: of each table by size of number, plain values for the card.
        correlations: how far the errors of each table's numbers go together (`sum_errors`), plain
            values for the card; a table without an entry has no interval for sums.
    """

    tables: Mapping[str, pa.Table]
    errors: Mapping[str, list[dict[str, Any]]]
    correlations: Mapping[str, Sequence[dict[str, Any]]]


def trip_estimates(week: WeekToEstimate) -> Estimates:
    """Return the estimates of a week of trips; no table of taps whose cells were not drawn."""
    results = tuple(estimates_by_mode(week))
    drawn = {result.drawn.taps for result in results}
    published = [
        table for table in published_tables(week.promise, week.domain) if table.taps in drawn
    ]
    tables, errors, correlations = {}, {}, {}
    models: dict[Quantity, ErrorModel | None] = {}
    for quantity in sorted({table.quantity for table in published}, key=FINEST_FIRST.index):
        group = [table for table in published if table.quantity == quantity]
        model = models[quantity] = _model(group, results, models)
        shares = trip_correlations(week, group, results, model)
        for published_table in group:
            correlations[published_table.table.name] = shares
            mode_results = [
                result for result in results if result.drawn.taps == published_table.taps
            ]
            tables[published_table.table.name], errors[published_table.table.name] = _table(
                week, published_table, mode_results, model
            )
    names = [table.table.name for table in published]
    ordered = ({name: of[name] for name in names} for of in (tables, errors, correlations))
    return Estimates(*ordered)


def _model(
    tables: Sequence[PublishedTable],
    results: Sequence[ModeEstimates],
    models: Mapping[Quantity, ErrorModel | None],
) -> ErrorModel | None:
    """Calibrate the errors of a quantity; None for totals, whose error is declared.

    Args:
        tables: of the quantity.
        results: of every mode's taps.
        models: of finer quantities.
    """
    quantity, blocks = tables[0].quantity, {table.taps: table.blocks for table in tables}
    if quantity[0] is Part.TOTALS:
        return None
    judged = [
        judged_numbers(result, quantity, blocks[result.drawn.taps][result.drawn.mode])
        for result in results
    ]
    finer = models.get(PARTS_OF.get(quantity, quantity))
    return calibrated(
        Judged(
            _joined([part.numbers for part in judged]),
            np.concatenate([part.unbiased for part in judged]),
            np.concatenate([part.slopes for part in judged]),
        ),
        len(edges_of(quantity)) + 1,
        np.array(USUAL) if finer is None else finer.kappa,
        unseen_sds=2.0 if quantity[0] is Part.CELLS else 1.0,  # a small mode may be hidden in cells
    )


def _joined(parts: Sequence[ErrorTerms]) -> ErrorTerms:
    """Put numbers together."""
    return ErrorTerms(
        *(
            np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(ErrorTerms)
        )
    )


def _table(
    week: WeekToEstimate,
    table: PublishedTable,
    results: Sequence[ModeEstimates],
    model: ErrorModel | None,
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return one labelled table, and its errors by size."""
    variances, classes = [], []
    by_mode = []
    for result in results:  # in the domain's order of modes
        blocks = table.blocks[result.drawn.mode]
        numbers = numbers_of(result, table.quantity, blocks)
        variances.append(numbers.noise_variance if model is None else model.variances(numbers))
        classes.append(numbers.classes)
        shape = values_of(result.estimates, table.quantity, blocks).shape
        columns = _columns(numbers.estimates, variances[-1])
        by_mode.append({name: values.reshape(shape) for name, values in columns.items()})
    days, kept = week.numbers.days, days_with_input(week.numbers)
    written = {
        name: [
            _of_day(columns[name], kept.index(n) if n in kept else None)
            for n in range(len(days))
            for columns in by_mode
        ]
        for name in by_mode[0]
    }
    errors = error_by_size(
        np.concatenate(variances), np.concatenate(classes), edges_of(table.quantity)
    )
    return labelled(table.domain, table.table, days, written), errors


def _columns(estimates: Floats, variances: Floats) -> dict[str, Floats]:
    """Return the published columns, each shape (numbers,)."""
    columns = {"estimate": np.rint(estimates * PARTS) / PARTS}
    for level in LEVELS:
        ends = interval(columns["estimate"], np.sqrt(variances), level=level, beyond=BEYOND_0)
        columns[f"low_{level}"], columns[f"high_{level}"] = ends
    return columns


def _of_day(values: Floats, day: int | None) -> Floats:
    """Return the numbers of one day, slots first; none on a gap."""
    if day is None:
        return np.full(values[:, 0].size, np.nan)
    return values[:, day].T.ravel()
