"""Headways around the stops of Austin and delays in Surat, from the real files, beside pandas."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import h3
import numpy as np
import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

Cli = Callable[..., int]
PROGRAMMES = Path(__file__).parent / "programmes"
AUSTIN_WEEK, SURAT_WEEK = "2016-W47", "2022-W01"
AUSTIN_DAYS = ("2016-11-24", "2016-11-25", "2016-11-26", "2016-11-27")
SURE = 6  # standard deviations
HOUR, DAYS, CLAMP = 60, 4, 20


def package_of(deployment: Deployment, turnstile: Cli, name: str, week: str) -> Path:
    """Release a week and check it as anybody can."""
    assert turnstile("check", name) == 0
    assert turnstile("run", name, "--week", week) == 0
    package = deployment.public / name / week / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    return package


def austin_bus_days(folder: Path) -> pd.Series:
    """Buses of each hour and cell, a bus once a day, by pandas and h3."""
    rows = pd.concat(pd.read_csv(folder / f"{day}.csv", dtype={"vehicle_id": str})
                     for day in AUSTIN_DAYS)  # fmt: skip
    rows = rows.dropna(subset=["vehicle_id", "timestamp", "speed", "latitude", "longitude"])
    local = pd.to_datetime(rows.timestamp.str[:19])
    rows["day"], rows["slot"] = local.dt.date, local.dt.strftime("%H:00")
    rows = rows[(rows.speed * 3.6 <= 130) & rows.day.astype(str).isin(AUSTIN_DAYS)]
    pairs = zip(rows.latitude, rows.longitude, strict=True)
    rows["cell"] = [h3.latlng_to_cell(*pair, 8) for pair in pairs]
    once = rows.drop_duplicates(["vehicle_id", "day", "slot", "cell"])
    return once.groupby(["slot", "cell"]).size()


def test_headways_around_the_stops_of_austin(
    deployment: Deployment, turnstile: Cli, shared_data: Path
) -> None:
    folder = shared_data / "capmetro_bus_gps"
    shutil.copy(PROGRAMMES / "austin_headways.yaml", deployment.include / "programmes")
    stops = gzip.decompress((folder / "stops_20160821_20170121.csv.gz").read_bytes())
    (deployment.include / "domains/austin_stops.csv").write_bytes(stops)
    landing = deployment.landing("austin_headways", AUSTIN_WEEK)
    landing.mkdir(parents=True)
    for day in AUSTIN_DAYS:
        shutil.copyfile(folder / f"{day}.csv", landing / f"{day}.csv")
    package = package_of(deployment, turnstile, "austin_headways", AUSTIN_WEEK)
    table = pd.read_csv(package / "tables/headway.csv").set_index(["slot", "cell"])
    true = austin_bus_days(folder).reindex(table.index, fill_value=0)
    drawn = pd.read_csv(package / "measurements/headway.csv").set_index(["slot", "cell"]).buses
    deviation = table.bus_days_standard_deviation.iloc[0]
    # no bus-day has 240 hours and cells: what is drawn is the truth and its noise
    assert np.abs(drawn - true).max() < SURE * deviation
    shown = table[~table.is_withheld]
    assert 100 < len(shown) < len(table)
    assert (shown.headway_minutes - HOUR * DAYS / drawn[shown.index]).abs().max() < 0.01
    observed = HOUR * DAYS / true[shown.index]
    holds = (shown.low_95_minutes <= observed) & (observed <= shown.high_95_minutes)
    assert holds.mean() > 0.85  # those that are shown were chosen by their noise
    every = HOUR * DAYS / true.replace(0, np.nan)
    high = table.high_95_minutes.fillna(np.inf)
    held = ((table.low_95_minutes <= every.fillna(np.inf)) & (every.fillna(np.inf) <= high)).mean()
    assert held > 0.93  # shown and withheld together


def surat_delays(file: Path) -> tuple[pd.Series, pd.Series]:
    """Mean delay and bus-days of each hour and cell, of the bus's own means, by pandas and h3."""
    rows = pd.read_csv(file, dtype=str)
    rows = rows.rename(columns={"location/coordinates/0": "lon", "location/coordinates/1": "lat"})
    local = rows.observationDateTime.str[:19].str.replace("T", " ")
    rows["slot"] = local.str[11:13] + ":00"
    rows = rows[rows.lat.notna() & rows.license_plate.notna() & (rows.speed.astype(float) <= 130)]
    rows["cell"] = [h3.latlng_to_cell(float(a), float(b), 7)
                    for a, b in zip(rows.lat, rows.lon, strict=True)]  # fmt: skip
    rows["delay"] = pd.to_numeric(rows.trip_delay)
    rows = rows.drop_duplicates(
        ["license_plate", "observationDateTime", "lat", "lon", "speed", "delay"]
    )
    of_bus = rows.groupby(["slot", "cell", "license_plate"]).delay.mean() / 60
    kept = of_bus.clip(-CLAMP, CLAMP).dropna().groupby(["slot", "cell"])
    return kept.mean(), kept.size()


def test_delays_in_surat(deployment: Deployment, turnstile: Cli, shared_data: Path) -> None:
    source = shared_data / "surat_itms/suratITMS.csv"
    landing = deployment.landing("itms", "2021-W52")
    landing.mkdir(parents=True)
    shutil.copyfile(source, landing / source.name)
    deployment.edit("itms_delays", "missing_day: refuse", "missing_day: publish_with_gap")
    deployment.edit("itms_delays", 'rho: "31/100"', 'rho: "4000"')  # next to no noise
    deployment.edit("itms_delays", 'rho: "38/100"', 'rho: "4000"')
    deployment.edit("itms_delays", 'rho: "1368"', 'rho: "300000000"')
    package = package_of(deployment, turnstile, "itms_delays", "2021-W52")
    means, buses = surat_delays(source)
    table = pd.read_csv(package / "tables/delay.csv").set_index(["slot", "cell"])
    shown = table[~table.is_withheld].join(means.rename("true")).join(buses.rename("n"))
    busy = shown[shown.n >= 5]
    assert len(busy) > 10
    error = (busy.mean_delay_minutes - busy.true).abs()
    assert (error <= SURE * busy.standard_deviation_minutes + 0.06).all()
    assert busy.true.abs().max() > 2


def test_a_file_without_delays_is_refused_and_so_is_a_feed(
    deployment: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landing = deployment.landing("itms", WEEK)
    landing.mkdir(parents=True)
    row = "GJ05,2016-07-25T10:00:00+05:30,10,21.17,72.83"
    header = "license_plate,observationDateTime,speed,latitude,longitude"
    (landing / "x.csv").write_text(f"{header}\n{row}\n")
    assert turnstile("run", "itms_delays", "--week", WEEK) == 2
    assert "trip_delay" in capsys.readouterr().err
    deployment.edit("itms_delays", "feed: itms", "feed: gtfs_vehicle_positions")
    assert turnstile("check", "itms_delays") == 2
    assert "tables.delay.measure" in capsys.readouterr().err
