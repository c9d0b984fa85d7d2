"""Totals of each period with their errors, for the plot of a series."""

from __future__ import annotations

import numpy as np

from turnstile.publishing.contents import NORMAL_95
from turnstile.publishing.data_tables import labels_of
from turnstile.publishing.package_reader import Tables

_BUSES, _SLOTS = "buses", "bus-slots"  # a bus counts in each slot and place


def totals_of(package: Tables, period: str) -> list[dict[str, object]]:
    """Return the totals of one package: `period`, `mode`, `what`, `total`, `half_width_95`.

    Tap-ons by mode, or bus-days that are added up over slots; none where it has neither.
    """
    from turnstile.publishing.week.numbers import day_totals  # pandas, for a package that is new

    days = day_totals(package)
    if not days.empty:
        days["variance"] = days["deviation"] ** 2
        summed = days.groupby("mode")[["value", "variance"]].sum()
        return [
            _total(period, str(mode), "tap-ons", row["value"], row["variance"])
            for mode, row in summed.iterrows()
        ]
    for draw in package.card["draws"]:
        if draw["statistic"] == _BUSES and draw["threshold"] is None:
            rows = package.of_draw(draw["table"], _BUSES)
            buses = rows["measured"].to_numpy()
            variance = buses.size * draw["standard_deviation"] ** 2
            places = [name for name in labels_of(rows.column_names) if name != "slot"]
            what = f"{_SLOTS} by {' and '.join(places)}"
            return [_total(period, "bus", what, int(np.sum(buses)), variance)]
    return []


def _total(period: str, mode: str, what: str, value: float, variance: float) -> dict[str, object]:
    half = NORMAL_95 * float(variance) ** 0.5
    named: dict[str, object] = {"period": period, "mode": mode, "what": what}
    return named | {"total": round(float(value), 1), "half_width_95": round(half, 1)}
