"""Made-up fare transactions, TIDES 1.0 (tides-transit.org), and the public GTFS feed they go with.

The trips are those of the Opal sample (`opal.opal_rows`), on the stops of a small bus network: a
tap-on and, where the trip has an end, a tap-off. Every one of the 24 columns is filled.
"""

from __future__ import annotations

import zipfile
from datetime import date
from pathlib import Path

from turnstile.service_calendar import ServiceWeek
from turnstile_samples.corruption import MISSING, Corruption, Rows
from turnstile_samples.writing import LandingWeek, coded, write_days

CORRUPTIONS = (Corruption.DUPLICATES, Corruption.MISSING_DAY)
STOPS = 48
ZONE = "America/Los_Angeles"
PER_ROW = 6  # a grid of stops, about 1 km apart
_SOUTH_WEST = (34.05, -118.30)
_STEP_DEGREES = 0.01


def write_tides(rows: Rows, to: LandingWeek) -> tuple[Path, ...]:
    """Write transactions; return the files, in order of their days."""
    return write_days(rows, to, "tides", _sql)


def _sql(week: ServiceWeek, day: date) -> str:
    """One day's transactions as they are delivered, in the order of their taps."""
    stamp = f"strftime(DATE '{day}' + to_minutes(CAST(minute AS INTEGER)), '%Y-%m-%dT%H:%M:%S')"
    columns = {
        "transaction_id": f"'{day}-' || number || '-' || action",
        "service_date": f"'{day}'",
        "event_timestamp": stamp,
        "location_ping_id": "'ping-' || number",
        "amount": "'2.50'",
        "currency_type": "'USD'",
        "fare_action": "action",
        "trip_id_performed": f"'{day}-' || (number % 300)",
        "trip_id_scheduled": "'t' || (number % 300)",
        "pattern_id": "'p' || (number % 12)",
        "trip_stop_sequence": f"stop // {PER_ROW} + 1",
        "scheduled_stop_sequence": f"stop // {PER_ROW} + 1",
        "vehicle_id": "'v' || (number % 80)",
        "device_id": "'d' || (number % 160)",
        "fare_id": "'single'",
        "stop_id": "'s' || stop",
        "num_riders": "1",
        "fare_media_id": "'Smart card or ticket'",
        "rider_category": "'adult'",
        "fare_product": "'stored value'",
        "fare_period": "'peak'",
        "fare_capped": "'false'",
        "token_id": f"CASE WHEN card <> {MISSING} THEN 'token-' || card END",
        "balance": "'12.50'",
    }
    taps = f"""
        SELECT number, card, on_minute AS minute, on_place % {STOPS} AS stop, 'Enter' AS action
        FROM trips UNION ALL
        SELECT number, card, off_minute, off_place % {STOPS}, 'Exit'
        FROM trips WHERE off_place <> {MISSING}
    """
    trips = f"""
        SELECT *, row_number() OVER () AS number FROM rows
        WHERE file_day = {(day - week.monday).days}
    """
    return f"WITH trips AS ({trips}) SELECT {coded(columns)} FROM ({taps}) ORDER BY minute, 1"


def write_gtfs(path: Path) -> None:
    """Write the public feed of the network: agency, stops, one route that serves them all."""
    clocks = [f"{5 + n // 4:02d}:{n % 4 * 15:02d}:00" for n in range(STOPS)]
    times = [f"t1,{at},{at},s{n},{n + 1}" for n, at in enumerate(clocks)]
    write_feed(path, routes=["r1,1,3"], trips=["r1,daily,t1,0"], stop_times=times)


def write_feed(path: Path, *, routes: list[str], trips: list[str], stop_times: list[str]) -> None:
    """Write a feed of the network's stops.

    Args:
        path: of the archive.
        routes: lines of `routes.txt`: id, short name, type.
        trips: lines of `trips.txt`: route, service, id, direction.
        stop_times: lines of `stop_times.txt`: trip, arrival, departure, stop, sequence.
    """
    south, west = _SOUTH_WEST
    stops = [
        f"s{n},Stop {n},{south + n // PER_ROW * _STEP_DEGREES:.4f},"
        f"{west + n % PER_ROW * _STEP_DEGREES:.4f}"
        for n in range(STOPS)
    ]
    tables = {
        "agency": ["agency_name,agency_url,agency_timezone", f"Bay,https://bay.example,{ZONE}"],
        "stops": ["stop_id,stop_name,stop_lat,stop_lon", *stops],
        "routes": ["route_id,route_short_name,route_type", *routes],
        "trips": ["route_id,service_id,trip_id,direction_id", *trips],
        "stop_times": ["trip_id,arrival_time,departure_time,stop_id,stop_sequence", *stop_times],
        "calendar": [
            (
                "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,"
                "start_date,end_date"
            ),
            "daily,1,1,1,1,1,1,1,20160101,20991231",
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in tables.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.txt"), "\n".join(lines) + "\n")
