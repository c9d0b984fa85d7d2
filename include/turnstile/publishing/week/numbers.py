"""What the report shows of a week, from published tables alone: values with their intervals.

Sums of values have the interval that `sums.py` gives them; a package without estimates, and
changes between weeks, which estimates would make too small, are shown by unbiased numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from turnstile.estimates.table_names import PLACES
from turnstile.estimates.usable import MOSTLY, Grade, Usable
from turnstile.publishing.carried.sums import Sum
from turnstile.publishing.contents import NORMAL_95, Contents, TableFile, label_of, once
from turnstile.publishing.data_tables import DAY, MODE, TAP, USABLE, VALUE, Layout
from turnstile.publishing.package_reader import Tables, texts_of, where
from turnstile.publishing.series.dataset import terms_in
from turnstile.publishing.week.claims import discoveries
from turnstile.publishing.week.sums import Sums, as_texts

_ON = {TAP: "on"}
_PLACES = ("location", "region", "cell", "route", "stop", "vehicle_trip")
_TIMES = ("hour", "slot")
_MOST_WITHHELD = 0.5  # of the intervals of a picture's estimates
_HALF = 0.5  # of what places count: else the network comes first
_FAR = 3.0  # standard deviations above a threshold, where it decides next to nothing


@once
def by_location(contents: Contents) -> pd.DataFrame:
    """Return the week's number of each location (trips), or cell or route (buses), largest first.

    Columns: `mode` (trips), `label`, `value`, and `low` and `high`, its 95 % interval, not numbers
    where it is withheld. Of buses: bus-days, or buses a day in estimates.
    """
    place = label_of(contents)
    if (name := _estimates_with(contents, {place})) is not None:
        return _estimated(contents, name, [place]).rename(columns={place: "label"})
    if is_thresholded(contents):
        return _let_through(contents, [place]).rename(columns={place: "label"})
    sums = _unbiased_sums(contents, [place], None)
    return _with_ends(sums).rename(columns={place: "label"})


def by_time_and_location(contents: Contents, labels: list[str]) -> pd.DataFrame:
    """Return the value of each hour and each of some locations or cells; empty without a table.

    Columns: `time`, `label`, `value`, `is_noise` where its 95 % interval reaches 0 or is withheld,
    and `is_estimate`: False of unbiased numbers. They stand in for an estimate of trips whose error
    is not known, as in a table of few numbers, and for all estimates where most errors are not.
    """
    place = label_of(contents)
    known = [_labels(table) for table in contents.tables]
    time = next((axis for axis in _TIMES if any({axis, place} <= axes for axes in known)), "")
    if not time:
        return pd.DataFrame()
    names = {time: "time", place: "label"}
    if is_thresholded(contents):
        frame = _let_through(contents, [time, place])
        frame = frame[frame[place].isin(labels)].assign(is_estimate=False, is_noise=False)
        return frame.rename(columns=names)
    frame = pd.DataFrame()
    if (name := _estimates_with(contents, {place, time})) is not None:
        frame = _estimated(contents, name, [time, place], labels).assign(is_estimate=True)
    is_mostly_known = not frame.empty and frame["low"].isna().mean() <= _MOST_WITHHELD
    if place == "location" or not is_mostly_known:
        unbiased = _unbiased_sums(contents, [time, place], labels)
        if unbiased.empty:
            return unbiased
        rest = _with_ends(unbiased).assign(is_estimate=False)
        frame = completed(
            frame[frame["low"].notna()] if is_mostly_known else frame[:0], rest, [time, place]
        )
    frame["is_noise"] = ~(frame["low"] > 0)
    return frame.rename(columns=names)


def completed(known: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the rows of `known`, and those of `others` that it has not; largest first."""
    if known.empty:
        return others
    rest = others[~others.set_index(keys).index.isin(known.set_index(keys).index)]
    frame = pd.concat([known, rest], ignore_index=True)
    return frame.sort_values(["value", *keys], ascending=[False, *[True] * len(keys)])


@once
def speeds_by_cell(contents: Contents) -> pd.DataFrame:
    """Return the mean speed of each H3 cell, all slots together; empty for trips.

    Columns: `label`, `value`, `low`, `high` in km/h, slowest first; cells with too few buses are
    left out.
    """
    spec = next(iter(contents.drawn.programme.speeds), None)
    of_cells = next((t for t in contents.tables if spec and t.name == spec.name + PLACES), None)
    if of_cells is None or of_cells.labels != ["cell"]:
        return pd.DataFrame()
    rows = contents.published.rows(of_cells.name).to_pandas()
    names = {"cell": "label", "low_95": "low", "high_95": "high"}
    shown: pd.DataFrame = rows[rows[VALUE].notna()].rename(columns=names)
    return shown[["label", VALUE, "low", "high"]].sort_values([VALUE, "label"])


def shares(rows: pa.Table, layout: Layout) -> Usable:
    """Return how much of a table is good: of its numbers, and of what all of them count."""
    seen = rows.filter(pc.is_valid(rows[VALUE]))
    values = np.abs(seen[VALUE].to_numpy())
    is_good = pc.equal(texts_of(seen, USABLE), Grade.GOOD.value).to_numpy()
    there = len(rows) - pc.sum(pc.equal(texts_of(rows, USABLE), Grade.GAP.value)).as_py()
    numbers = float(is_good.sum() / max(there, 1))
    if not layout.is_count or not values.sum():  # means do not add up
        return Usable(numbers, numbers)
    return Usable(numbers, float(values[is_good].sum() / values.sum()))


@once
def usable_tables(contents: Contents) -> list[tuple[TableFile, Usable]]:
    """Return each table with its usable share; the one to start with first, then by that share.

    That is the finest of places, if there is one, of which nearly all that it counts can be used.
    """
    rows = {table.name: contents.published.rows(table.name) for table in contents.tables}
    pairs = [
        (table, shares(rows[table.name], table.layout))
        for table in contents.tables
        if VALUE in dict(table.columns)
    ]
    small = [pair for pair in pairs if pair[0].csv.endswith(".csv")]
    places = [pair for pair in small if _labels(pair[0]) & {*_PLACES}]
    among = places if any(share.counted >= _HALF for _, share in places) else small or pairs
    most = max(share.counted for _, share in among)
    leads = [pair for pair in among if pair[1].counted >= min(MOSTLY, most)]
    lead = max(leads, key=lambda pair: pair[0].rows)
    return sorted(pairs, key=lambda pair: (pair is not lead, -pair[1].counted, pair[0].name))


def has_estimates(contents: Contents) -> bool:
    """Whether what the report shows of places are estimates."""
    return _estimates_with(contents, {label_of(contents)}) is not None


def _labels(table: TableFile) -> set[str]:
    """Return what tells the rows of a table apart."""
    return {*table.labels}


def _estimates_with(contents: Contents, axes: set[str]) -> str | None:
    """Name the table of estimates with these axes and the fewest others whose sums have an error.

    None where the package has none.
    """
    known = (contents.card.get("estimates") or {}).get("correlations", {})
    fitting = {
        table.name: len(table.labels)
        for table in contents.tables
        for source in table.layout.sources
        if axes <= _labels(table)
        and source.where.get(TAP, "on") == "on"
        and source.estimates in known
    }
    return min(fitting, key=lambda name: (fitting[name], name), default=None)


@once
def opened(contents: Contents) -> Sums:
    """Open the package for sums, as `sums.py` reads it."""
    return Sums(contents.folder)


def _estimated(
    contents: Contents, name: str, keys: list[str], labels: list[str] | None = None
) -> pd.DataFrame:
    """Return sums of values by mode and keys, with their 95 % intervals, largest first."""
    sums, rows = opened(contents), _taps_on(contents.published, name)
    names = [*([MODE] if MODE in rows.column_names and labels is None else []), *keys]
    if labels is not None:
        rows = rows.filter(pc.is_in(texts_of(rows, keys[-1]), value_set=pa.array(labels)))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in as_texts(rows):
        groups.setdefault(tuple(row[key] for key in names), []).append(row)
    estimates: dict[tuple[str, ...], Sum] = {
        key: sums.estimated(name, group) for key, group in groups.items()
    }
    table = pd.DataFrame(
        [
            (*key, estimate.value, estimate.low_95, estimate.high_95)
            for key, estimate in estimates.items()
        ],
        columns=[*names, "value", "low", "high"],
    )
    return table.sort_values(["value", *names], ascending=[False, *[True] * len(names)])


def _taps_on(tables: Tables, name: str) -> pa.Table:
    """Return the rows of boardings, of a table that tells them from alightings."""
    rows = tables.rows(name)
    return where(rows, _ON) if TAP in rows.column_names else rows


def is_thresholded(contents: Contents) -> bool:
    """Whether small numbers were left out, so that sums lack them."""
    return threshold_of(contents, {label_of(contents)}) is not None


def threshold_of(contents: Contents, axes: set[str]) -> int | None:
    """Return the least number of a table with these axes alone; None without a threshold."""
    named_draw = _thresholded(contents, axes)
    return None if named_draw is None else int(named_draw[1]["threshold"])


def _thresholded(contents: Contents, axes: set[str]) -> tuple[str, dict[str, Any]] | None:
    """Return the thresholded table with these axes alone, of boardings, and its draw."""
    for table in contents.tables:
        for source in table.layout.sources:
            if source.where.get(TAP, "on") == "on" and _labels(table) - {DAY, MODE, TAP} == axes:
                draw = _draw(contents, source.table, source.statistic)
                if draw is not None and draw.get("threshold") is not None:
                    return table.name, draw
    return None


def _draw(contents: Contents, table: str, statistic: str) -> dict[str, Any] | None:
    """Return what the card says of a draw."""
    matches = ((d["table"], d["statistic"]) == (table, statistic) for d in contents.card["draws"])
    return next(
        (d for d, is_own in zip(contents.card["draws"], matches, strict=True) if is_own), None
    )


def _let_through(contents: Contents, keys: list[str]) -> pd.DataFrame:
    """Return sums of the numbers that a threshold let through, by mode and keys, largest first.

    Only where every day has a number well above the threshold is the sum one of all trips, with an
    interval; near it, large noise was let through and small noise was not.
    """
    known = _thresholded(contents, set(keys))
    if known is None:
        return pd.DataFrame()
    name, draw = known
    table = _taps_on(contents.published, name).to_pandas()
    days, deviation = len(contents.card["service_days"]), draw["standard_deviation"]
    names = [name for name in (MODE, *keys) if name in table]
    plain = table.assign(**{name: table[name].astype(str) for name in names})
    sums = plain.groupby(names, as_index=False).agg(
        value=("measured", "sum"), least=("measured", "min"), days=("measured", "size")
    )
    least = draw["threshold"] + _FAR * deviation
    is_whole = (sums["days"] == days) & (sums["least"] > least)
    half = (NORMAL_95 * deviation * sums["days"] ** 0.5).where(is_whole)
    sums = _with_ends(sums.assign(half_width=half))
    return sums.sort_values(["value", *names], ascending=[False, *[True] * len(names)])


def _with_ends(table: pd.DataFrame) -> pd.DataFrame:
    """Add both ends of the 95 % interval."""
    if table.empty:
        return table
    return table.assign(
        low=table["value"] - table["half_width"], high=table["value"] + table["half_width"]
    )


@once
def by_day(contents: Contents) -> pd.DataFrame:
    """Return the total of each service day and mode; empty for telemetry, drawn by the week.

    Columns: `service_date`, `mode`, `value`, `deviation`, `half_width`.
    """
    return day_totals(contents.published)


def day_totals(tables: Tables) -> pd.DataFrame:
    """Return the boardings of days and modes of a package of trips; empty where it has none."""
    if "day" not in tables.layouts:
        return pd.DataFrame()
    table = _taps_on(tables, "day").to_pandas().dropna(subset=["unbiased"])
    if MODE not in table:
        table[MODE] = "all"
    return _summed(table, [DAY, MODE])


def changes(contents: Contents) -> pd.DataFrame:
    """Return the change of each mode against the week before; empty without one.

    Columns: `mode`, `value`, `deviation`, `half_width`, `share` (of the week before).
    """
    weeks = _alike(contents, "day")
    if not weeks:
        return pd.DataFrame()
    now, before = (week if MODE in week else week.assign(**{MODE: "all"}) for week in weeks)
    return _changed(now, before, [MODE])


@once
def changed_places(contents: Contents) -> pd.DataFrame:
    """Return the change of each place's boardings against the week before; empty without one.

    Columns: `mode`, `location`, `value`, `deviation`, `half_width`, `share`, and `is_listed`:
    changes of which one in twenty is expected to be chance.
    """
    weeks = _alike(contents, "location")
    if not weeks:
        return pd.DataFrame()
    now, before = weeks
    places = _changed(now, before, [name for name in (MODE, "location") if name in now])
    places = places[places["location"] != "UNKNOWN"].reset_index(drop=True)
    distances = (places["value"] / places["deviation"]).abs() / math.sqrt(2)
    return places.assign(is_listed=discoveries([math.erfc(distance) for distance in distances]))


def _alike(contents: Contents, name: str) -> list[pd.DataFrame]:
    """Return the boardings of a table in this week and the one before; none if they count others.

    Weekdays that one of the two has input of more often are left out.
    """
    if contents.earlier is None:
        return []
    packages = (contents.published, Tables(contents.earlier))
    if any(name not in package.layouts for package in packages):
        return []
    if len({terms_in(package, name) for package in packages}) > 1:
        return []
    read = (_taps_on(package, name).to_pandas() for package in packages)
    weeks = [week.dropna(subset=["unbiased"]) for week in read]
    if any(week.empty or DAY not in week for week in weeks):
        return []
    now, before = (Counter(day.weekday() for day in week[DAY].unique()) for week in weeks)
    return [week[[now[d.weekday()] == before[d.weekday()] for d in week[DAY]]] for week in weeks]


def _changed(now: pd.DataFrame, before: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the differences of unbiased sums by keys."""
    joined = _summed(now, keys).merge(_summed(before, keys), on=keys, suffixes=("", "_before"))
    joined["share"] = joined["value"] / joined["value_before"].where(joined["value_before"] > 0)
    joined["value"] -= joined["value_before"]
    joined["deviation"] = (joined["deviation"] ** 2 + joined["deviation_before"] ** 2) ** 0.5
    joined["half_width"] = NORMAL_95 * joined["deviation"]
    joined["share"] -= 1
    return joined[[*keys, "value", "deviation", "half_width", "share"]]


def _summed(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Add up unbiased numbers, as independent ones, and their variances."""
    plain = table.assign(**{key: table[key].astype(str) for key in keys})
    plain["variance"] = plain["unbiased_sd"] ** 2
    sums = plain.groupby(keys, as_index=False)[["unbiased", "variance"]].sum()
    sums["deviation"] = sums["variance"] ** 0.5
    sums["half_width"] = NORMAL_95 * sums["deviation"]
    sums = sums.rename(columns={"unbiased": "value"}).drop(columns="variance")
    return sums.sort_values(["value", *keys], ascending=[False, *[True] * len(keys)])


def _unbiased_sums(contents: Contents, keys: list[str], labels: list[str] | None) -> pd.DataFrame:
    """Return unbiased sums by mode and keys: of taps, or of bus-days; empty without a table."""
    if label_of(contents) != "location":
        draw = next(
            candidate for candidate in contents.card["draws"] if candidate["statistic"] == "buses"
        )
        table = contents.published.of_draw(draw["table"], "buses").to_pandas()
        table = table.assign(unbiased=table["measured"], unbiased_sd=draw["standard_deviation"])
        names = keys
    else:
        fitting = [t for t in contents.tables if {*keys} <= _labels(t) and t.layout.is_count]
        fitting = [file for file in fitting if "unbiased" in dict(file.columns)]
        if not fitting:
            return pd.DataFrame()
        table = _taps_on(
            contents.published, min(fitting, key=lambda t: (len(t.labels), t.name)).name
        ).to_pandas()
        names = [*([MODE] if MODE in table and labels is None else []), *keys]
        table = table.dropna(subset=["unbiased"])
    if labels is not None:
        table = table[table[keys[-1]].isin(labels)]
    return _summed(table, names)
