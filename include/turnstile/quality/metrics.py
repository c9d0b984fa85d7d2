"""Exact figures of a snapshot for the checks, made by one pass of the engine; private zone only.

Great Expectations judges these few rows instead of millions of raw ones: the same rules at a
twentieth of the time, and no raw value within its reach.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from turnstile.programme.spec import Programme, RowShape
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.canonical import COLUMNS, MAY_BE_NULL, SPEED_SCALE, names_of
from turnstile.sources.engine import connect, name, text
from turnstile.sources.snapshot import TOTALS, Snapshot, counts_of

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection

METRICS_FILE = "metrics.json"
_EARLIER_WEEKS = 8
# Not faults: rows of the weeks beside this one, and fare transactions that are no taps.
_EXPECTED = ("outside_week", "other_action")

_SHAPE_METRICS = {
    RowShape.TRIPS: {
        "minute_least": "min(least(tap_on_minute, coalesce(tap_off_minute, 0)))",
        "minute_most": "max(greatest(tap_on_minute, coalesce(tap_off_minute, 0)))",
        "unknown_taps": "count(*) FILTER (WHERE tap_off_location = 'UNKNOWN')",
        "keys": "count(DISTINCT hash(card_id, tap_on_minute))",
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
        "moving_speed_kmh_median": "median(speed_milli_kmh) FILTER (WHERE speed_milli_kmh > 0)"
        f" / {SPEED_SCALE}",
        "keys": "count(DISTINCT hash(vehicle_id, observed_at_utc))",
    },
}


@dataclass(frozen=True, slots=True, repr=False)
class Metrics:
    """Exact figures; they do not print and cannot be pickled.

    Args:
        columns: one row a column of the rows: `name`, `type` as `name type`.
        modes: one row a mode that occurs: `mode`.
        days: one row a service day of the week, absent days with 0 rows.
        week: one row.
    """

    columns: pd.DataFrame
    modes: pd.DataFrame
    days: pd.DataFrame
    week: pd.DataFrame

    def __repr__(self) -> str:
        """Nothing of the figures."""
        return "<private metrics>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError("private metrics stay in the process that made them")


def measure(
    programme: Programme, week: ServicePeriod, snapshot: Snapshot, *, private: Path
) -> Metrics:
    """Make the figures of a snapshot.

    Args:
        programme: gives the shape of the rows.
        week: service week.
        snapshot: what was ingested.
        private: private zone, with the figures of earlier weeks.
    """
    shape = programme.source.feed.shape
    with tempfile.TemporaryDirectory(prefix=".measure-", dir=snapshot.folder.parent) as scratch:
        connection = connect(Path(scratch))
        try:
            _open_rows(connection, snapshot, shape)
            columns = _columns(connection)
            modes = connection.execute("SELECT DISTINCT mode FROM rows_read ORDER BY 1").df()
            days = _days(connection, week, shape)
        finally:
            connection.close()
    totals = _totals(snapshot, days, earlier=_earlier_rows(programme, week, private))
    return Metrics(columns=columns, modes=modes, days=days, week=totals)


def _open_rows(connection: DuckDBPyConnection, snapshot: Snapshot, shape: RowShape) -> None:
    """Name the rows of a snapshot `rows_read`; an empty week has the canonical columns."""
    if snapshot.days:
        source = f"read_parquet({text(snapshot.rows_glob)}, hive_partitioning=false)"
        connection.execute(f"CREATE VIEW rows_read AS SELECT * FROM {source}")
        return
    declared = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[shape])
    connection.execute(f"CREATE TABLE rows_read ({declared})")


def _columns(connection: DuckDBPyConnection) -> pd.DataFrame:
    """Names and types of the columns."""
    import pandas as pd

    found = connection.execute("DESCRIBE rows_read").fetchall()
    rows = [(str(row[0]), f"{row[0]} {row[1]}") for row in found]
    return pd.DataFrame(rows, columns=["name", "type"])


def _days(connection: DuckDBPyConnection, week: ServicePeriod, shape: RowShape) -> pd.DataFrame:
    """One row a day of the week, and of any other day that should not be there."""
    needed = [column for column in names_of(shape) if column not in MAY_BE_NULL]
    nulls = " OR ".join(f"{name(column)} IS NULL" for column in needed)
    figures = {
        "rows": "count(service_date)",
        "rows_of_a_day_with_rows": "nullif(count(service_date), 0)",
        "nulls": f"count(*) FILTER (WHERE service_date IS NOT NULL AND ({nulls}))",
    } | _SHAPE_METRICS[shape]
    selected = ", ".join(f"{sql} AS {figure}" for figure, sql in figures.items())
    listed = ", ".join(f"(DATE '{day}')" for day in week.days)
    return connection.execute(f"""
        SELECT coalesce(service_date, day) AS service_date, {selected}
        FROM (SELECT * FROM (VALUES {listed}) AS days(day)
              FULL JOIN rows_read ON service_date = day)
        GROUP BY 1 ORDER BY 1
    """).df()


def _totals(snapshot: Snapshot, days: pd.DataFrame, *, earlier: tuple[int, ...]) -> pd.DataFrame:
    """One row: what ingest counted as shares of the records read, and the volume."""
    import pandas as pd

    counts = dict(counts_of(snapshot))
    rows_in, rows_out, duplicates, joined = (counts.pop(total) for total in TOTALS)
    read = max(rows_in, 1)
    expected = {rule: counts.pop(rule) for rule in _EXPECTED if rule in counts}
    others = sum(expected.values())
    rows = int(days["rows"].sum())
    unknown_taps = int(days["unknown_taps"].sum()) if "unknown_taps" in days else 0
    usual = sorted(earlier)[len(earlier) // 2] if earlier else rows
    figures = {
        "rows": rows,
        "rows_lost": rows_in - rows_out - duplicates - joined - sum(counts.values()) - others,
        "rows_unaccounted": rows_out - rows,
        "share_duplicates": duplicates / read,
        "share_quarantined": sum(counts.values()) / max(rows_in - others, 1),
        "share_repeated_keys": 1 - int(days["keys"].sum()) / max(rows, 1),
        "share_unknown_taps": unknown_taps / max(rows, 1),
        "volume_ratio": rows / max(usual, 1),
    } | {f"share_{rule}": count / read for rule, count in (counts | expected).items()}
    return pd.DataFrame([figures])


def _earlier_rows(programme: Programme, week: ServicePeriod, private: Path) -> tuple[int, ...]:
    """Numbers of rows of the weeks before, at most eight of them."""
    found = []
    for back in range(1, _EARLIER_WEEKS + 1):
        path = private / programme.name / str(week.plus(-back)) / METRICS_FILE
        if path.exists():
            found.append(int(json.loads(path.read_text())["rows"]))
    return tuple(found)


def keep_volume(metrics: Metrics, snapshot: Snapshot, *, private: Path) -> None:
    """Write the volume of a week for the weeks to come; into the private zone."""
    days = zip(metrics.days["service_date"], metrics.days["rows"], strict=True)
    per_day = {str(day)[:10]: int(rows) for day, rows in days}
    record = {"rows": sum(per_day.values()), "days": per_day}
    path = private / snapshot.programme / snapshot.period / METRICS_FILE
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(record, indent=1) + "\n")
    scratch.replace(path)
