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


@dataclass(frozen=True, slots=True)
class Frames:
    """Tables of one week by name, published or true."""

    tables: Mapping[str, pd.DataFrame]

    def of(self, *axes: str) -> pd.DataFrame | None:
        """Return the table with these dimensions, if there is one; of one mode, with its column."""
        for frame in self.tables.values():
            dimensions = [name for name in frame.columns if name.startswith("tap_")]
            if tuple(dimensions) == axes:
                return frame if "mode" in frame else frame.assign(mode="the only one")
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    """How far a query's published answer lies from the true one.

    Args:
        query: what was asked.
        measure: what the number says.
        value: of the measure; None where it cannot be computed.
    """

    query: Query
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
    if query is Query.WEEK_ON_WEEK_CHANGE:
        return _change(published, truth, before)
    return _ANSWERS[query](published, truth)


def _top(published: Frames, truth: Frames) -> Answer:
    """Share of the true busiest places of each day, mode and hour that are named."""
    measure = f"share of the {TOP} busiest places of an hour that are named"
    tables = [frames.of("tap_on_slot", "tap_on_location") for frames in (published, truth)]
    named, true = (None if table is None else _by_hour(table) for table in tables)
    if named is None or true is None:
        return Answer(Query.TOP_STATIONS_BY_HOUR, measure, None)
    hits, asked = 0, 0
    for key, places in true.items():
        hits += len(places & named.get(key, set()))
        asked += len(places)
    return Answer(Query.TOP_STATIONS_BY_HOUR, measure, hits / asked if asked else None)


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


def _totals(published: Frames, truth: Frames) -> Answer:
    """Median relative error of daily totals of places with at least 100 trips."""
    measure = f"median relative error of a place's day of {_BUSY_LEAST} trips or more"
    joined = _joined(published.of("tap_on_location"), truth.of("tap_on_location"))
    if joined is None:
        return Answer(Query.DAILY_TOTALS_BY_PLACE, measure, None)
    busy = joined[joined["true"] >= _BUSY_LEAST]
    error = ((busy["published"] - busy["true"]).abs() / busy["true"]).median()
    return Answer(Query.DAILY_TOTALS_BY_PLACE, measure, float(error) if len(busy) else None)


def _peak(published: Frames, truth: Frames) -> Answer:
    """Mean absolute error of the share of tap-ons in the peaks, by day and mode."""
    measure = "mean error of the share of tap-ons at 7-9 and 16-18 hours, by day and mode"
    shares = []
    for frames in (published, truth):
        table = frames.of("tap_on_slot")
        if table is None:
            return Answer(Query.PEAK_SHARE, measure, None)
        is_peak = table["tap_on_slot"].astype(str).str[:2].isin(_PEAK_HOURS)
        keys = ["service_date", "mode"]
        peak = table[is_peak].groupby(keys, observed=True)["count"].sum()
        shares.append(peak / table.groupby(keys, observed=True)["count"].sum())
    error = (shares[0].reindex(shares[1].index).fillna(0) - shares[1]).abs().mean()
    return Answer(Query.PEAK_SHARE, measure, float(error))


def _change(published: Frames, truth: Frames, before: tuple[Frames, Frames] | None) -> Answer:
    """Root mean square error of the change of a place's week, in trips."""
    measure = "RMSE of the change of a place's week, trips"
    if before is None:
        return Answer(Query.WEEK_ON_WEEK_CHANGE, measure, None)
    changes = []
    for now, then in ((published, before[0]), (truth, before[1])):
        this, last = _week_of(now), _week_of(then)
        if this is None or last is None:
            return Answer(Query.WEEK_ON_WEEK_CHANGE, measure, None)
        changes.append(this.sub(last, fill_value=0))
    error = changes[0].sub(changes[1], fill_value=0)
    return Answer(Query.WEEK_ON_WEEK_CHANGE, measure, float((error**2).mean() ** 0.5))


def _week_of(frames: Frames) -> pd.Series | None:
    """Return the week's tap-ons of each mode and place; None without a table of places."""
    table = frames.of("tap_on_location")
    if table is None:
        return None
    return table.groupby(["mode", "tap_on_location"], observed=True)["count"].sum()


def _joined(published: pd.DataFrame | None, truth: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return true and published counts side by side; 0 where a row is missing."""
    if published is None or truth is None:
        return None
    keys = ["service_date", "mode", *[name for name in truth.columns if name.startswith("tap_")]]
    left = truth.set_index(keys)["count"].rename("true")
    right = published.set_index(keys)["count"].rename("published")
    return left.to_frame().join(right, how="left").fillna({"published": 0})


_ANSWERS: dict[Query, Callable[[Frames, Frames], Answer]] = {
    Query.TOP_STATIONS_BY_HOUR: _top,
    Query.DAILY_TOTALS_BY_PLACE: _totals,
    Query.PEAK_SHARE: _peak,
}
