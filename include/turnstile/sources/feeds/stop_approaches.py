"""How late a vehicle is at a stop, from its positions and the public timetable.

A call of a vehicle at a stop is its position nearest to the stop among those that it sent on that
trip, that service day, within an hour of the scheduled time; the earliest of equally near ones. If
it is near enough, that position says its stop and how late it is; other positions say neither. A
position is of one stop at most, the nearest. So what a row says depends on the records of its own
vehicle and service day, and on nothing else but the timetable (PRIVACY 5.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.programme.counting_chain import JOIN_OF_STOPS
from turnstile.programme.gtfs.scheduled_calls import ScheduledCalls

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

APART_S = 3600
"""Seconds about its scheduled time in which a call is looked for."""
COLUMNS = (("trip", "VARCHAR"), ("start_date", "VARCHAR"))
_KEY = ("vehicle_id", "service_date", "trip", "observed_at_utc", "latitude", "longitude")
_METERS_PER_DEGREE = 111_195.0  # of a great circle


def hold_against(
    connection: DuckDBPyConnection,
    timetable: ScheduledCalls,
    *,
    within_m: int,
    carried: tuple[str, ...],
) -> None:
    """Let the view `staged` say stops and delays, in place of its columns of these names.

    Args:
        connection: engine, with the view `staged` of records with `COLUMNS`.
        timetable: calls and the days of their trips.
        within_m: how near a stop's call is, meters.
        carried: `stop`, `delay_s` or both: what the rows carry.
    """
    for name, table in (("scheduled_call", timetable.calls), ("scheduled_run", timetable.runs)):
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM given")
        connection.unregister("given")
    connection.execute(f"CREATE OR REPLACE TABLE approach AS {_approaches(within_m)}")
    connection.execute("ALTER VIEW staged RENAME TO staged_position")
    on = " AND ".join(f"position.{name} = approach.{name}" for name in _KEY)
    told = ", ".join(f"approach.{name} AS {name}" for name in carried)
    connection.execute(
        f"CREATE VIEW staged AS SELECT position.* REPLACE ({told}) "
        f"FROM staged_position AS position LEFT JOIN approach ON {on} "
        "AND position.broken_rule IS NULL"
    )


def _approaches(within_m: int) -> str:
    """Return the SELECT of the positions that are calls, with stop and delay, each once."""
    key = ", ".join(_KEY)
    started = "coalesce(TRY_CAST(start_date AS DATE), TRY_STRPTIME(start_date, '%Y%m%d')::DATE)"
    return f"""
        WITH position AS (
            SELECT DISTINCT {key}, {started} AS started FROM staged
            WHERE broken_rule IS NULL AND trip IS NOT NULL
        ), near AS (
            SELECT {", ".join(f"position.{name} AS {name}" for name in _KEY)}, stop, run_date,
                CAST(epoch(observed_at_utc) - epoch(zero_utc) - second AS BIGINT) AS late_s,
                ((position.latitude - call.latitude) * {_METERS_PER_DEGREE}) ** 2
                + ((position.longitude - call.longitude) * narrowing * {_METERS_PER_DEGREE}) ** 2
                    AS square_m
            FROM position
            JOIN scheduled_call AS call ON call.trip = position.trip
            JOIN scheduled_run AS run ON run.service = call.service
                AND run_date BETWEEN service_date - 1 AND service_date
                AND run_date = coalesce(started, run_date)
            WHERE abs(position.latitude - call.latitude) * {_METERS_PER_DEGREE} <= {within_m}
                AND abs(late_s) <= {APART_S}
        ), called AS (
            SELECT * FROM near WHERE square_m <= {within_m**2}
            QUALIFY row_number() OVER (
                PARTITION BY {", ".join(JOIN_OF_STOPS.within)}, trip, run_date, stop
                ORDER BY square_m, observed_at_utc, latitude, longitude
            ) = 1
        )
        SELECT {key}, stop, late_s AS delay_s FROM called
        QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY square_m, stop, run_date) = 1
    """
