"""The queries that a release of trips is meant for, answered from published and from true tables.

Suppressed and aggregated cells count: a cell without a row answers 0. Both arguments are frames of
one table with the columns `service_date`, `mode`, labels, `count`. Nothing here is published: a
comparison with the truth is private (PRIVACY 6.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnstile.programme.domain.public_domain import UNKNOWN
from turnstile.programme.spec import Query

if TYPE_CHECKING:
    import pandas as pd

TOP = 5
_BUSY_LEAST = 100  # trips; below, a relative error says little
_PEAK_HOURS = ("07", "08", "16", "17")
Before = tuple["Frames", "Frames"] | None


class _NoTableError(Exception):
    """A table that a query needs is not there."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Tables of one week by name, published or true."""

    tables: Mapping[str, pd.DataFrame]

    def of(self, *axes: str) -> pd.DataFrame:
        """Return the table with these dimensions; of one mode, with its column.

        Raises:
            _NoTableError: there is none.
        """
        for frame in self.tables.values():
            dimensions = [name for name in frame.columns if name.startswith("tap_")]
            if tuple(dimensions) == axes:
                return frame if "mode" in frame else frame.assign(mode="the only one")
        raise _NoTableError


@dataclass(frozen=True, slots=True)
class Answer:
    """How far a query's published answer lies from the true one.

    Args:
        measure: what the number says.
        value: of the measure; None where it cannot be computed.
    """

    measure: str
    value: float | None


def answer(
    query: Query, published: Frames, truth: Frames, *, before: tuple[Frames, Frames] | None = None
) -> Answer:
    """Return how well a query is answered.

    Args:
        query: one of `meant_for`.
        published: presented tables.
        truth: counts of all trips, without bound or noise.
        before: the same two of the week before; None if it was not released.
    """
    measure, error_of = _MEASURES[query]
    try:
        return Answer(measure, error_of(published, truth, before))
    except _NoTableError:
        return Answer(measure, None)


def _top(published: Frames, truth: Frames, _: Before) -> float | None:
    """Share of the true busiest places of each day, mode and hour that are named."""
    named, true = (
        _by_hour(frames.of("tap_on_slot", "tap_on_location")) for frames in (published, truth)
    )
    hits = sum(len(places & named.get(key, set())) for key, places in true.items())
    asked = sum(map(len, true.values()))
    return hits / asked if asked else None


def _by_hour(table: pd.DataFrame) -> dict[object, set[str]]:
    """Return the busiest places of every day, mode and hour; only those with any trip."""
    rows = table[(table["count"] > 0) & (table["tap_on_location"] != UNKNOWN)]
    keys = ["service_date", "mode", "hour", "tap_on_location"]
    rows = rows.assign(hour=rows["tap_on_slot"].astype(str).str[:2])
    sums = rows.groupby(keys, observed=True)["count"].sum().reset_index()
    sums = sums.sort_values(["count", "tap_on_location"], ascending=[False, True])
    first = sums.groupby(keys[:3], observed=True).head(TOP)
    return {
        key: set(part["tap_on_location"]) for key, part in first.groupby(keys[:3], observed=True)
    }


def _totals(published: Frames, truth: Frames, _: Before) -> float | None:
    """Median relative error of daily totals of places with at least 100 trips."""
    keys = ["service_date", "mode", "tap_on_location"]
    counted, true = (
        frames.of("tap_on_location").set_index(keys)["count"] for frames in (published, truth)
    )
    busy = true[true >= _BUSY_LEAST]
    error = (counted.reindex(busy.index).fillna(0) - busy).abs() / busy
    return float(error.median()) if len(busy) else None


def _peak(published: Frames, truth: Frames, _: Before) -> float:
    """Mean absolute error of the share of tap-ons in the peaks, by day and mode."""
    shares = []
    for frames in (published, truth):
        table = frames.of("tap_on_slot")
        is_peak = table["tap_on_slot"].astype(str).str[:2].isin(_PEAK_HOURS)
        keys = ["service_date", "mode"]
        peak = table[is_peak].groupby(keys, observed=True)["count"].sum()
        shares.append(peak / table.groupby(keys, observed=True)["count"].sum())
    return float((shares[0].reindex(shares[1].index).fillna(0) - shares[1]).abs().mean())


def _change(published: Frames, truth: Frames, before: Before) -> float | None:
    """Root mean square error of the change of a place's week, in trips."""
    if before is None:
        return None
    changes = [
        _week_of(now).sub(_week_of(then), fill_value=0)
        for now, then in zip((published, truth), before, strict=True)
    ]
    error = changes[0].sub(changes[1], fill_value=0)
    return float((error**2).mean() ** 0.5)


def _week_of(frames: Frames) -> pd.Series:
    """Return the week's tap-ons of each mode and place."""
    table = frames.of("tap_on_location")
    return table.groupby(["mode", "tap_on_location"], observed=True)["count"].sum()


_MEASURES: dict[Query, tuple[str, Callable[[Frames, Frames, Before], float | None]]] = {
    Query.TOP_STATIONS_BY_HOUR: (
        f"share of the {TOP} busiest places of an hour that are named",
        _top,
    ),
    Query.DAILY_TOTALS_BY_PLACE: (
        f"median relative error of a place's day of {_BUSY_LEAST} trips or more",
        _totals,
    ),
    Query.PEAK_SHARE: (
        "mean error of the share of tap-ons at 7-9 and 16-18 hours, by day and mode",
        _peak,
    ),
    Query.WEEK_ON_WEEK_CHANGE: ("RMSE of the change of a place's week, trips", _change),
}
