"""Real Surat and Austin files, from landing zone to exact vectors, against pandas and h3."""

from __future__ import annotations

import gzip
import hmac
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from math import floor
from pathlib import Path
from zoneinfo import ZoneInfo

import h3
import numpy as np
import pandas as pd
import pytest
from bounding_messages import message

from turnstile.counting.exact_tables import count
from turnstile.estimates.vehicles.mean_intervals import RatioNoise, means_of
from turnstile.measures.registry import Measure
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import load_programme
from turnstile.programme.source_spec import Feed, SpeedUnit
from turnstile.programme.spec import DomainSpec, Outside, Programme, TableSpec, TimeSpec, UnitBound
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.week import ingest

INCLUDE = Path(__file__).resolve().parents[2] / "include"
SECRET = b"a secret of the release"
CLAMP_KMH, LIMIT_KMH, FASTEST_KMH = 40, 30, 130
AUSTIN_CELLS = 20
HALF = Fraction(1, 2)
TABLES = (
    TableSpec("speed", ("slot", "cell"), Measure.MEAN_SPEED, clamp_kmh=CLAMP_KMH),
    TableSpec("speeding", ("slot", "cell"), Measure.BUSES_OVER, limits_kmh=(LIMIT_KMH,)),
)


def surat_programme(at_most: int) -> Programme:
    programme = load_programme("itms", INCLUDE)
    return replace(
        programme,
        time=replace(programme.time, slot_minutes=60),
        domain=replace(programme.domain, first_minute=300),
        units=(UnitBound(ProtectionUnit.BUS_DAY, at_most),),
        tables=TABLES,
    )


def austin_programme(at_most: int) -> Programme:
    programme = surat_programme(at_most)
    names = (("vehicle_id", "vehicle_id"), ("observed_at", "timestamp"))
    return replace(
        programme,
        source=replace(programme.source, columns=names, speed_unit=SpeedUnit.MS),
        time=TimeSpec(ZoneInfo("America/Chicago"), slot_minutes=60),
        domain=DomainSpec(None, "domains/austin_stops.csv", 7, 1, 0, 1440, Outside.DROP),
    )


def milli_kmh(text: str, factor: int) -> int | None:
    """Return a speed in milli-km/h, rounded half up; None if it is none or an outlier."""
    try:
        value = Decimal(text) * factor
    except InvalidOperation:
        return None
    if not 0 <= value <= 1000 * FASTEST_KMH:
        return None
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def readings_of(raw: pd.DataFrame, zone: str, factor: int) -> pd.DataFrame:
    """Clean readings from raw text columns vehicle, stamp, latitude, longitude, speed."""
    frame = raw.dropna().copy()
    frame["milli"] = [milli_kmh(text, factor) for text in frame["speed"]]
    frame = frame.dropna(subset="milli")
    frame["utc"] = pd.to_datetime(frame["stamp"], utc=True, format="ISO8601")
    local = frame["utc"].dt.tz_convert(zone)
    frame["day"], frame["hour"] = local.dt.date, local.dt.hour
    frame["at"] = [
        (float(latitude), float(longitude))
        for latitude, longitude in zip(frame["latitude"], frame["longitude"], strict=True)
    ]
    return frame.drop_duplicates(["vehicle", "utc", "at", "milli"])


def expected(
    readings: pd.DataFrame, domain: PublicDomain, first_hour: int, at_most: int
) -> dict[tuple[str, str, None], np.ndarray]:
    """Count with pandas, h3 and hmac, and no code of counting."""
    slots, cells = (axis.labels for axis in domain.dimensions("bus"))
    cell_of = {at: h3.latlng_to_cell(*at, 7) for at in set(readings["at"])}
    place = {cell: number for number, cell in enumerate(cells)}
    readings = readings.assign(
        cell=[place.get(cell_of[at], -1) for at in readings["at"]],
        slot=readings["hour"] - first_hour,
    )
    readings = readings[(readings["cell"] >= 0) & readings["slot"].between(0, len(slots) - 1)]
    groups = (
        readings.groupby(["vehicle", "day", "slot", "cell"])["milli"]
        .agg(sum_milli="sum", readings="count", max_milli="max")
        .reset_index()
    )
    groups["key"] = [
        hmac.new(
            SECRET, message(str(row.day), (row.slot, row.cell), row.vehicle), "sha256"
        ).digest()
        for row in groups.itertuples()
    ]
    groups = groups.sort_values("key").groupby(["vehicle", "day"]).head(at_most)
    steps = pd.Series(
        [
            floor(10 * min(Fraction(int(row.sum_milli), 1000 * row.readings), CLAMP_KMH) + HALF)
            for row in groups.itertuples()
        ],
        index=groups.index,
    )
    weights = {
        ("speed", "sum", None): steps - 5 * CLAMP_KMH,
        ("speed", "buses", None): steps * 0 + 1,
        ("speeding", f"over_{LIMIT_KMH}", None): (groups["max_milli"] > 1000 * LIMIT_KMH).astype(
            int
        ),
    }
    cell = groups["slot"].astype(int) * len(cells) + groups["cell"]
    return {
        label: np.bincount(cell, weights=values, minlength=len(slots) * len(cells)).astype(np.int64)
        for label, values in weights.items()
    }


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., dict[tuple[str, str, None], np.ndarray]]:
    def run(
        programme: Programme, include: Path, week: str, files: list[Path]
    ) -> dict[tuple[str, str, None], np.ndarray]:
        landing = tmp_path / "landing" / "itms" / week
        landing.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, landing)
        snapshot = ingest(
            programme,
            ServiceWeek.parse(week),
            landing=tmp_path / "landing",
            private=tmp_path / "private",
            progress=lambda _: None,
        )
        tables = count(
            programme,
            load_domain(programme, include),
            ServiceWeek.parse(week).days,
            snapshot.folder / "rows",
            secret=SECRET,
            work=tmp_path / "work",
            progress=lambda _: None,
        )
        return {table.label: table.reveal_to_mechanism() for table in tables}

    return run


@pytest.fixture
def austin_include(tmp_path: Path, shared_data: Path) -> Path:
    """Return an include folder with the public stops of Austin."""
    listed = shared_data / "capmetro_bus_gps" / "stops_20160821_20170121.csv.gz"
    stops = tmp_path / "include/domains/austin_stops.csv"
    stops.parent.mkdir(parents=True)
    stops.write_bytes(gzip.decompress(listed.read_bytes()))
    return tmp_path / "include"


POSITION_PATHS = {
    "vehicle": "vehicle.vehicle.id",
    "stamp": "vehicle.timestamp",
    "latitude": "vehicle.position.latitude",
    "longitude": "vehicle.position.longitude",
    "speed": "vehicle.position.speed",
}
SURAT_COLUMNS = {
    "license_plate": "vehicle",
    "observationDateTime": "stamp",
    "location/coordinates/1": "latitude",
    "location/coordinates/0": "longitude",
    "speed": "speed",
}


def surat_raw(file: Path) -> pd.DataFrame:
    raw = pd.read_csv(file, dtype=str)
    if "location.coordinates" in raw:
        pairs = raw["location.coordinates"].str.extract(r"\[(?P<lon>[^,]*),\s*(?P<lat>[^\]]*)\]")
        raw["location/coordinates/0"], raw["location/coordinates/1"] = pairs["lon"], pairs["lat"]
    return raw[list(SURAT_COLUMNS)].rename(columns=SURAT_COLUMNS)


SPLIT_AND_STRING = ("suratITMS.csv", "suratITMS_30minsTest.csv")
NESTED_AND_STRING = ("suratITMS_2022.json", "suratITMS_30minsTest.csv")  # the same observations


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("delivered", "read", "week", "at_most"),
    [
        (SPLIT_AND_STRING, SPLIT_AND_STRING, "2021-W52", 2),
        (SPLIT_AND_STRING, SPLIT_AND_STRING, "2021-W52", 89),
        (NESTED_AND_STRING, SPLIT_AND_STRING, "2021-W52", 2),
        (("suratTestLarge.zip",), ("suratTestLarge.zip",), "2022-W01", 4),
    ],
)
def test_vectors_of_the_real_surat_files_agree_with_pandas(
    counted: Callable[..., dict[tuple[str, str, None], np.ndarray]],
    shared_data: Path,
    delivered: tuple[str, ...],
    read: tuple[str, ...],
    week: str,
    at_most: int,
) -> None:
    folder = shared_data / "surat_itms"
    programme = surat_programme(at_most)
    vectors = counted(programme, INCLUDE, week, [folder / file for file in delivered])
    raw = pd.concat([surat_raw(folder / file) for file in read])
    readings = readings_of(raw, "Asia/Kolkata", 1000)
    wanted = expected(readings, load_domain(programme, INCLUDE), 5, at_most)
    assert wanted["speed", "buses", None].sum() > 100
    for label, counts in wanted.items():
        assert np.array_equal(vectors[label], counts)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("days", "week", "least"),
    [
        (("2016-11-24", "2016-11-25", "2016-11-26", "2016-11-27"), "2016-W47", 5000),
        (("2015-03-08",), "2015-W10", 500),  # the hour from 2 to 3 is not there
    ],
)
def test_vectors_of_real_austin_days_agree_with_pandas(
    counted: Callable[..., dict[tuple[str, str, None], np.ndarray]],
    shared_data: Path,
    austin_include: Path,
    days: tuple[str, ...],
    week: str,
    least: int,
) -> None:
    paths = [shared_data / "capmetro_bus_gps" / f"{day}.csv" for day in days]
    programme = austin_programme(AUSTIN_CELLS)
    vectors = counted(programme, austin_include, week, paths)
    raw = pd.concat([pd.read_csv(path, dtype=str) for path in paths]).rename(
        columns={"vehicle_id": "vehicle", "timestamp": "stamp"}
    )[["vehicle", "stamp", "latitude", "longitude", "speed"]]
    readings = readings_of(raw, "America/Chicago", 3600)
    domain = load_domain(programme, austin_include)
    wanted = expected(readings, domain, 0, AUSTIN_CELLS)
    assert wanted["speed", "buses", None].sum() > least
    for label, counts in wanted.items():
        assert np.array_equal(vectors[label], counts)
    # Negative control: the bound takes part, and one pair more would be seen.
    looser = expected(readings, domain, 0, AUSTIN_CELLS + 1)
    assert not np.array_equal(vectors["speed", "buses", None], looser["speed", "buses", None])
    # Negative control: the zone takes part; an hour off would be seen.
    shifted = expected(readings.assign(hour=(readings["hour"] + 1) % 24), domain, 0, AUSTIN_CELLS)
    assert not np.array_equal(vectors["speed", "buses", None], shifted["speed", "buses", None])


def as_vehicle_positions(raw: pd.DataFrame, folder: Path) -> list[Path]:
    """The same day as archives of GTFS-realtime: by paths, without the outermost name, nested."""
    stamps = pd.to_datetime(raw["stamp"], utc=True, format="ISO8601")
    seconds = (stamps - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    paths = raw.assign(stamp=seconds.astype(str))[list(POSITION_PATHS)]
    paths = paths.rename(columns=POSITION_PATHS)
    parts = [paths.iloc[number::3] for number in range(3)]
    files = [folder / name for name in ("paths.csv", "short.parquet", "nested.ndjson")]
    parts[0].to_csv(files[0], index=False)
    parts[1].rename(columns=lambda name: name.removeprefix("vehicle.")).to_parquet(files[1])
    nested = (
        {"vehicle": {"vehicle": {"id": car}, "timestamp": at,
                     "position": {"latitude": lat, "longitude": lon, "speed": speed}}}
        for car, at, lat, lon, speed in parts[2].itertuples(index=False)
    )  # fmt: skip
    files[2].write_text("".join(f"{json.dumps(entity)}\n" for entity in nested))
    return files


def test_vectors_of_a_real_day_as_gtfs_realtime_agree_with_pandas(
    counted: Callable[..., dict[tuple[str, str, None], np.ndarray]],
    shared_data: Path,
    austin_include: Path,
    tmp_path: Path,
) -> None:
    raw = pd.read_csv(shared_data / "capmetro_bus_gps/2016-11-24.csv", dtype=str)
    raw = raw.rename(columns={"vehicle_id": "vehicle", "timestamp": "stamp"})
    raw = raw[["vehicle", "stamp", "latitude", "longitude", "speed"]]
    programme = austin_programme(AUSTIN_CELLS)
    source = replace(programme.source, feed=Feed.GTFS_VEHICLE_POSITIONS, columns=())
    programme = replace(programme, source=source)
    files = as_vehicle_positions(raw, tmp_path)
    vectors = counted(programme, austin_include, "2016-W47", files)
    readings = readings_of(raw, "America/Chicago", 3600)
    wanted = expected(readings, load_domain(programme, austin_include), 0, AUSTIN_CELLS)
    assert wanted["speed", "buses", None].sum() > 1000
    for label, counts in wanted.items():
        assert np.array_equal(vectors[label], counts)


def noise_of(family: NoiseFamily, scale: Fraction, size: int, seed: int) -> np.ndarray:
    """Return seeded noise by its distribution function."""
    values, probabilities = noise_pmf(family, scale, reach=40 * int(scale))
    chance = random.Random(seed)  # noqa: S311 - the same in every run
    drawn = [chance.random() for _ in range(size)]
    places = np.searchsorted(np.cumsum(probabilities), drawn)
    return np.asarray(values)[np.minimum(places, len(values) - 1)].astype(np.int64)


@pytest.mark.parametrize("family", list(NoiseFamily))
def test_means_of_real_days_are_shown_where_somebody_drove(
    counted: Callable[..., dict[tuple[str, str, None], np.ndarray]],
    shared_data: Path,
    austin_include: Path,
    family: NoiseFamily,
) -> None:
    paths = [shared_data / f"capmetro_bus_gps/2016-11-{day}.csv" for day in (24, 25, 26, 27)]
    vectors = counted(austin_programme(AUSTIN_CELLS), austin_include, "2016-W47", paths)
    sums, buses = (vectors["speed", name, None] for name in ("sum", "buses"))
    noise = RatioNoise(family, Fraction(200), Fraction(1), buses.size)
    noisy = (
        exact + noise_of(family, scale, exact.size, seed)
        for exact, scale, seed in ((sums, noise.sum_scale, 1), (buses, noise.count_scale, 2))
    )
    means = means_of(*noisy, noise, clamp_kmh=CLAMP_KMH)
    shown = ~means.is_withheld
    values, probabilities = noise_pmf(family, noise.count_scale, reach=40)
    empty = int((buses == 0).sum())
    assert empty * probabilities[values >= noise.least_count].sum() < 0.5
    assert shown.sum() > 50
    assert (buses[shown] > 0).all()
    assert (means.low[shown] < means.high[shown]).all()
    assert (means.low[shown] <= means.mean[shown]).all()
    assert (means.mean[shown] <= means.high[shown]).all()
    # Negative control: three errors alone, as it was once, would show cells in which nobody drove.
    three = replace(noise, cells=1).least_count
    assert empty * probabilities[values >= three].sum() > 2


def test_vectors_of_the_real_austin_day_without_rows_are_zero(
    counted: Callable[..., dict[tuple[str, str, None], np.ndarray]],
    shared_data: Path,
    austin_include: Path,
) -> None:
    path = shared_data / "capmetro_bus_gps" / "2016-02-14.csv"
    vectors = counted(austin_programme(AUSTIN_CELLS), austin_include, "2016-W06", [path])
    assert len(vectors) == 3
    assert all(counts.size > 1000 and not counts.any() for counts in vectors.values())
