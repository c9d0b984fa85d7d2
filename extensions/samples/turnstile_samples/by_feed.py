"""Made-up weeks of the other feeds, in the form in which each is delivered.

The trips are those of the Opal sample, the buses those of Surat; a feed's own module writes the
records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from turnstile.programme.source_spec import Delimiter, Feed, FileSpec
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.layout import names_in_source
from turnstile.sources.feeds.made_records import MadeReading, Record
from turnstile.sources.feeds.raw_records import as_delivered, csv_lines
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.ingest.gtfs_realtime import message_of
from turnstile_samples.corruption import Rows
from turnstile_samples.itms import DEGREES_SCALE, SPEED_CODE_SCALE
from turnstile_samples.tides import STOPS
from turnstile_samples.writing import LandingWeek

_POLL_S = 1800  # of one message or document
_SIRI = '<Siri xmlns="http://www.siri.org.uk/siri" version="2.0"><ServiceDelivery>'
_SIRI += "<VehicleMonitoringDelivery>"
_END_OF_SIRI = "</VehicleMonitoringDelivery></ServiceDelivery></Siri>\n"
_MILLI_KMH = 1000 // SPEED_CODE_SCALE
Writer = Callable[[Sequence[Record], Path, datetime], None]


def write_vehicles(
    feed: Feed, rows: Rows, to: LandingWeek, programme: Programme
) -> tuple[Path, ...]:
    """Write observations, a file a day or a poll; return the files in order of their times.

    Args:
        feed: of vehicles.
        rows: of the sample of Surat.
        to: where the files go; their form is the feed's own.
        programme: of buses, whose clock holds.
    """
    source = replace(
        programme.source, feed=feed, vehicle_form=None, columns=(), speed_unit=feed.speed_unit
    )
    programme = replace(programme, source=source)
    layout = layout_of(feed)
    names = names_in_source(layout, programme)
    ending, seconds, write = _FORMS[feed]
    to.folder.mkdir(parents=True, exist_ok=True)
    files: dict[tuple[date, int], list[Record]] = {}
    columns = ("bus", "day", "second", "latitude", "longitude", "speed", "delay", "route", "trip")
    for bus, day, second, lat, lon, speed, delay, route, trip, stop in zip(
        *(rows[name].tolist() for name in (*columns, "stop")), strict=True
    ):
        of = to.week.days[day]
        reading = MadeReading(
            f"v{bus:04d}",
            of,
            second,
            lat / DEGREES_SCALE,
            lon / DEGREES_SCALE,
            speed * _MILLI_KMH,
            delay_s=delay,
            categories=(
                ("route", f"r{route}"),
                ("direction", str(trip % 2)),
                ("stop", f"s{stop % STOPS}"),
            ),
        )
        batch = layout.made(reading, programme, names)
        files.setdefault((of, second // seconds * seconds), []).extend(batch)
    paths = []
    for (of, second), records in sorted(files.items(), key=lambda entry: entry[0]):
        local = datetime.combine(of, datetime.min.time(), programme.time.zone)
        at = local + timedelta(seconds=second)
        clock = "" if seconds >= _DAY_S else f"-{at:%H%M}"
        path = to.folder / f"{feed}-{of}{clock}.{ending}"
        batch = records
        if not feed.names_stops:
            batch = [_with_instant(record, names["observed_at"], programme) for record in records]
        write(batch, path, at)
        paths.append(path)
    return tuple(paths)


def _with_instant(record: Record, column: str, programme: Programme) -> Record:
    """Return a record, also one within an event, whose local time is an instant."""
    if column not in record:
        return {k: _with_instant(v, column, programme) for k, v in record.items()}  # type: ignore[arg-type] # an event's
    local = datetime.fromisoformat(str(record[column])).replace(tzinfo=programme.time.zone)
    return record | {column: f"{local.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}


def _json_lines(records: Sequence[Record], path: Path, _: datetime) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _csv(records: Sequence[Record], path: Path, _: datetime) -> None:
    header, lines = csv_lines(list(records))
    path.write_text("\n".join((header, *lines, "")))


def _semicolons(records: Sequence[Record], path: Path, _: datetime) -> None:
    spec = FileSpec(delimiter=Delimiter.SEMICOLON)
    header, lines = csv_lines(list(records), spec)
    path.write_bytes(as_delivered("\n".join((header, *lines, "")).encode(), spec))


def _xml(records: Sequence[Record], path: Path, at: datetime) -> None:
    """A SIRI document of one poll."""
    activities = "".join(
        f"<VehicleActivity>{_elements(record)}</VehicleActivity>" for record in records
    )
    stamp = f"<ResponseTimestamp>{at.isoformat()}</ResponseTimestamp>"
    path.write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>{_SIRI}{stamp}{activities}{_END_OF_SIRI}'
    )


def _elements(record: Record) -> str:
    """Elements of fields that are named by their paths."""
    nested: dict[str, Any] = {}
    for path, value in record.items():
        *outer, last = path.split(".")
        node = nested
        for name in outer:
            node = node.setdefault(name, {})
        node[last] = escape(str(value))
    return _tags(nested)


def _tags(nested: dict[str, Any]) -> str:
    return "".join(
        f"<{name}>{_tags(value) if isinstance(value, dict) else value}</{name}>"
        for name, value in nested.items()
    )


def _protobuf(records: Sequence[Record], path: Path, at: datetime) -> None:
    """A GTFS-realtime message of one poll."""
    message = message_of("FeedMessage")()
    message.header.timestamp = round(at.timestamp())
    for number, record in enumerate(records):
        entity = message_of("FeedEntity")(id=str(number).encode())
        for name, value in record.items():
            _set(entity, name.split("."), value)
        message.entity.append(entity.SerializeToString())
    path.write_bytes(message.SerializeToString())


def _set(message: Any, path: list[str], value: object) -> None:  # noqa: ANN401 - a message
    """Set a field by its path, in the type that it has."""
    *outer, last = path
    for name in outer:
        message = getattr(message, name)
        if name == "stop_time_update":
            message = message[0] if message else message.add()
    if value in ("", None):
        return
    if last == "timestamp" and isinstance(value, str):
        value = round(datetime.fromisoformat(str(value)).timestamp())
    kind = type(getattr(message, last))
    setattr(message, last, str(value).encode() if kind is bytes else kind(value))


_DAY_S = 86_400
_FORMS: dict[Feed, tuple[str, int, Writer]] = {
    Feed.GTFS_VEHICLE_POSITIONS: ("pb", _POLL_S, _protobuf),
    Feed.HFP: ("ndjson", _DAY_S, _json_lines),
    Feed.SIRI_VM: ("xml", _POLL_S, _xml),
    Feed.TIDES_VEHICLE_LOCATIONS: ("csv", _DAY_S, _csv),
    Feed.GTFS_TRIP_UPDATES: ("pb", _POLL_S, _protobuf),
    Feed.IST_DATEN: ("csv", _DAY_S, _semicolons),
}
