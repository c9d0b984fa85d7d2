"""From noisy vectors to labelled tables: as drawn, and as people read them. Post-processing.

Nothing here sees an exact number, so nothing here costs anything.
"""

from __future__ import annotations

import pyarrow as pa

from turnstile.estimates.labelled import labelled, with_gap_days
from turnstile.estimates.thresholded_tables import released
from turnstile.estimates.trips.trip_tables import trip_tables
from turnstile.estimates.vehicles.telemetry_tables import telemetry_tables
from turnstile.estimates.year_to_date import gaps_of_rows
from turnstile.programme.source_spec import RowShape
from turnstile.release.drawn import Drawn


def measurements(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the noisy integers as they were drawn, labelled; gaps are marked."""
    tables = {}
    for table in drawn.programme.tables:
        by_statistic = {name: drawn.vectors(table, name) for name in table.statistics}
        days = list(next(iter(by_statistic.values())))
        columns = {name: [vectors[day] for day in days] for name, vectors in by_statistic.items()}
        rows = labelled(drawn.domain, table, days, columns)
        tables[table.name] = with_gap_days(rows, drawn.artefact.gaps)
        if drawn.programme.mechanism.kind.is_thresholded:
            tables[table.name] = released(tables[table.name])
    return tables


def presented(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the tables that people read, with the error of every number; gaps are marked."""
    is_trips = drawn.programme.source.feed.shape is RowShape.TRIPS
    tables = trip_tables(drawn) if is_trips else telemetry_tables(drawn)
    return {name: with_gap_days(rows, gaps_of_rows(drawn, name)) for name, rows in tables.items()}
