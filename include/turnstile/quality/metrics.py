"""Exact figures of a snapshot for the checks, made by one pass of the engine; private zone only.

Great Expectations judges these few rows instead of millions of raw ones: the same rules at a
twentieth of the time, and no raw value within its reach.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from turnstile.duckdb_engine import connect, name, text
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import Feed, MissingDay, RowShape
from turnstile.programme.spec import Programme
from turnstile.quality.earlier_figures import Figures, earlier_figures
from turnstile.quality.ids import ids_that_bound_nothing, trips_of_no_card
from turnstile.quality.plausible import (
    clock_off,
    delays_off,
    files_of_another_clock,
    files_of_other_dates,
    gates_of_other_numbers,
    is_of_passengers_on_board,
    nowhere,
    records_of_gates,
    speeds_off_unit,
    unlisted,
    vehicles_in_two_places,
    vehicles_of_another_unit,
)
from turnstile.quality.rules import (
    CARD,
    CLOCK,
    DATES,
    MEANINGS,
    NUMBERS,
    PLACE,
    UNIT,
    VEHICLE,
    unlisted_at_most,
)
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.ingest.canonical import (
    SPEED_SCALE,
    columns_of,
    may_be_null,
    names_of,
    rules_broken,
)
from turnstile.sources.ingest.snapshot import (
    HOURS_FILE,
    NUMBERS_FILE,
    TOTALS,
    Snapshot,
    counts_of,
    unnamed_of,
)
from turnstile.sources.ingest.stated_gaps import stated_gaps

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection

_VOLUME_PERIODS, _SMALL_DAY = 8, 5
_ROWS_OF_A_DAY = 100  # fewer say nothing of a day that was delivered twice
# Not faults: rows of the weeks beside this one, fare transactions that are no taps, forecasts.
_EXPECTED = ("outside_week", "other_action", "not_observed")

_SHAPE_METRICS = {
    RowShape.TRIPS: {
        "minute_least": "min(least(tap_on_minute, coalesce(tap_off_minute, 0)))",
        "minute_most": "max(greatest(tap_on_minute, coalesce(tap_off_minute, 0)))",
        "tap_on_least": "min(tap_on_minute)",
        "tap_on_most": "max(tap_on_minute)",
        "unknown_taps": "count(*) FILTER (WHERE tap_off_location = 'UNKNOWN')",
    },
    RowShape.TELEMETRY: {
        "minute_least": "min(minute_of_day)",
        "minute_most": "max(minute_of_day)",
        "latitude_least": "min(latitude)",
        "latitude_most": "max(latitude)",
        "longitude_least": "min(longitude)",
        "longitude_most": "max(longitude)",
        "speed_kmh_least": f"min(speed_milli_kmh) / {SPEED_SCALE}",
        "speed_kmh_most": f"max(speed_milli_kmh) / {SPEED_SCALE}",
    },
}
# By the numbers of each speed, which are few: `median` would hold the speeds of all rows in memory.
_MEDIANS = f"""
    WITH speeds AS (
        SELECT service_date, speed_milli_kmh AS speed, count(*) AS rows
        FROM rows_read WHERE speed_milli_kmh > 0 GROUP BY ALL),
    ranked AS (
        SELECT *, sum(rows) OVER (PARTITION BY service_date) AS total,
            sum(rows) OVER (PARTITION BY service_date ORDER BY speed) AS up_to
        FROM speeds)
    SELECT service_date, avg(speed) / {SPEED_SCALE} AS moving_speed_kmh_median
    FROM ranked WHERE up_to > (total - 1) // 2 AND up_to - rows <= total // 2 GROUP BY 1
"""
_KEYS = {
    RowShape.TRIPS: "card_id, tap_on_minute",
    RowShape.TELEMETRY: "vehicle_id, observed_at_utc",
}


@dataclass(frozen=True, slots=True, repr=False)
class Metrics:
    """Exact figures; they do not print and cannot be pickled.

    Args:
        columns: one row a column of the rows: `name`, `type` as `name type`.
        modes: one row a mode that occurs: `mode`.
        days: one row a service day of the week, absent days with 0 rows; `gap` is 1 for a day that
            the release will state as a gap, else 0.
        week: one row.
        figures: what later weeks learn from.
        earlier: what this week is compared with, the latest week first.
    """

    columns: pd.DataFrame
    modes: pd.DataFrame
    days: pd.DataFrame
    week: pd.DataFrame
    figures: Figures
    earlier: tuple[Figures, ...]

    def __repr__(self) -> str:
        """Nothing of the figures."""
        return "<private metrics>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError("private metrics stay in the process that made them")


def measure(  # noqa: PLR0913 - the keyword-only rest is where it runs
    programme: Programme,
    week: ServicePeriod,
    snapshot: Snapshot,
    *,
    private: Path,
    domain: PublicDomain | None = None,
    memory: str | None = None,
) -> Metrics:
    """Make the figures of a snapshot.

    Args:
        programme: gives the shape of the rows.
        week: service week.
        snapshot: what was ingested.
        private: private zone, with the figures of earlier weeks.
        domain: public cells and lists; None to judge no word and no place.
        memory: the most that the engine takes, as `duckdb_engine.connect` takes it.
    """
    with tempfile.TemporaryDirectory(prefix=".measure-", dir=snapshot.folder.parent) as scratch:
        connection = connect(Path(scratch), memory=memory)
        try:
            open_rows(connection, snapshot, programme)
            columns = _columns(connection)
            connection.execute(
                "CREATE TEMP TABLE rows_by_mode AS "
                "SELECT service_date, mode, count(*) AS rows FROM rows_read GROUP BY ALL"
            )
            modes = connection.execute("SELECT DISTINCT mode FROM rows_by_mode ORDER BY 1").df()
            days = _days(connection, programme.days_of(week), programme.source.feed)
            _mark_gaps(days, programme, week, snapshot)
            keys, twice = _distinct_keys(connection, days, programme.source.feed.shape)
            counts = _counts_of_days(connection, week, programme, days)
            plausible = _plausible(connection, programme, week, snapshot, days)
            plausible |= {"day_twice": twice, **_off_lists(connection, programme, domain)}
        finally:
            connection.close()
    earlier = earlier_figures(programme.name, week, private)
    counts_read = counts_of(snapshot)
    counted = dict.fromkeys(rules_broken(programme.source.feed), 0) | dict(counts_read)
    totals = _totals(
        counted,
        days,
        keys=keys,
        earlier=[earlier_week.total for earlier_week in earlier[:_VOLUME_PERIODS]],
        expected={*_EXPECTED, *(rule for rule, _ in programme.source.set_aside_at_most)},
    )
    plausible["share_unnamed"] = unnamed_of(snapshot) / max(counts_read["rows_in"], 1)
    for figure, value in plausible.items():
        totals[figure] = value
    rows = int(totals["rows"].iloc[0])
    figures = Figures(rows, counts, _speeds_of_days(days), _shares(totals))
    return Metrics(columns, modes, days, totals, figures, earlier)


def _plausible(
    connection: DuckDBPyConnection,
    programme: Programme,
    week: ServicePeriod,
    snapshot: Snapshot,
    days: pd.DataFrame,
) -> dict[str, float]:
    """Return how far clocks, dates, numbers, ids and units are from what they are taken for.

    Each by what may be, so that 1 is just right.
    """
    source, most = programme.source, unlisted_at_most(programme)
    others = files_of_another_clock(connection, snapshot.folder / HOURS_FILE, source)
    dates = files_of_other_dates(connection, snapshot, source, programme.days_of(week))
    numbers = gates_of_other_numbers(connection, snapshot.folder / NUMBERS_FILE, source.feed)
    gate_records = records_of_gates(connection, snapshot.folder / NUMBERS_FILE)
    if source.feed is Feed.TIDES_PASSENGER_EVENTS:
        numbers = float(is_of_passengers_on_board(connection))
    rows = int(days["rows"].sum())
    full_days = int(
        (days["rows"] > days["rows"].max() / _SMALL_DAY).sum()
    )  # no hours after midnight
    ids = ids_that_bound_nothing(connection, programme, rows, full_days)
    figures = {
        "clock_off": clock_off(connection, source),
        "files_off": others / most[CLOCK],
        "dates_off": dates / most[DATES],
        "numbers_off": numbers / most[NUMBERS],
    }
    if gate_records:  # a row is a passenger there
        none = dict(counts_of(snapshot)).get("no_riders", 0)
        figures["share_no_riders"] = none / (none + gate_records)
    if source.feed.shape is RowShape.TRIPS:
        no_card = trips_of_no_card(connection, days["service_date"].dt.date)
        return figures | {"cards_off": no_card / most[CARD], "ids_off": ids / most[CARD]}
    several, _ = vehicles_in_two_places(connection, rows, source)
    share, _ = vehicles_of_another_unit(connection, rows)
    return figures | {
        "delays_off": delays_off(connection, programme),
        "units_off": share / most[UNIT],
        "ids_off": max(ids, several) / most[VEHICLE],
    }


def open_rows(connection: DuckDBPyConnection, snapshot: Snapshot, programme: Programme) -> None:
    """Name the rows of a snapshot `rows_read`; an empty week has the canonical columns."""
    if snapshot.days:
        source = f"read_parquet({text(snapshot.rows_glob)}, hive_partitioning=false)"
        connection.execute(f"CREATE VIEW rows_read AS SELECT * FROM {source}")
        return
    columns = columns_of(programme.source.feed.shape, programme.carried)
    declared = ", ".join(f"{column} {kind}" for column, kind in columns)
    connection.execute(f"CREATE TABLE rows_read ({declared})")


def _columns(connection: DuckDBPyConnection) -> pd.DataFrame:
    """Names and types of the columns."""
    import pandas as pd

    schema = connection.execute("DESCRIBE rows_read").fetchall()
    rows = [(str(row[0]), f"{row[0]} {row[1]}") for row in schema]
    return pd.DataFrame(rows, columns=["name", "type"])


def _days(
    connection: DuckDBPyConnection, service_days: tuple[date, ...], feed: Feed
) -> pd.DataFrame:
    """One row a day of the week, and of any other day that should not be there."""
    figures = {"rows": "count(service_date)"} | _SHAPE_METRICS[feed.shape]
    measured = ", ".join(f"{sql} AS {figure}" for figure, sql in figures.items())
    selected = ", ".join(  # a count of nothing is 0, the least of nothing is not known
        f"coalesce({figure}, 0) AS {figure}" if sql.startswith("count(") else figure
        for figure, sql in figures.items()
    )
    # Of one column at a time, so that the engine passes over the parts of files that state none.
    nulls = " UNION ALL ".join(
        f"SELECT service_date AS day FROM rows_read WHERE {name(column)} IS NULL"
        for column in names_of(feed.shape)
        if column not in may_be_null(feed)
    )
    listed = ", ".join(f"(DATE '{day}')" for day in service_days)
    median, of_medians = "", ""
    if feed.shape is RowShape.TELEMETRY:
        median = "moving_speed_kmh_median, "
        of_medians = (
            f"LEFT JOIN ({_MEDIANS}) AS medians ON measured.service_date = medians.service_date"
        )
    days = connection.execute(f"""
        WITH measured AS (SELECT service_date, {measured} FROM rows_read GROUP BY 1),
             missing AS (SELECT day, count(*) AS nulls FROM ({nulls}) GROUP BY 1)
        SELECT coalesce(measured.service_date, days.day) AS service_date, {selected}, {median}
               coalesce(nulls, 0) AS nulls
        FROM (SELECT * FROM (VALUES {listed}) AS days(day)) AS days
        FULL JOIN measured ON measured.service_date = days.day
        LEFT JOIN missing ON measured.service_date = missing.day
        {of_medians}
        ORDER BY 1
    """).df()
    if feed.shape is RowShape.TELEMETRY:
        days["speed_off_unit"] = speeds_off_unit(connection, days)
    else:
        full = days[days["rows"] >= _ROWS_OF_A_DAY]
        # Of other days no trip says that anything was delivered: they are not judged.
        days["minutes_late"] = full["tap_on_least"] - full["tap_on_least"].median()
        days["minutes_early"] = full["tap_on_most"].median() - full["tap_on_most"]
    return days


def _mark_gaps(
    days: pd.DataFrame, programme: Programme, week: ServicePeriod, snapshot: Snapshot
) -> None:
    """Say which days are stated as gaps, and leave them, or days without a row, out of the floor.

    Where gaps are published no row decides which days are expected: names of files do.
    """
    gaps = stated_gaps(programme.source, week, (name for name, _ in snapshot.files))
    days["gap"] = days["service_date"].dt.date.isin(gaps).astype(int)
    refuses = programme.source.missing_day is MissingDay.REFUSE
    is_expected = days["rows"] > 0 if refuses else days["gap"] == 0
    days["rows_of_an_expected_day"] = days["rows"].where(is_expected)


def _distinct_keys(
    connection: DuckDBPyConnection, days: pd.DataFrame, shape: RowShape
) -> tuple[int, float]:
    """Rows that differ from all others of their day in unit or time; the most that repeat one.

    Sorted numbers of a day cost a fifth of the engine's count of distinct ones, and its memory.
    """
    keys, most_repeated = 0, 0.0
    for day in days["service_date"]:
        select = f"SELECT hash({_KEYS[shape]}) AS key FROM rows_read WHERE service_date = ?"
        hashes = np.sort(connection.execute(select, [day.date()]).fetchnumpy()["key"])
        of_day = int((hashes[1:] != hashes[:-1]).sum()) + min(len(hashes), 1)
        keys += of_day
        if len(hashes) >= _ROWS_OF_A_DAY:
            most_repeated = max(most_repeated, 1 - of_day / len(hashes))
    return keys, most_repeated


def _counts_of_days(
    connection: DuckDBPyConnection, week: ServicePeriod, programme: Programme, days: pd.DataFrame
) -> dict[tuple[str, str], float]:
    """Rows of each day of the week by each mode that the programme knows, and unknown tap-offs."""
    counts: dict[tuple[str, str], float] = {
        (str(day), mode): 0.0 for day in programme.days_of(week) for mode in programme.source.modes
    }
    rows = connection.execute("FROM rows_by_mode").fetchall()
    if programme.source.feed.shape is RowShape.TRIPS:
        kind = "unknown_taps"
        counts |= {(str(day), kind): 0.0 for day in programme.days_of(week)}
        rows += [(str(day)[:10], kind, n) for day, n in days[["service_date", kind]].to_numpy()]
    for day, kind, count in rows:
        if (str(day), kind) in counts:  # other days and modes are other rules' business
            counts[str(day), kind] = float(count)
    return counts


def _speeds_of_days(days: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Typical speed of each day on which anything moved."""
    column = "moving_speed_kmh_median"
    if column not in days:
        return {}
    moving = days[days[column].notna()]
    speeds = zip(moving["service_date"], moving[column], strict=True)
    return {(str(day)[:10], column): float(speed) for day, speed in speeds}


def _off_lists(
    connection: DuckDBPyConnection, programme: Programme, domain: PublicDomain | None
) -> dict[str, float]:
    """Return how far words and places that no list has are above what may be; 1 is just right."""
    if domain is None:
        return {"words_off": 0.0, "places_off": 0.0}
    most = unlisted_at_most(programme)
    words = unlisted(connection, domain, {*most} - {*MEANINGS})
    off = (share / most[name] for name, share in words.items())
    places = nowhere(connection, programme.source.feed, domain)
    return {"words_off": max(off, default=0.0), "places_off": places / most[PLACE]}


def _shares(totals: pd.DataFrame) -> dict[str, float]:
    """Shares of the records read that were rejected, rule by rule, or came twice."""
    return {
        str(name): float(totals[name].iloc[0])
        for name in totals.columns
        if str(name).startswith("share_") and name != "share_unknown_taps"
    }


def _totals(
    counts: dict[str, int], days: pd.DataFrame, *, keys: int, earlier: list[int], expected: set[str]
) -> pd.DataFrame:
    """One row: what ingest counted as shares of the records read, and the volume.

    Rows of another week are not judged further, so they are no part of what later rules judge: a
    year in one file would hide the trains of a week.
    """
    import pandas as pd

    rows_in, rows_out, duplicates, joined = (counts.pop(total) for total in TOTALS)
    read, of_week = max(rows_in, 1), max(rows_in - counts["outside_week"], 1)
    rules = [*counts]
    before = rules[: rules.index("outside_week") + 1]
    judged = dict.fromkeys(rules, of_week) | dict.fromkeys(before, read)
    others = sum(count for rule, count in counts.items() if rule in expected)
    rows = int(days["rows"].sum())
    unknown_taps = int(days["unknown_taps"].sum()) if "unknown_taps" in days else 0
    usual = sorted(earlier)[len(earlier) // 2] if earlier else rows
    figures = {
        "rows": rows,
        "rows_lost": rows_in - rows_out - duplicates - joined - sum(counts.values()),
        "rows_unaccounted": rows_out - rows,
        "share_duplicates": duplicates / read,
        "share_quarantined": (sum(counts.values()) - others) / max(rows_in - others, 1),
        "share_repeated_keys": 1 - keys / max(rows, 1),
        "share_unknown_taps": unknown_taps / max(rows, 1),
        "volume_ratio": rows / max(usual, 1),
    } | {f"share_{rule}": count / judged[rule] for rule, count in counts.items()}
    return pd.DataFrame([figures])
