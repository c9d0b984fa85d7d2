"""Archives of GTFS-realtime VehiclePositions, however their columns are named."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas as pd
import pytest

from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed, SpeedUnit
from turnstile.programme.spec import Programme
from turnstile.sources.ingest.snapshot import Snapshot, counts_of

WEEK = "2016-W30"
SECONDS = 1_469_413_800  # 2016-07-25 02:30 UTC, 08:00 in India
PATHS = {
    "vehicle.vehicle.id": ["a", "b"],
    "vehicle.timestamp": [SECONDS, SECONDS + 60],
    "vehicle.position.latitude": [21.2, 21.25],
    "vehicle.position.longitude": [72.8, 72.85],
    "vehicle.position.speed": [10.0, 5.0],
}
EXPECTED = [
    ("a", datetime(2016, 7, 25, 2, 30), 480, 36_000),  # noqa: DTZ001 - naive UTC
    ("b", datetime(2016, 7, 25, 2, 31), 481, 18_000),  # noqa: DTZ001
]
Ingested = Callable[..., tuple[Snapshot, list[tuple[Any, ...]]]]


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def nested() -> pd.DataFrame:
    rows = zip(*PATHS.values(), strict=True)
    return pd.DataFrame(
        {
            "vehicle": [
                {
                    "vehicle": {"id": plate},
                    "timestamp": seconds,
                    "position": {"latitude": lat, "longitude": lon, "speed": speed},
                }
                for plate, seconds, lat, lon, speed in rows
            ]
        }
    )


ARCHIVES = {
    "paths in csv": ("a.csv", pd.DataFrame(PATHS).to_csv(index=False)),
    "paths in parquet": ("a.parquet", parquet(pd.DataFrame(PATHS))),
    "no outermost name": (
        "a.csv",
        pd.DataFrame(PATHS)
        .rename(columns=lambda c: c.removeprefix("vehicle."))
        .to_csv(index=False),
    ),
    "nested": ("a.parquet", parquet(nested())),
    "written times": (
        "a.parquet",
        parquet(
            pd.DataFrame(PATHS).assign(
                **{
                    "vehicle.timestamp": pd.to_datetime(
                        PATHS["vehicle.timestamp"], unit="s", utc=True
                    )
                }
            )
        ),
    ),
}


@pytest.fixture
def ingested(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> Ingested:
    def run(name: str, content: str | bytes) -> tuple[Snapshot, list[tuple[Any, ...]]]:
        zones.deliver(WEEK, {name: content})
        programme = programme_of("itms", feed=Feed.GTFS_VEHICLE_POSITIONS, speed_unit=SpeedUnit.MS)
        snapshot = zones.ingest(programme, WEEK)
        read = "vehicle_id, observed_at_utc, minute_of_day, speed_milli_kmh"
        return snapshot, rows_of(snapshot, read) if snapshot.days else []

    return run


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_archive_gives_the_same_rows(ingested: Ingested, archive: str) -> None:
    assert ingested(*ARCHIVES[archive])[1] == EXPECTED


def test_positions_that_were_polled_twice_count_once(ingested: Ingested) -> None:
    twice = pd.concat([pd.DataFrame(PATHS)] * 2)
    snapshot, rows = ingested("a.csv", twice.to_csv(index=False))
    assert rows == EXPECTED
    assert counts_of(snapshot)["duplicates"] == 2


@pytest.mark.parametrize("stamp", ["1469413800000", "soon", "-5"])
def test_a_time_that_is_no_seconds_goes_to_quarantine(ingested: Ingested, stamp: str) -> None:
    frame = pd.DataFrame(PATHS).assign(**{"vehicle.timestamp": stamp})
    snapshot, _ = ingested("a.csv", frame.to_csv(index=False))
    assert counts_of(snapshot)["unparsable_timestamp"] == 2


def test_a_position_without_speed_goes_to_quarantine(ingested: Ingested) -> None:
    frame = pd.DataFrame(PATHS).assign(**{"vehicle.position.speed": [None, 5.0]})
    snapshot, rows = ingested("a.csv", frame.to_csv(index=False))
    assert rows == EXPECTED[1:]
    assert counts_of(snapshot)["null_speed"] == 1


def test_an_archive_without_positions_is_reported(ingested: Ingested) -> None:
    frame = pd.DataFrame(PATHS).drop(columns="vehicle.position.latitude")
    with pytest.raises(InputError, match="latitude"):
        ingested("a.csv", frame.to_csv(index=False))
