"""What the report shows of a week, from published tables alone: estimates with their intervals.

Sums of estimates have the interval that `sums.py` gives them; a package without estimates, and
changes between weeks, which estimates would make too small, are shown by reconciled numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from turnstile.estimates.labelled import read_parquet
from turnstile.estimates.rolling_means import over_slots, read_week, rolling_means
from turnstile.estimates.usable import MOSTLY, Usable, usable
from turnstile.programme.field import Role
from turnstile.programme.field_registry import field_of
from turnstile.publishing.carried.sums import Package
from turnstile.publishing.contents import NORMAL_95, Contents, label_of

_TAP_ON = "tap_on_"
_MOST_WITHHELD = 0.5  # of the intervals of a picture's estimates
_FAR = 3.0  # standard deviations above a threshold, where it decides next to nothing


def _once(make: Callable[[Contents], pd.DataFrame]) -> Callable[[Contents], pd.DataFrame]:
    """Make a table of a package once: pictures, sentences and shapes show the same numbers."""

    @wraps(make)
    def made(contents: Contents) -> pd.DataFrame:
        found: pd.DataFrame | None = contents.numbers.get(make.__name__)
        if found is None:
            contents.numbers[make.__name__] = found = make(contents)
        return found

    return made


@_once
def by_location(contents: Contents) -> pd.DataFrame:
    """Return the week's number of each location (trips), or cell or route (buses), largest first.

    Columns: `mode` (trips), `label`, `value`, and `low` and `high`, its 95 % interval, not numbers
    where it is withheld. Of buses: bus-days, or buses a day in estimates.
    """
    place = place_of(contents)
    if (name := _estimates_with(contents, {place})) is not None:
        return _estimated(contents, name, [place]).rename(columns={place: "label"})
    if is_thresholded(contents):
        return _let_through(contents, [place]).rename(columns={place: "label"})
    if label_of(contents) == "location":
        table = _with_columns(contents.folder, {place})
        keys = [name for name in ("mode", place) if name in table]
        return _with_ends(_summed(table, keys)).rename(columns={place: "label"})
    found = _summed(_buses(contents), [place], value="buses").rename(columns={place: "label"})
    return _with_ends(found)


def by_time_and_location(contents: Contents, labels: list[str]) -> pd.DataFrame:
    """Return the value of each hour and each of some locations or cells; empty without a table.

    Columns: `time`, `label`, `value`, `is_noise` where its 95 % interval reaches 0 or is withheld,
    and `is_estimate`: False of unbiased numbers. They stand in for an estimate of trips whose error
    is not known, as in a table of few numbers, and for all estimates where most errors are not.
    """
    place, time = place_of(contents), _time(contents)
    if is_thresholded(contents):
        found = _let_through(contents, [time, place])
        found = found[found[place].isin(labels)].assign(is_estimate=False, is_noise=False)
        return found.rename(columns={time: "time", place: "label"})
    found = pd.DataFrame()
    if (name := _estimates_with(contents, {place, time})) is not None:
        found = _estimated(contents, name, [time, place], labels).assign(is_estimate=True)
    is_trips = label_of(contents) == "location"
    is_mostly_known = not found.empty and found["low"].isna().mean() <= _MOST_WITHHELD
    if is_trips or not is_mostly_known:
        table = _with_columns(contents.folder, {time, place}) if is_trips else _buses(contents)
        if table.empty:
            return table
        value = "reconciled" if is_trips else "buses"
        unbiased = _summed(table[table[place].isin(labels)], [time, place], value=value)
        unbiased = _with_ends(unbiased).assign(is_estimate=False)
        known = found[found["low"].notna()] if is_mostly_known else found[:0]
        found = completed(known, unbiased, [time, place])
    found["is_noise"] = ~(found["low"] > 0)
    return found.rename(columns={time: "time", place: "label"})


def completed(known: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the rows of `known`, and those of `others` that it has not; largest first."""
    if known.empty:
        return others
    rest = others[~others.set_index(keys).index.isin(known.set_index(keys).index)]
    found = pd.concat([known, rest], ignore_index=True)
    return found.sort_values(["value", *keys], ascending=[False, *[True] * len(keys)])


@_once
def speeds_by_cell(contents: Contents) -> pd.DataFrame:
    """Return the mean speed of each H3 cell, all slots together; empty for trips.

    Columns: `label`, `value`, `low`, `high` in km/h, slowest first; cells with too few buses are
    left out.
    """
    spec = next(iter(contents.drawn.programme.speeds), None)
    if spec is None or label_of(contents) != "cell":
        return pd.DataFrame()
    week = over_slots(read_week(contents.folder, spec.name))
    table: pd.DataFrame = rolling_means([week], clamp_kmh=spec.mean_range or 0).to_pandas()
    shown: pd.DataFrame = table[~table["is_withheld"]].rename(
        columns={
            "cell": "label",
            "mean_speed_kmh": "value",
            "low_95_kmh": "low",
            "high_95_kmh": "high",
        }
    )
    return shown[["label", "value", "low", "high"]].sort_values(["value", "label"])


def place_of(contents: Contents) -> str:
    """Return the name of the column of places."""
    label = label_of(contents)
    return f"{_TAP_ON}{label}" if label == "location" else label


def _time(contents: Contents) -> str:
    """Name the column of times of day."""
    return f"{_TAP_ON}slot" if label_of(contents) == "location" else "slot"


def usable_tables(contents: Contents) -> list[tuple[str, int, Usable]]:
    """Return name, size and usable share of each table of estimates by place of tap-on.

    First the finest of which nearly all that it counts can be used, then by that share.
    """
    if label_of(contents) != "location" or not has_estimates(contents):
        return []
    known, found = contents.card["estimates"]["correlations"], []
    for table in contents.tables:
        names = {name for name, _ in table.columns}
        if table.part == "estimates" and table.name in known and place_of(contents) in names:
            rows = _frame(contents.folder / f"{table.stem}.parquet")
            ends = (rows[name].to_numpy(float) for name in ("estimate", "low_90", "high_90"))
            found.append((table.stem, len(rows), usable(*ends)))
    most = max((one.counted for *_, one in found), default=0.0)
    leads = [row for row in found if row[2].counted >= min(MOSTLY, most)]
    lead = max(leads, key=lambda row: row[1], default=None)
    return sorted(found, key=lambda row: (row is not lead, -row[2].counted, row[0]))


def has_estimates(contents: Contents) -> bool:
    """Whether what the report shows of places are estimates."""
    return _estimates_with(contents, {place_of(contents)}) is not None


def _estimates_with(contents: Contents, axes: set[str]) -> str | None:
    """Name the table of estimates with these axes and the fewest others whose sums have an error.

    An hourly one before one by quarters; none where the package has none.
    """
    known = (contents.card.get("estimates") or {}).get("correlations", {})
    columns = {
        table.name: {name for name, _ in table.columns}
        for table in contents.tables
        if table.part == "estimates" and table.name in known
    }
    fitting = [name for name, own in columns.items() if axes <= own]
    return min(fitting, key=lambda n: (len(columns[n]), not n.endswith("_hourly"), n), default=None)


def _estimated(
    contents: Contents, name: str, keys: list[str], labels: list[str] | None = None
) -> pd.DataFrame:
    """Return sums of estimates by mode and keys, with their 95 % intervals, largest first."""
    package, groups = Package(contents.folder), defaultdict(list)
    for row in _as_written(contents.folder / f"estimates/{name}.csv", keys[-1], labels):
        own = ["mode", *keys] if "mode" in row and labels is None else keys
        groups[tuple(row[key] for key in own)].append(row)
    sums = {key: package.estimated(name, rows) for key, rows in groups.items()}
    names = ["mode", *keys] if any(len(key) > len(keys) for key in sums) else keys
    found = pd.DataFrame(
        [(*key, one.value, one.low_95, one.high_95) for key, one in sums.items()],
        columns=[*names, "value", "low", "high"],
    )
    return found.sort_values(["value", *names], ascending=[False, *[True] * len(names)])


def _as_written(path: Path, column: str, labels: list[str] | None) -> list[dict[str, str]]:
    """Return the rows with some labels as `sums.py` reads them, of a table that may be long."""
    names = pq.read_schema(path.with_suffix(".parquet")).names
    as_text = pcsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    table = pcsv.read_csv(path, convert_options=as_text)
    if labels is not None:
        table = table.filter(pc.is_in(table[column], value_set=pa.array(labels, pa.string())))
    rows: list[dict[str, str]] = table.to_pylist()
    return rows


def is_thresholded(contents: Contents) -> bool:
    """Whether small numbers were left out, so that sums lack them."""
    return threshold_of(contents, {place_of(contents)}) is not None


def threshold_of(contents: Contents, axes: set[str]) -> int | None:
    """Return the least number of a table with these axes alone; None without a threshold."""
    tables = {table.name for table in contents.drawn.programme.tables if set(table.by) == axes}
    draws = [draw for draw in contents.card["draws"] if draw["table"] in tables]
    return draws[0].get("threshold") if draws else None


def _let_through(contents: Contents, keys: list[str]) -> pd.DataFrame:
    """Return sums of the numbers that a threshold let through, by mode and keys, largest first.

    Only where every day has a number well above the threshold is the sum one of all trips, with an
    interval; near it, large noise was let through and small noise was not.
    """
    table = _with_columns(contents.folder, set(keys))
    least = threshold_of(contents, set(keys)) or 0
    days = len(contents.card["service_days"])
    names = [name for name in ("mode", *keys) if name in table]
    groups = table.assign(**{name: table[name].astype(str) for name in names}).groupby(
        names, as_index=False
    )
    found = groups.agg(
        value=("count", "sum"),
        least=("count", "min"),
        days=("count", "size"),
        deviation=("standard_deviation", "first"),
    )
    is_whole = (found["days"] == days) & (found["least"] > least + _FAR * found["deviation"])
    half = (NORMAL_95 * found["deviation"] * found["days"] ** 0.5).where(is_whole)
    found = _with_ends(found.assign(half_width=half))
    return found.sort_values(["value", *names], ascending=[False, *[True] * len(names)])


def _with_ends(table: pd.DataFrame) -> pd.DataFrame:
    """Add both ends of the 95 % interval."""
    return table.assign(
        low=table["value"] - table["half_width"], high=table["value"] + table["half_width"]
    )


@_once
def by_day(contents: Contents) -> pd.DataFrame:
    """Return the total of each service day and mode; empty for telemetry, drawn by the week.

    Columns: `service_date`, `mode`, `value`, `deviation`, `half_width`.
    """
    if label_of(contents) != "location":
        return pd.DataFrame()
    return day_totals(contents.folder)


def day_totals(folder: Path) -> pd.DataFrame:
    """Return the totals of days and modes of a package of trips; empty where it has none."""
    paths = [p for p in sorted(folder.glob("tables/*_daily.parquet")) if _is_total(p)]
    if not paths:
        return pd.DataFrame()
    table = read_parquet(paths[0]).to_pandas()
    name = "reconciled" if "reconciled" in table else "estimate"  # as version 0.1.0 called it
    if "mode" not in table:
        table["mode"] = "all"
    return _summed(table, ["service_date", "mode"], value=name)


def _is_total(path: Path) -> bool:
    """Whether a table has no axis but the day and the mode."""
    names = pq.read_schema(path).names
    return not any(name.startswith("tap_") for name in names) and "standard_deviation" in names


def changes(contents: Contents) -> pd.DataFrame:
    """Return the change of each mode's week against the week before; empty without one.

    Columns: `mode`, `value`, `deviation`, `half_width`, `share` (of the week before).
    """
    own = by_day(contents)
    before = pd.DataFrame() if contents.earlier is None else day_totals(contents.earlier)
    if own.empty or before.empty:
        return pd.DataFrame()
    now, then = (_summed(t, ["mode"], value="value", error="deviation") for t in (own, before))
    joined = now.merge(then, on="mode", suffixes=("", "_before"))
    joined["share"] = joined["value"] / joined["value_before"].where(joined["value_before"] > 0)
    joined["value"] -= joined["value_before"]
    joined["deviation"] = (joined["deviation"] ** 2 + joined["deviation_before"] ** 2) ** 0.5
    joined["half_width"] = NORMAL_95 * joined["deviation"]
    joined["share"] -= 1
    return joined[["mode", "value", "deviation", "half_width", "share"]]


def _summed(
    table: pd.DataFrame,
    keys: list[str],
    value: str = "reconciled",
    error: str = "standard_deviation",
) -> pd.DataFrame:
    """Add up independent numbers and their variances."""
    plain = table.assign(**{key: table[key].astype(str) for key in keys})
    plain["variance"] = plain[error] ** 2
    found = plain.groupby(keys, as_index=False)[[value, "variance"]].sum()
    found["deviation"] = found["variance"] ** 0.5
    found["half_width"] = NORMAL_95 * found["deviation"]
    found = found.rename(columns={value: "value"}).drop(columns="variance")
    return found.sort_values(["value", *keys], ascending=[False, *[True] * len(keys)])


def _with_columns(folder: Path, axes: set[str]) -> pd.DataFrame:
    """Read the table of `tables/` with these axes and the fewest others; empty if none has them."""
    own = {
        path: {n for n in pq.read_schema(path).names if _is_dimension(n)}
        for path in sorted(folder.glob("tables/*.parquet"))
        if not path.stem.endswith(("_daily", "_rows"))
    }
    fitting = [path for path, names in own.items() if axes <= names]
    fitting.sort(key=lambda p: (len(own[p]), not p.stem.endswith("_hourly"), p.name))
    return _frame(fitting[0]) if fitting else pd.DataFrame()


def _is_dimension(name: str) -> bool:
    """Whether a column labels a cell."""
    field = field_of(name)
    return field is not None and field.role is Role.DIMENSION


def _buses(contents: Contents) -> pd.DataFrame:
    """Read the measured bus-days: presented ones are clamped at zero, so their sums are biased."""
    draw = next(one for one in contents.card["draws"] if one["statistic"] == "buses")
    table = _frame(contents.folder / f"measurements/{draw['table']}.parquet")
    return table.assign(standard_deviation=draw["standard_deviation"])


def _frame(path: Path) -> pd.DataFrame:
    """Read a table."""
    frame: pd.DataFrame = read_parquet(path).to_pandas()
    return frame
