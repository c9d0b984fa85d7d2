"""The real files, faults and all, against a second computation in pandas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from turnstile.programme.source_spec import MissingDay, SpeedUnit
from turnstile.programme.spec import Programme
from turnstile.sources.ingest.snapshot import Snapshot, counts_of

_COLUMNS = ["vehicle", "utc", "date", "minute", "latitude", "longitude", "milli_kmh"]


def _canonical(
    vehicles: pd.Series, stamps: pd.Series, places: pd.DataFrame, speeds: pd.Series, zone: str
) -> pd.DataFrame:
    """Canonical telemetry, computed without the project's code."""
    utc = pd.to_datetime(stamps, utc=True)
    local = utc.dt.tz_convert(zone)
    rows = pd.DataFrame(
        {
            "vehicle": vehicles.astype(str),
            "utc": utc.dt.tz_localize(None).astype(str),
            "date": local.dt.strftime("%Y-%m-%d"),
            "minute": local.dt.hour * 60 + local.dt.minute,
            "latitude": places["latitude"].astype(float),
            "longitude": places["longitude"].astype(float),
            "milli_kmh": speeds,
        }
    )
    return rows.drop_duplicates().sort_values(_COLUMNS).reset_index(drop=True)


def _surat(frame: pd.DataFrame) -> pd.DataFrame:
    if "location.coordinates" in frame:
        pair = frame["location.coordinates"].str.strip("[]").str.split(",", expand=True)
        places = pd.DataFrame({"longitude": pair[0], "latitude": pair[1]})
    else:
        places = pd.DataFrame(
            {
                "longitude": frame["location/coordinates/0"],
                "latitude": frame["location/coordinates/1"],
            }
        )
    return _canonical(
        frame["license_plate"],
        frame["observationDateTime"].str.replace("T", " "),
        places,
        (frame["speed"] * 1000).round().astype("int64"),
        "Asia/Kolkata",
    )


def _ingested(snapshot: Snapshot, rows_of: Callable[..., Any]) -> pd.DataFrame:
    columns = (
        "vehicle_id, CAST(observed_at_utc AS VARCHAR), CAST(service_date AS VARCHAR), "
        "minute_of_day, latitude, longitude, speed_milli_kmh"
    )
    frame = pd.DataFrame(rows_of(snapshot, columns), columns=_COLUMNS)
    return frame.sort_values(_COLUMNS).reset_index(drop=True)


def _same(frame: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(frame, wanted, check_dtype=False)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "delivery",
    [
        ("suratITMS.csv", "2021-W52"),
        ("suratITMS_30minsTest.csv", "2021-W52"),
        ("suratTestLarge.zip", "2022-W01"),
    ],
)
def test_surat_files_agree_with_pandas(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Callable[..., Any],
    shared_data: Path,
    delivery: tuple[str, str],
) -> None:
    file, week = delivery
    path = shared_data / "surat_itms" / file
    zones.deliver(week, {file: path.read_bytes()})
    snapshot = zones.ingest(programme_of("itms"), week)
    raw = pd.read_csv(path)
    _same(_ingested(snapshot, rows_of), _surat(raw))
    counts = counts_of(snapshot)
    assert counts["rows_in"] == len(raw)
    assert counts["rows_out"] == len(raw.drop_duplicates())


def test_the_two_shapes_of_one_surat_file_are_the_same_rows(
    zones: Any, programme_of: Callable[..., Programme], shared_data: Path
) -> None:
    files = {
        name: (shared_data / "surat_itms" / name).read_bytes()
        for name in ("suratITMS.csv", "suratITMS_2022.json")
    }
    zones.deliver("2021-W52", files)
    counts = counts_of(zones.ingest(programme_of("itms"), "2021-W52"))
    assert counts["rows_out"] == counts["duplicates"] == counts["rows_in"] // 2


@pytest.mark.parametrize(
    "delivery",
    [
        (("2016-11-24", "2016-11-25", "2016-11-26", "2016-11-27"), "2016-W47"),
        (("2015-03-08",), "2015-W10"),
    ],
)
def test_austin_days_agree_with_pandas(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Callable[..., Any],
    shared_data: Path,
    delivery: tuple[tuple[str, ...], str],
) -> None:
    days, week = delivery
    programme = programme_of(
        "itms",
        zone="America/Chicago",
        columns=(("vehicle_id", "vehicle_id"), ("observed_at", "timestamp")),
        speed_unit=SpeedUnit.MS,
        missing_day=MissingDay.PUBLISH_WITH_GAP,
    )
    folder = shared_data / "capmetro_bus_gps"
    zones.deliver(week, {f"{day}.csv": (folder / f"{day}.csv").read_bytes() for day in days})
    snapshot = zones.ingest(programme, week)
    raw = pd.concat(pd.read_csv(folder / f"{day}.csv") for day in days)
    slow = raw[raw["speed"] * 3600 <= 130_000]
    wanted = _canonical(
        slow["vehicle_id"],
        slow["timestamp"],
        slow[["latitude", "longitude"]],
        (slow["speed"] * 3600).round().astype("int64"),
        "America/Chicago",
    )
    _same(_ingested(snapshot, rows_of), wanted)
    assert counts_of(snapshot)["speed_out_of_range"] == len(raw) - len(slow) > 0


def test_the_austin_day_without_rows_is_no_fault(
    zones: Any, programme_of: Callable[..., Programme], shared_data: Path
) -> None:
    programme = programme_of(
        "itms",
        zone="America/Chicago",
        columns=(("vehicle_id", "vehicle_id"), ("observed_at", "timestamp")),
    )
    name = "2016-02-14.csv"
    zones.deliver("2016-W06", {name: (shared_data / "capmetro_bus_gps" / name).read_bytes()})
    assert zones.ingest(programme, "2016-W06").days == ()
