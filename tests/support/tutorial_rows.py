"""What each tutorial of docs/tutorials is tried on, and its rows read by pandas alone."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
from made_homes import ROOT

REAL = ROOT.parent / "shared/data"
Rows = Callable[[Path], pd.DataFrame]


@dataclass(frozen=True)
class Tried:
    """How a tutorial is tried.

    Args:
        rows: canonical trips, rides (one end alone), or readings of vehicles, of a clone.
        real: folder of real files that it needs; none if it makes its own.
        deliver: puts files into `delivered` of a clone.
        is_quick: it is tried each time.
    """

    rows: Rows
    real: str = ""
    deliver: Callable[[Path], None] = lambda _: None
    is_quick: bool = False


TRIED: dict[str, Tried] = {}


def tried(
    name: str,
    *,
    real: str = "",
    deliver: Callable[[Path], None] = lambda _: None,
    is_quick: bool = False,
) -> Callable[[Rows], Rows]:
    """Let a function read the rows of a tutorial."""

    def noted(rows: Rows) -> Rows:
        TRIED[name] = Tried(rows, real, deliver, is_quick)
        return rows

    return noted


def texts(clone: Path, pattern: str, sep: str = ",") -> pd.DataFrame:
    """The delivered files of a pattern as text."""
    files = sorted(clone.glob(pattern))
    return pd.concat([pd.read_csv(file, dtype=str, sep=sep) for file in files], ignore_index=True)


def minutes(clock: pd.Series) -> pd.Series:
    """Minutes after midnight of texts that begin `HH:MM`."""
    return clock.str[:2].astype("Int64") * 60 + clock.str[3:5].astype("Int64")


def write_gtfs(path: Path, stops: list[str], modes: dict[str, int]) -> None:
    """A public feed of stops (`id,latitude,longitude`), served by a route of each mode."""
    ids = [line.partition(",")[0] for line in stops]
    days = "monday,tuesday,wednesday,thursday,friday,saturday,sunday"
    times = [
        f"{mode},08:00:00,08:00:00,{stop},{n}"
        for mode in modes
        for n, stop in enumerate(ids, start=1)
    ]
    tables = {
        "agency": ["agency_name,agency_url,agency_timezone", "A,https://a.example,{zone}"],
        "stops": ["stop_id,stop_lat,stop_lon", *stops],
        "routes": ["route_id,route_short_name,route_type"]
        + [f"{mode},{mode},{kind}" for mode, kind in modes.items()],
        "trips": ["route_id,service_id,trip_id"] + [f"{mode},daily,{mode}" for mode in modes],
        "calendar": [f"service_id,{days},start_date,end_date", "daily" + ",1" * 7 + ",2010,2030"],
        "stop_times": ["trip_id,arrival_time,departure_time,stop_id,stop_sequence", *times],
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in tables.items():
            archive.writestr(f"{name}.txt", "\n".join(lines) + "\n")


def joined(taps: pd.DataFrame) -> pd.DataFrame:
    """Trips of taps: a tap-on, and the card's next tap of that mode and day if it is a tap-off.

    Args:
        taps: card_id, mode, service_date, at (minutes, may be fractions), is_off, number, place.
    """
    same = ["card_id", "mode", "service_date"]
    taps = taps.sort_values([*same, "at", "is_off", "number"]).reset_index(drop=True)
    after = taps.shift(-1)
    ends = (taps[same] == after[same]).all(axis=1) & (after["is_off"] == True)  # noqa: E712 - or empty
    ends &= after["at"] - taps["at"] <= 360
    trips = taps.assign(
        tap_on_minute=taps["at"] // 1,
        tap_on_location=taps["place"],
        tap_off_minute=(after["at"] // 1 % 1440).where(ends),
        tap_off_location=after["place"].where(ends, "UNKNOWN"),
    )
    return trips[~taps["is_off"].astype(bool)]


# ------------------------------------------------------------ trips


@tried("opal_trips")
def opal_trips(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "var/landing/opal/2016-W30/*.csv").drop_duplicates()
    has_end = raw["tap_off_date"].notna() & (raw["tap_off_location"] != "UNKNOWN")
    return pd.DataFrame(
        {
            "card_id": raw["card_id"].str.lower(),
            "mode": raw["mode"],
            "service_date": raw["tap_on_date"],
            "tap_on_minute": minutes(raw["tap_on_time"]),
            "tap_on_location": raw["tap_on_location"],
            "tap_off_minute": minutes(raw["tap_off_time"]).where(has_end),
            "tap_off_location": raw["tap_off_location"].where(has_end, "UNKNOWN"),
        }
    )


@tried("tides_fare_transactions")
def tides_fare_transactions(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "var/landing/taps/2016-W30/*.csv").drop_duplicates()
    raw = raw[raw["fare_action"].isin(["Enter", "Exit"])]
    is_later = (raw["event_timestamp"].str[:10] > raw["service_date"]).astype(int)
    taps = pd.DataFrame(
        {
            "card_id": raw["token_id"],
            "mode": raw.get("mode", "bus"),
            "service_date": raw["service_date"],
            "at": minutes(raw["event_timestamp"].str[11:]) + 1440 * is_later,
            "is_off": raw["fare_action"] == "Exit",
            "number": raw["transaction_id"],
            "place": raw["stop_id"],
        }
    )
    return joined(taps)


@tried("tides_passenger_events")
def tides_passenger_events(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "var/landing/doors/2016-W30/*.csv").drop_duplicates()
    return pd.DataFrame(
        {
            "mode": "bus",
            "service_date": raw["service_date"],
            "minute": minutes(raw["event_timestamp"].str[11:]),
            "place": raw["stop_id"],
            "is_off": raw["event_type"] == "Passenger alighted",
            "number": raw["event_count"].astype(int),
        }
    )


def deliver_sube(clone: Path) -> None:
    shutil.copy(REAL / "sube_taps/2019-11-27_trx.csv", clone / "delivered")
    lines = [
        f"s{south}-{west},-{south / 100:.2f},-{west / 100:.2f}"
        for south in range(3452, 3472, 4)
        for west in range(5836, 5860, 4)
    ]
    write_gtfs(clone / "delivered/gtfs.zip", lines, {"bus": 3, "subway": 1, "train": 2})
    _in_zone(clone / "delivered/gtfs.zip", "America/Argentina/Buenos_Aires")


def _in_zone(feed: Path, zone: str) -> None:
    """Let the agency of a feed be in a zone."""
    with zipfile.ZipFile(feed) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    with zipfile.ZipFile(feed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content.replace("{zone}", zone))


def _grid(degrees: str) -> str:
    exact = Decimal(degrees).quantize(Decimal("1e-6"), ROUND_HALF_UP)
    return str(exact.quantize(Decimal("0.01"), ROUND_HALF_UP))


@tried("taps_sube", real="sube_taps", deliver=deliver_sube)
def taps_sube(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/2019-11-27_trx.csv").drop_duplicates()
    raw = raw[raw["lat"].notna() & raw["lon"].notna()]
    kind = raw["tipo_trx_tren"].fillna("USO")
    raw, kind = raw[kind != "CHECK OUT SIN CHECKIN"], kind[kind != "CHECK OUT SIN CHECKIN"]
    taps = pd.DataFrame(
        {
            "card_id": raw["id_tarjeta"].astype(float).map("{:010.0f}".format),
            "mode": raw["modo"].map({"COL": "bus", "SUB": "subway", "TRE": "train"}),
            "service_date": "2019-11-27",
            "at": raw["hora"].astype(int) * 60,
            "is_off": kind == "CHECK OUT",
            "number": raw["id"].astype(int),
            "place": [
                f"{_grid(a)} {_grid(b)}" for a, b in zip(raw["lat"], raw["lon"], strict=True)
            ],
        }
    )
    return joined(taps)


# ------------------------------------------------------------ vehicles


def readings(
    vehicles: pd.Series, stamps: pd.Series, zone: str, places: tuple[pd.Series, pd.Series]
) -> pd.DataFrame:
    """Readings of vehicles, on an agency's clock; times are instants or texts with an offset."""
    local = pd.to_datetime(stamps, utc=True, format="mixed").dt.tz_convert(zone)
    return pd.DataFrame(
        {
            "vehicle": vehicles,
            "at": local,
            "day": local.dt.date,
            "minute": local.dt.hour * 60 + local.dt.minute,
            "latitude": places[0].astype(float),
            "longitude": places[1].astype(float),
        }
    )


def as_milli_kmh(speeds: pd.Series, factor: int) -> list[int]:
    """Thousandths of a km/h, rounded half up."""
    exact = (Decimal(speed) * factor for speed in speeds)
    return [int(speed.quantize(Decimal(1), ROUND_HALF_UP)) for speed in exact]


def deliver_surat(clone: Path) -> None:
    shutil.copy(REAL / "surat_itms/suratTestLarge.zip", clone / "delivered")


@tried("itms_surat", real="surat_itms", deliver=deliver_surat)
def itms_surat(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/unpacked/*.csv")
    pair = raw["location.coordinates"].str.strip("[]").str.split(",", expand=True)
    rows = readings(
        raw["license_plate"], raw["observationDateTime"], "Asia/Kolkata", (pair[1], pair[0])
    )
    rows = rows.assign(
        milli_kmh=as_milli_kmh(raw["speed"], 1000), delay_s=raw["trip_delay"].astype(float).round()
    )
    return rows[rows["milli_kmh"].between(0, 130_000)].drop_duplicates()


def deliver_austin(clone: Path) -> None:
    folder = REAL / "capmetro_bus_gps"
    for day in range(24, 28):
        shutil.copy(folder / f"2016-11-{day}.csv", clone / "delivered")
    packed = folder / "stops_20160821_20170121.csv.gz"
    (clone / "delivered/stops.txt").write_bytes(gzip.decompress(packed.read_bytes()))


@tried("gps_austin", real="capmetro_bus_gps", deliver=deliver_austin)
def gps_austin(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/2016-11-*.csv").dropna(subset="speed")
    rows = readings(
        raw["vehicle_id"], raw["timestamp"], "America/Chicago", (raw["latitude"], raw["longitude"])
    )
    rows = rows.assign(milli_kmh=as_milli_kmh(raw["speed"], 3600))
    return rows[rows["milli_kmh"].between(0, 130_000)].drop_duplicates()


SURAT = "Asia/Kolkata"


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def wire(content: bytes) -> dict[int, list[int | float | bytes]]:
    """Fields of a protobuf message by their numbers: its wire format, read by hand."""
    fields: dict[int, list[int | float | bytes]] = {}
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, kind = key >> 3, key & 7
        value: int | float | bytes
        if kind == 0:
            value, at = _varint(content, at)
        elif kind == 5:
            (value,), at = struct.unpack_from("<f", content, at), at + 4
        else:
            assert kind == 2
            length, at = _varint(content, at)
            value, at = content[at : at + length], at + length
        fields.setdefault(number, []).append(value)
    return fields


@tried("gtfs_realtime")
def gtfs_realtime(clone: Path) -> pd.DataFrame:
    rows = []
    for file in sorted(clone.glob("delivered/gtfs_vehicle_positions/*/*.pb")):
        for entity in wire(file.read_bytes())[2]:
            (vehicle,) = wire(entity)[4]
            fields = wire(vehicle)
            position, (name,) = wire(fields[2][0]), wire(fields[8][0])[1]
            speed = position.get(5, [0.0])[0]
            rows.append((name.decode(), fields[5][0], position[1][0], position[2][0], speed))
    raw = pd.DataFrame(rows, columns=["vehicle", "stamp", "latitude", "longitude", "speed"])
    stamps = pd.to_datetime(raw["stamp"], unit="s", utc=True)
    observations = readings(raw["vehicle"], stamps, SURAT, (raw["latitude"], raw["longitude"]))
    return observations.assign(milli_kmh=as_milli_kmh(raw["speed"], 3600)).drop_duplicates()


@tried("hfp")
def hfp(clone: Path) -> pd.DataFrame:
    lines = [
        line
        for file in sorted(clone.glob("delivered/hfp/*/*.ndjson"))
        for line in file.read_text().splitlines()
    ]
    raw = pd.DataFrame([json.loads(line)["VP"] for line in lines])
    vehicles = raw["oper"].astype(str) + "/" + raw["veh"]
    observations = readings(vehicles, raw["tst"], SURAT, (raw["lat"], raw["long"]))
    speeds = as_milli_kmh(raw["spd"].map(repr), 3600)
    return observations.assign(milli_kmh=speeds, delay_s=-raw["dl"]).drop_duplicates()


@tried("siri_vm")
def siri_vm(clone: Path) -> pd.DataFrame:
    space, rows = "{http://www.siri.org.uk/siri}", []
    for file in sorted(clone.glob("delivered/siri_vm/*/*.xml")):
        for activity in ET.parse(file).iter(f"{space}VehicleActivity"):  # noqa: S314 - our own
            texts = {element.tag.removeprefix(space): element.text for element in activity.iter()}
            rows.append(texts)
    raw = pd.DataFrame(rows)
    observations = readings(
        raw["VehicleRef"], raw["RecordedAtTime"], SURAT, (raw["Latitude"], raw["Longitude"])
    )
    late = pd.to_timedelta(raw["Delay"]).dt.total_seconds()
    return observations.assign(
        milli_kmh=as_milli_kmh(raw["Velocity"], 1000), delay_s=late
    ).drop_duplicates()


# ------------------------------------------------------------ without cards


@tried("hired_trips")
def hired_trips(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/hired_trips/2016-W30/*.csv").drop_duplicates()
    has_end = raw["ended_at"].notna() & raw["end_station_id"].notna()
    return pd.DataFrame(
        {
            "card_id": raw["ride_id"],
            "mode": "bike",
            "service_date": raw["started_at"].str[:10],
            "tap_on_minute": minutes(raw["started_at"].str[11:]),
            "tap_on_location": raw["start_station_id"],
            "tap_off_minute": minutes(raw["ended_at"].str[11:]).where(has_end),
            "tap_off_location": raw["end_station_id"].where(has_end, "UNKNOWN"),
        }
    )


def _both_ways(raw: pd.DataFrame, place: str, clock: pd.Series) -> pd.DataFrame:
    """Entries and exits of gates, of a time `YYYY-MM-DDTHH:MM`."""
    ways = [
        pd.DataFrame(
            {
                "mode": "bus",
                "service_date": clock.str[:10],
                "minute": minutes(clock.str[11:]),
                "place": raw[place],
                "is_off": column == "exits",
                "number": raw[column].astype(int),
            }
        )
        for column in ("entries", "exits")
    ]
    counts = pd.concat(ways, ignore_index=True)
    return counts[counts["number"] > 0]


@tried("gate_counts", is_quick=True)
def gate_counts(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/gate_counts/2016-W30/*.csv")
    return _both_ways(raw, "station_id", raw["interval_start"])


@tried("gate_counters")
def gate_counters(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/gate_counters/2016-W30/*.csv")
    raw["at"] = pd.to_datetime(raw["DATE"] + " " + raw["TIME"], format="%m/%d/%Y %H:%M:%S")
    raw = raw.sort_values(["UNIT", "C/A", "SCP", "at"])
    of_gate = raw.groupby(["UNIT", "C/A", "SCP"])
    for column in ("ENTRIES", "EXITS"):
        later = of_gate[column].shift(-1)
        raw[column.lower()] = (later.astype(float) - raw[column].astype(float)).fillna(0)
    raw = raw[raw["at"] < "2016-08-01"]
    return _both_ways(raw, "UNIT", raw["at"].dt.strftime("%Y-%m-%dT%H:%M"))


# ------------------------------------------------------------ calls at stops


@tried("ist_daten")
def ist_daten(clone: Path) -> pd.DataFrame:
    raw = texts(clone, "delivered/ist_daten/2022-W01/*.csv", ";").drop_duplicates()
    raw = raw[raw["AN_PROGNOSE_STATUS"] == "REAL"]
    at, due = (
        pd.to_datetime(raw[name], format="%d.%m.%Y %H:%M:%S")
        for name in ("AN_PROGNOSE", "ANKUNFTSZEIT")
    )
    return pd.DataFrame(
        {
            "vehicle": raw["FAHRT_BEZEICHNER"],
            "at": at,
            "day": at.dt.date,
            "minute": at.dt.hour * 60 + at.dt.minute,
            "stop": raw["BPUIC"],
            "delay_s": (at - due).dt.total_seconds(),
        }
    ).drop_duplicates()


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


@tried("gtfs_trip_updates")
def gtfs_trip_updates(clone: Path) -> pd.DataFrame:
    rows = []
    for file in sorted(clone.glob("delivered/gtfs_trip_updates/*/*.pb")):
        for entity in wire(file.read_bytes())[2]:
            update = wire(wire(entity)[3][0])
            for call in update[2]:
                stop = wire(call)
                event = wire((stop.get(2) or stop[3])[0])
                name, of = wire(update[3][0])[1][0], stop[4][0]
                if event[2][0] <= update[4][0]:
                    late = _signed(int(event.get(1, [0])[0]))
                    rows.append((name.decode(), event[2][0], of.decode(), late))
    raw = pd.DataFrame(rows, columns=["vehicle", "at", "stop", "delay_s"])
    local = pd.to_datetime(raw["at"], unit="s", utc=True).dt.tz_convert(SURAT)
    minute = local.dt.hour * 60 + local.dt.minute
    return raw.assign(day=local.dt.date, minute=minute).drop_duplicates()
