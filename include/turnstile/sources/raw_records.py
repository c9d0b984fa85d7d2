"""Made-up raw records of any feed, as its files hold them: what ingest reads, written.

For the canaries of a release and for tests. A record is a mapping of the source's own column names
to values; it is written as a line of CSV or of JSON. Where the programme states the form of ids, a
card or vehicle comes in many spellings.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from turnstile.programme.source_spec import Feed, SourceSpec, SpeedUnit
from turnstile.programme.spec import Programme
from turnstile.sources.canonical import SPEED_SCALE
from turnstile.sources.feeds import layout_of
from turnstile.sources.layout import names_in_source
from turnstile.sources.made_ids import spelt

_KMH_OF_MS = 3.6
Record = dict[str, object]
_OF_EVENT = {
    "Enter": ("Passenger boarded", "boarding_visit"),
    "Exit": ("Passenger alighted", "alighting_visit"),
}
_NO_EVENT = frozenset({"card_id", "riders", "boarding_visit", "alighting_visit"})


@dataclass(frozen=True, slots=True)
class MadeTrip:
    """One trip, or one end of it.

    Args:
        card: its id.
        mode: as the programme calls it.
        day: service day.
        on_second: tap-on, seconds after the service day's midnight; None for a tap-off alone.
        on_location: of the tap-on.
        off_second: tap-off, in the same count; None for none.
        off_location: of the tap-off.
        categories: further columns, with their values.
    """

    card: str
    mode: str
    day: date
    on_second: int | None
    on_location: str
    off_second: int | None = None
    off_location: str = ""
    categories: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MadeReading:
    """One observation of a vehicle.

    Args:
        vehicle: its id.
        day: service day.
        second: seconds after the service day's midnight, by the agency's clock.
        latitude: degrees.
        longitude: degrees.
        speed_milli_kmh: speed.
        shape: which of the feed's shapes of a record, counted up; shapes come in turns.
        delay_s: how late it is by its own record, where the feed states that.
        occupancy: how full it is, a class of GTFS-realtime, where the feed states that.
        categories: further fields, with their values.
        trip: of the timetable, where the programme names one.
    """

    vehicle: str
    day: date
    second: int
    latitude: float
    longitude: float
    speed_milli_kmh: int
    shape: int = 0
    delay_s: int = 0
    occupancy: str = ""
    categories: tuple[tuple[str, str], ...] = ()
    trip: str = ""


def trip_records(programme: Programme, trips: list[MadeTrip]) -> list[Record]:
    """Return the records of trips: one a trip, or one a tap, numbered in their order."""
    names = names_in_source(layout_of(programme.source.feed), programme)
    if "tap_on_date" in names:  # a line holds both ends
        return [_named(_opal(trip, programme.source), names) for trip in trips]
    if programme.source.feed.names_nobody:
        events = [event for trip in trips for event in _events(trip, programme.source)]
        return [_named({"tap_id": f"{n}"} | event, names) for n, event in enumerate(events)]
    taps = [tap for trip in trips for tap in _taps(trip, programme.source)]
    return [_named({"tap_id": f"{number}"} | tap, names) for number, tap in enumerate(taps)]


def reading_records(programme: Programme, readings: list[MadeReading]) -> list[Record]:
    """Return the records of observations."""
    names = names_in_source(layout_of(programme.source.feed), programme)
    return [_reading(programme, reading, names) for reading in readings]


def csv_lines(records: list[Record]) -> tuple[str, list[str]]:
    """Return the header of all columns that occur, and a line for each record."""
    columns = list(dict.fromkeys(column for record in records for column in record))
    return _line(columns), [
        _line([record.get(column, "") for column in columns]) for record in records
    ]


def json_lines(records: list[Record]) -> list[str]:
    """Return a line of JSON for each record."""
    return [json.dumps(record) for record in records]


def _line(values: list[str] | list[object]) -> str:
    """One line of CSV, without its end; nested values are JSON."""
    texts = (json.dumps(value) if isinstance(value, dict | list) else value for value in values)
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(texts)
    return written.getvalue()


def _named(fields: Record, names: dict[str, str]) -> Record:
    """The fields under the source's own names."""
    return {names.get(field, field): value for field, value in fields.items()}


def _at(day: date, second: int) -> datetime:
    """Wall clock time of a second of a service day."""
    return datetime.combine(day, time()) + timedelta(seconds=second)


def _opal(trip: MadeTrip, source: SourceSpec) -> Record:
    """One line of `opal_trips`."""
    card = spelt(trip.card, source.card_form, trip.on_second or 0)
    found: Record = {"card_id": card, "mode": trip.mode}
    for end, second, location in (
        ("on", trip.on_second, trip.on_location),
        ("off", trip.off_second, trip.off_location),
    ):
        at = None if second is None else _at(trip.day, second)
        found |= {
            f"tap_{end}_date": "" if at is None else f"{at:%Y-%m-%d}",
            f"tap_{end}_time": "" if at is None else f"{at:%H:%M:%S}",
            f"tap_{end}_location": location,
        }
    return found | dict(trip.categories)


def _taps(trip: MadeTrip, source: SourceSpec) -> list[Record]:
    """The taps of a trip, in the fields of both feeds of taps; each reads its own."""
    ends = (
        ("Enter", trip.on_second, trip.on_location),
        ("Exit", trip.off_second, trip.off_location),
    )
    always: Record = {"mode": trip.mode, "riders": "1"}
    always |= {"service_date": trip.day.isoformat(), **dict(trip.categories)}
    return [
        always
        | {
            "card_id": spelt(trip.card, source.card_form, second),
            "action": action,
            "tapped_at": f"{_at(trip.day, second):%Y-%m-%d %H:%M:%S}",
            "place": location,
        }
        for action, second, location in ends
        if second is not None
    ]


def _events(trip: MadeTrip, source: SourceSpec) -> list[Record]:
    """The boarding and the alighting of a ride, as two events that nothing joins."""
    found = []
    for tap in _taps(trip, source):
        word, visit = _OF_EVENT[str(tap["action"])]
        values = {name: value for name, value in tap.items() if name not in _NO_EVENT}
        values["passengers"] = "1"
        scheduled, _, sequence = dict(trip.categories).get(visit, "").partition("/")
        found.append(
            values | {"action": word, "scheduled_trip": scheduled, "stop_sequence": sequence}
        )
    return found


def _reading(programme: Programme, reading: MadeReading, names: dict[str, str]) -> Record:
    """One observation, in the feed's shape whose turn it is."""
    kmh = reading.speed_milli_kmh / SPEED_SCALE
    speed = kmh / _KMH_OF_MS if programme.source.speed_unit is SpeedUnit.MS else kmh
    latitude, longitude = reading.latitude, reading.longitude
    fields: Record = {
        "vehicle_id": spelt(reading.vehicle, programme.source.vehicle_form, reading.second),
        "observed_at": f"{_at(reading.day, reading.second):%Y-%m-%dT%H:%M:%S}",
        "speed": speed,
    }
    if programme.source.feed.states_delays:
        fields["delay"] = reading.delay_s
    feed = programme.source.feed
    if feed.states_occupancy:
        fields["occupancy"] = reading.occupancy
    fields |= {name: value for name, value in reading.categories if name in names}
    if programme.source.timetable:
        fields["trip"] = reading.trip
    if feed is Feed.GTFS_VEHICLE_POSITIONS:
        return _vehicle_position(
            fields | {"latitude": latitude, "longitude": longitude}, names, reading.shape
        )
    found = {names[field]: value for field, value in fields.items()}
    own: Record = {names["latitude"]: latitude, names["longitude"]: longitude}
    if feed is not Feed.ITMS:
        return found | own
    shapes: tuple[Record, ...] = (
        {names["coordinates"]: f"[{longitude}, {latitude}]"},
        {"location/coordinates/0": longitude, "location/coordinates/1": latitude},
        {"location": {"type": "Point", "coordinates": [longitude, latitude]}},
        own,
    )
    return found | shapes[reading.shape % len(shapes)]


def _vehicle_position(fields: Record, names: dict[str, str], shape: int) -> Record:
    """A GTFS-realtime position: by full path, without the outermost name, or nested."""
    paths = {names[field]: value for field, value in fields.items()}
    if shape % 3 == 0:
        return paths
    short = {path.removeprefix("vehicle."): value for path, value in paths.items()}
    if shape % 3 == 1:
        return short
    nested: Record = {}
    for path, value in short.items():
        *outer, last = path.split(".")
        inner = nested
        for key in outer:
            inner = inner.setdefault(key, {})  # type: ignore[assignment] # a mapping of mappings
        inner[last] = value
    return {"vehicle": nested}
