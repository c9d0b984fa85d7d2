"""Estimates of any week, and the record of them that stands in the release card.

What a reader needs to make the same bytes is in the record: the model's name, the weeks that went
in by their digests, and what of the programme the model depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from turnstile.estimates.intervals import BEYOND_0
from turnstile.estimates.labelled import with_gap_days
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.measures.registry import Measure
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec

if TYPE_CHECKING:
    from turnstile.estimates.trips.trip_estimates import Estimates

MODEL = "shrunken singular values with earlier weeks, version 14"
FOLDER = "estimates"
RECORD = "record.json"
EARLIER_AT_MOST = 8  # weeks: older ones are of another season
_READ_AS = (
    "Estimates borrow strength from like places, days and weeks, and are biased to the usual: a "
    "burst of a quarter of an hour of up to four standard deviations of the noise is mostly lost, "
    "and its interval misses it. For sums and changes take the column unbiased, or measured."
)
_WITHHELD = (
    "means of cells in which perhaps no bus passed, and all means of cells where their errors hide "
    "how they differ; every count has an interval"
)


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """A published release that estimates were made with.

    Args:
        key: release key.
        manifest_sha256: of its manifest, which fixes every file of it.
    """

    key: str
    manifest_sha256: str


def estimates_of(week: WeekToEstimate) -> Estimates:
    """Return the estimates of a week; none of a thresholded one, which left out what it needs."""
    # What fits loads SciPy; whoever reads or copies estimates needs none of it.
    from turnstile.estimates.flows.flow_estimates import flow_tables
    from turnstile.estimates.trips.trip_estimates import Estimates, trip_estimates
    from turnstile.estimates.vehicles.telemetry_estimates import telemetry_estimates

    if not week.promise.is_dense:
        return Estimates({}, {}, {})
    is_telemetry = week.promise.shape is RowShape.TELEMETRY
    estimates = (telemetry_estimates if is_telemetry else trip_estimates)(week)
    estimates = replace(estimates, tables={**estimates.tables, **flow_tables(week)})
    gaps = week.numbers.gaps
    return replace(
        estimates,
        tables={name: with_gap_days(rows, gaps) for name, rows in estimates.tables.items()},
    )


def record_of(
    week: WeekToEstimate, earlier: Sequence[EarlierRelease], estimates: Estimates
) -> dict[str, Any]:
    """Return the record of a week's estimates as plain values."""
    return {
        "model": MODEL,
        "read_as": _READ_AS,
        "withheld": _WITHHELD,
        "beyond_0": BEYOND_0,
        "seed_sha256": week.seed,
        "earlier": [
            {"release": release.key, "manifest_sha256": release.manifest_sha256}
            for release in earlier
        ],
        "promise": promise_values(week.promise),
        "errors": {name: list(lines) for name, lines in estimates.errors.items()},
        "correlations": {name: list(lines) for name, lines in estimates.correlations.items()},
    }


def earlier_releases(record: dict[str, Any]) -> tuple[EarlierRelease, ...]:
    """Return the releases that a record names."""
    return tuple(
        EarlierRelease(release["release"], release["manifest_sha256"])
        for release in record["earlier"]
    )


def draws_alike(record: dict[str, Any], promise: Promise) -> bool:
    """Return whether a release drew every table of a promise, over the same ranges.

    Args:
        record: of its estimates.
        promise: of a release that would borrow from it.
    """
    earlier, now = record["promise"], promise_values(promise)
    return all(
        table in earlier.get(kind, ())
        for kind in ("tables", "flows", "totals")
        for table in now.get(kind, ())
    )


def promise_from(record: dict[str, Any]) -> Promise:
    """Return what of the programme a record says that the estimates depend on."""
    stated = record["promise"]
    return Promise(
        shape=RowShape(stated["shape"]),
        tables=_tables_from(stated["tables"]),
        slot_minutes=stated["slot_minutes"],
        shares_total=stated["shares_total"],
        is_dense=stated["is_dense"],
        flows=_tables_from(stated.get("flows", [])),
        regions=stated.get("regions", {}),
        totals=_tables_from(stated.get("totals", [])),
    )


def _tables_from(stated: list[dict[str, Any]]) -> tuple[TableSpec, ...]:
    """Return the tables that a record states."""
    return tuple(
        TableSpec(
            table["name"],
            tuple(table["by"]),
            Measure(table["measure"]),
            table["clamp_kmh"],
            tuple(table["limits_kmh"]),
            clamp_minutes=table.get("clamp_minutes"),
            classes=tuple(table.get("classes", ())),
        )
        for table in stated
    )


def promise_values(promise: Promise) -> dict[str, Any]:
    """Return a promise as a record states it."""
    flows = {"flows": _tables_values(promise.flows)} if promise.flows else {}
    regions = {"regions": dict(promise.regions)} if promise.regions else {}
    totals = {"totals": _tables_values(promise.totals)} if promise.totals else {}
    return {
        "shape": str(promise.shape),
        "slot_minutes": promise.slot_minutes,
        "shares_total": promise.shares_total,
        "is_dense": promise.is_dense,
        "tables": _tables_values(promise.tables),
        **flows,
        **regions,
        **totals,
    }


def _tables_values(tables: tuple[TableSpec, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": table.name,
            "by": list(table.by),
            "measure": str(table.measure),
            "clamp_kmh": table.clamp_kmh,
            "limits_kmh": list(table.limits_kmh),
        }
        | ({"clamp_minutes": table.clamp_minutes} if table.clamp_minutes else {})
        | ({"classes": list(table.classes)} if table.classes else {})
        for table in tables
    ]
