"""Utility against the truth, for the authority's own eyes: it never leaves the private zone.

The truth is every trip of the snapshot, before bound, noise and threshold, and with a cell for what
the programme drops as outside, so the report counts what bounding,
suppression and aggregation cost, not noise alone (PRIVACY 6.4 says why it is not published: it is
computed from raw data without a charge). Also the private planning tables of the Opal paper: its
error bound alpha, (k, gamma)-density (Asghar, Tyler & Kaafar 2017, Definition 7), dropped trips.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from turnstile.counting.exact_store import load_exact
from turnstile.errors import InputError
from turnstile.estimates.labelled import labelled
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline.after_seal import reconcile
from turnstile.pipeline.context import Release
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import Segment, layout
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Query, TableSpec, UnitBound
from turnstile.publishing.data_tables import stripped
from turnstile.publishing.package_reader import Tables
from turnstile.release.zones import write_atomically
from turnstile.service_calendar import ServiceWeek
from turnstile_design.markdown_tables import table_lines
from turnstile_design.private_reports.trip_bounds import (
    Counts,
    counts_under,
    left_out_by_rule,
    share,
    with_every_row,
)
from turnstile_design.private_reports.trip_questions import Frames, answer

REPORT = "utility_report.md"
ALPHA_BETA = 0.05
DENSE_FROM = (2, 5, 10, 18, 35, 100)
_EVERY_TRIP = UnitBound(ProtectionUnit.TRIP, 1)
_NO_TABLE = "the programme has no such table"
_NOT_TOLD = {
    Query.TOP_STATIONS_BY_HOUR: _NO_TABLE,
    Query.DAILY_TOTALS_BY_PLACE: "no such place, or no such table",
    Query.PEAK_SHARE: _NO_TABLE,
    Query.WEEK_ON_WEEK_CHANGE: "the week before was not released, or there is no such table",
}
_PRIVATE_FILE = 0o600


def write_report(release: Release) -> Path:
    """Write the report of a sealed week into its private folder and return the file.

    Raises:
        InputError: the programme counts no trips, or nothing is sealed yet.
    """
    if release.programme.source.feed.shape is not RowShape.TRIPS:
        rule = "the utility report is for programmes of trips"
        raise InputError(where=str(release.key), field="programme", rule=rule)
    if release.sealed is None:
        again = f"turnstile run {release.programme.name} --week {release.week}"
        rule = f"nothing is sealed; run {again} first"
        raise InputError(where=str(release.key), field="week", rule=rule)
    complete = with_every_row(release)
    truth = counts_under(complete, _EVERY_TRIP)
    lines = [
        f"# {release.key}: private, not for publication",
        "",
        "Computed from raw rows without a charge. Keep it in the private zone.",
        "What is chosen by it (a bound) is outside of the guarantee, as the release card says.",
        "",
        *_queries(release, complete, truth),
        "",
        *_dropped(release, complete, truth),
        "",
        *left_out_by_rule(release, sum(int(day.sum()) for day in next(iter(truth.values())))),
        *_density(truth),
        "",
        *_alpha(release),
    ]
    path = release.folders.private / REPORT
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    path.chmod(_PRIVATE_FILE)
    return path


def _queries(release: Release, complete: Release, truth: Counts) -> Iterator[str]:
    """Yield the answers to what the programme is meant for."""
    yield "## What it is meant for, published against true"
    yield ""
    now = _published(release), _true_frames(complete, truth)
    earlier = _week_before(release)
    before = None
    if earlier is not None and Query.WEEK_ON_WEEK_CHANGE in release.programme.meant_for:
        then = with_every_row(earlier)
        before = _published(earlier), _true_frames(then, counts_under(then, _EVERY_TRIP))
    rows = []
    for query in release.programme.meant_for:
        reply = answer(query, *now, before=before)
        shown = _NOT_TOLD[query] if reply.value is None else f"{reply.value:.4g}"
        rows.append((query, reply.measure, shown))
    yield from table_lines(("query", "measure", "value"), rows)


def _published(release: Release) -> Frames:
    """Read the values to use, which `reconcile` makes from sealed bytes."""
    reconcile(release)
    tables = Tables(release.folders.embargoed)
    return Frames({table.name: _values(tables, table) for table in release.programme.tables})


def _values(tables: Tables, table: TableSpec) -> pd.DataFrame:
    """Return the values of a drawn table by its own names of labels."""
    rows = tables.of_draw(table.name)
    names = {stripped(table.by)[0][name]: name for name in table.by} | {"value": "count"}
    kept = [name for name in rows.column_names if name in (*names, "service_date", "mode")]
    values: pd.DataFrame = rows.select(kept).to_pandas().rename(columns=names)
    return values


def _true_frames(release: Release, truth: Counts) -> Frames:
    """Label the true counts."""
    days = list(release.week.days)
    frames = {
        table.name: labelled(release.domain, table, days, {"count": truth[table.name]}).to_pandas()
        for table in release.programme.tables
    }
    return Frames(frames)


def _week_before(release: Release) -> Release | None:
    """Return the sealed release of the week before, if there is one."""
    if not isinstance(release.week, ServiceWeek):
        return None
    week = release.week.plus(-1)
    key = ReleaseKey(release.key.programme, str(week), 0)
    earlier = replace(release, week=week, key=key)
    return earlier if earlier.sealed is not None else None


def _dropped(release: Release, complete: Release, truth: Counts) -> Iterator[str]:
    """Yield the trips that bound, domain and threshold keep out of each table, by mode."""
    counted: Counts = {}
    digest = release.recorded("exact", step="count")
    for exact in load_exact(release.folders.private, digest):
        counted.setdefault(exact.table, []).append(exact.reveal_to_mechanism())
    threshold_of = {event.table: event.threshold for event in release.plan.events}
    yield "## Trips left out of each table, by mode and tap"
    yield ""
    rows = []
    for table in release.programme.tables:
        segments = (layout(variant.domain, table) for variant in (complete, release))
        for unbounded, segment in zip(*segments, strict=True):
            total = sum(int(_part(day, unbounded).sum()) for day in truth[table.name])
            kept = np.concatenate([_part(day, segment) for day in counted[table.name]])
            threshold = threshold_of[table.name]
            below = 0 if threshold is None else int(kept[kept < threshold].sum())
            shares = share(total - int(kept.sum()), total), share(below, total)
            rows.append((table.name, segment.mode, f"{total:,}", *shares))
    lost = ("not counted: bound, outside", "in cells below the threshold")
    yield from table_lines(("table", "mode", "trips", *lost), rows)


def _part(vector: NDArray[np.int64], segment: Segment) -> NDArray[np.int64]:
    """Return one mode's cells of a flat vector."""
    return vector[segment.offset : segment.offset + segment.cells]


def _density(truth: Counts) -> Iterator[str]:
    """Yield the share of trips in cells of at least k trips of their day."""
    yield "## (k, gamma)-density: share gamma of trips in cells of at least k trips"
    yield ""
    rows = []
    for name, days in truth.items():
        cells = np.concatenate(days)
        total = int(cells.sum())
        rows.append((name, *(share(int(cells[cells >= k].sum()), total) for k in DENSE_FROM)))
    yield from table_lines(("table", *(f"k = {k}" for k in DENSE_FROM)), rows)


def _alpha(release: Release) -> Iterator[str]:
    """Yield the paper's error bound of one query: it is passed with probability beta at most."""
    yield f"## alpha, the paper's error bound at beta = {ALPHA_BETA}"
    yield ""
    pure, gaussian = math.log(1 / ALPHA_BETA), math.sqrt(2 * math.log(2 / ALPHA_BETA))
    event_of = {event.table: event for event in release.plan.events}
    rows = (
        (name, f"{float(event.scale) * (pure if event.noise.record.is_pure else gaussian):.2f}")
        for name, event in event_of.items()
    )
    yield from table_lines(("table", "alpha"), rows)
