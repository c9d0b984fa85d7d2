"""Utility against the truth, for the authority's own eyes: it never leaves the private zone.

The truth is every trip, before bound, noise and threshold, so the report counts what bounding,
suppression and aggregation cost, not noise alone (PRIVACY 6.4 says why it is not published: it is
computed from raw data without a charge). Also the private planning tables of the Opal paper: its
error bound alpha, (k, gamma)-density (Asghar, Tyler & Kaafar 2017, Definition 7), dropped trips.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from turnstile.counting.exact_store import load_exact
from turnstile.counting.tables import count as count_rows
from turnstile.errors import InputError
from turnstile.ledger.records import ReleaseKey
from turnstile.planning.trip_queries import Answer, Frames, answer
from turnstile.privacy.events import NoiseFamily
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain import layout
from turnstile.programme.spec import Query, RowShape, UnitBound
from turnstile.publishing.labelled import labelled
from turnstile.release.context import Release
from turnstile.release.inputs import current_snapshot, recorded
from turnstile.release.outputs import reconcile
from turnstile.release.zones import bounding_secret, write_atomically
from turnstile.service_calendar import ServiceWeek

REPORT = "utility_report.md"
ALPHA_BETA = 0.05
DENSE_FROM = (2, 5, 10, 18, 35, 100)
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
        rule = f"nothing is sealed; run turnstile run {release.programme.name} first"
        raise InputError(where=str(release.key), field="week", rule=rule)
    truth = _true_tables(release)
    lines = [
        f"# {release.key}: private, not for publication",
        "",
        "Computed from raw rows without a charge. Keep it in the private zone.",
        "",
        *_queries(release, truth),
        "",
        *_dropped(release, truth),
        "",
        *_density(truth),
        "",
        *_alpha(release),
    ]
    path = release.folders.private / REPORT
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    path.chmod(_PRIVATE_FILE)
    return path


def _true_tables(release: Release) -> dict[str, list[np.ndarray]]:
    """Count every trip into the public cells, day by day."""
    free = replace(release.programme, units=(UnitBound(ProtectionUnit.TRIP, 1),))
    with tempfile.TemporaryDirectory(dir=release.folders.private, prefix="report-") as work:
        tables = count_rows(
            free,
            release.domain,
            release.week.days,
            current_snapshot(release).folder / "rows",
            secret=bounding_secret(release.settings),
            work=Path(work),
            progress=lambda _: None,
        )
    found: dict[str, list[np.ndarray]] = {}
    for table in tables:
        found.setdefault(table.table, []).append(table.reveal_to_mechanism())
    return found


def _queries(release: Release, truth: dict[str, list[np.ndarray]]) -> Iterator[str]:
    """Yield the answers to what the programme is meant for."""
    yield "## What it is meant for, published against true"
    yield ""
    yield "| query | measure | value |"
    yield "|---|---|---|"
    now = _published(release), _true_frames(release, truth)
    earlier = _week_before(release)
    before = None
    if earlier is not None and Query.WEEK_ON_WEEK_CHANGE in release.programme.meant_for:
        before = _published(earlier), _true_frames(earlier, _true_tables(earlier))
    for query in release.programme.meant_for:
        found: Answer = answer(query, *now, before=before)
        shown = "the week before was not released" if found.value is None else f"{found.value:.4g}"
        yield f"| {query} | {found.measure} | {shown} |"


def _published(release: Release) -> Frames:
    """Read the presented tables, which `reconcile` makes from sealed bytes."""
    reconcile(release)
    folder = release.folders.embargoed / "tables"
    names = [table.name for table in release.programme.tables]
    return Frames({name: pq.read_table(folder / f"{name}.parquet").to_pandas() for name in names})


def _true_frames(release: Release, truth: dict[str, list[np.ndarray]]) -> Frames:
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


def _dropped(release: Release, truth: dict[str, list[np.ndarray]]) -> Iterator[str]:
    """Yield the trips that bound and threshold keep out of each table, by mode."""
    counted: dict[str, list[np.ndarray]] = {}
    digest = recorded(release, "exact", step="count")
    for exact in load_exact(release.folders.private, digest):
        counted.setdefault(exact.table, []).append(exact.reveal_to_mechanism())
    cuts = {event.table: event.threshold for event in release.plan.events}
    yield "## Trips left out of each table, by mode and side"
    yield ""
    yield "| table | mode | trips | not counted: bound | in cells below the cut |"
    yield "|---|---|---|---|---|"
    for table in release.programme.tables:
        for segment in layout(release.domain, table):
            part = slice(segment.offset, segment.offset + segment.cells)
            true = np.concatenate([day[part] for day in truth[table.name]])
            kept = np.concatenate([day[part] for day in counted[table.name]])
            total, cut = int(true.sum()), cuts[table.name]
            below = 0 if cut is None else int(kept[kept < cut].sum())
            shares = [_share(total - int(kept.sum()), total), _share(below, total)]
            yield f"| {table.name} | {segment.mode} | {total:,} | " + " | ".join(shares) + " |"


def _share(part: int, whole: int) -> str:
    """Return a share in per cent."""
    return f"{part / whole:.2%}" if whole else "no trip"


def _density(truth: dict[str, list[np.ndarray]]) -> Iterator[str]:
    """Yield the share of trips in cells of at least k trips of their day."""
    yield "## (k, gamma)-density: share gamma of trips in cells of at least k trips"
    yield ""
    yield "| table | " + " | ".join(f"k = {k}" for k in DENSE_FROM) + " |"
    yield "|---|" + "---|" * len(DENSE_FROM)
    for name, days in truth.items():
        cells = np.concatenate(days)
        total = int(cells.sum())
        shares = [_share(int(cells[cells >= k].sum()), total) for k in DENSE_FROM]
        yield f"| {name} | " + " | ".join(shares) + " |"


def _alpha(release: Release) -> Iterator[str]:
    """Yield the paper's error bound of one query: it is passed with probability beta at most."""
    yield f"## alpha, the paper's error bound at beta = {ALPHA_BETA}"
    yield ""
    yield "| table | alpha |"
    yield "|---|---|"
    for event in {event.table: event for event in release.plan.events}.values():
        if event.noise is NoiseFamily.DISCRETE_LAPLACE:
            bound = float(event.scale) * math.log(1 / ALPHA_BETA)
        else:
            bound = float(event.scale) * math.sqrt(2 * math.log(2 / ALPHA_BETA))
        yield f"| {event.table} | {bound:.2f} |"
