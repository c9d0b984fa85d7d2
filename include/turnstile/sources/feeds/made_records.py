"""Made-up trips and observations, which a feed's own module writes as its raw records.

A record is a mapping of the source's own column names to values. Where the programme states the
form of ids, a card or vehicle comes in many spellings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from turnstile.programme.source_spec import RecordStatus, SourceSpec
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.made_ids import spelt

Record = dict[str, object]


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
        spelling: which spelling of the card the first end has, counted up; spellings come in turns.
    """

    card: str
    mode: str
    day: date
    on_second: int | None
    on_location: str
    off_second: int | None = None
    off_location: str = ""
    categories: tuple[tuple[str, str], ...] = ()
    spelling: int = 0


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
        spelling: which spelling of the vehicle, counted up; spellings come in turns.
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
    spelling: int = 0


def clock_of(day: date, second: int) -> datetime:
    """Wall clock time of a second of a service day."""
    return datetime.combine(day, time()) + timedelta(seconds=second)


def named(fields: Record, names: Mapping[str, str]) -> Record:
    """Return fields under the source's own names."""
    return {names.get(field, field): value for field, value in fields.items()}


def taps_of(trip: MadeTrip, source: SourceSpec) -> list[Record]:
    """Return the taps of a trip, in the fields of both feeds of taps; each reads its own."""
    ends = (
        ("Enter", trip.on_second, trip.on_location),
        ("Exit", trip.off_second, trip.off_location),
    )
    always: Record = {"mode": trip.mode, "riders": "1"}
    always |= {"service_date": trip.day.isoformat(), **dict(trip.categories)}
    return [
        always
        | {
            "card_id": spelt(trip.card, source.card_form, trip.spelling + second),
            "action": action,
            "tapped_at": f"{clock_of(trip.day, second):%Y-%m-%d %H:%M:%S}",
            "place": location,
        }
        for action, second, location in ends
        if second is not None
    ]


def taps_made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the records of a trip in a feed of one record a tap."""
    return [named(tap, names) for tap in taps_of(trip, programme.source)]


def status_made(source: SourceSpec, names: Mapping[str, str]) -> Record:
    """Return the column of status of a record that counts, where a programme reads one."""
    if "status" not in dict(source.columns) and not source.status_names:
        return {}
    words = (word for word, status in source.status_names if status is RecordStatus.COUNTS)
    return {names["status"]: next(words, "")}


def fields_of_reading(
    reading: MadeReading, programme: Programme, names: Mapping[str, str]
) -> Record:
    """Return what every feed of vehicles says of an observation, its position not."""
    source = programme.source
    turn = reading.spelling + reading.second
    fields: Record = {
        "vehicle_id": spelt(reading.vehicle, source.vehicle_form, turn),
        "observed_at": f"{clock_of(reading.day, reading.second):%Y-%m-%dT%H:%M:%S}",
        "speed": reading.speed_milli_kmh / float(source.speed_unit.milli_kmh),
    }
    if "delay_s" in source.feed.states:
        fields["delay"] = reading.delay_s
    if "occupancy" in source.feed.states:
        fields["occupancy"] = reading.occupancy
    fields |= {name: value for name, value in reading.categories if name in names}
    if source.timetable:
        fields["trip"] = reading.trip
    return fields


def position_made(
    reading: MadeReading, programme: Programme, names: Mapping[str, str]
) -> list[Record]:
    """Return the record of an observation in a feed of flat columns."""
    position: Record = {"latitude": reading.latitude, "longitude": reading.longitude}
    return [named(fields_of_reading(reading, programme, names) | position, names)]
