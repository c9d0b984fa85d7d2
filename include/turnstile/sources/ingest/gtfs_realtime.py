"""GTFS-realtime 2.0 dumps (`.pb`): a record for each vehicle, or for each stop of a trip's update.

A column is called by the path of its field in the specification, `vehicle.position.latitude`,
`trip_update.stop_time_update.arrival.time`; the message's own time is `header.timestamp`. The frame
of a message gives the length of each entity; each is read by itself, so that one which is none, or
whose texts are no UTF-8, costs itself alone. Fields that are not named here are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from turnstile.sources.ingest.document_record import Found

_F = descriptor_pb2.FieldDescriptorProto
_TEXT, _FLOAT, _WHOLE, _UNSIGNED = _F.TYPE_BYTES, _F.TYPE_FLOAT, _F.TYPE_INT64, _F.TYPE_UINT64
_EVENT = {"delay": (1, _WHOLE), "time": (2, _WHOLE)}
_TRIP = {
    "trip_id": (1, _TEXT),
    "start_time": (2, _TEXT),
    "start_date": (3, _TEXT),
    "schedule_relationship": (4, _WHOLE),
    "route_id": (5, _TEXT),
    "direction_id": (6, _UNSIGNED),
}
_NAMED = {"id": (1, _TEXT), "label": (2, _TEXT), "license_plate": (3, _TEXT)}
_POSITION = {"latitude": (1, _FLOAT), "longitude": (2, _FLOAT), "speed": (5, _FLOAT)}
_VEHICLE = {
    "trip": (1, _TRIP),
    "position": (2, _POSITION),
    "current_stop_sequence": (3, _UNSIGNED),
    "current_status": (4, _WHOLE),
    "timestamp": (5, _UNSIGNED),
    "stop_id": (7, _TEXT),
    "vehicle": (8, _NAMED),
    "occupancy_status": (9, _WHOLE),
}
_STOP = {
    "stop_sequence": (1, _UNSIGNED),
    "arrival": (2, _EVENT),
    "departure": (3, _EVENT),
    "stop_id": (4, _TEXT),
    "schedule_relationship": (5, _WHOLE),
}
_UPDATE = {
    "trip": (1, _TRIP),
    "stop_time_update": (2, [_STOP]),
    "vehicle": (3, _NAMED),
    "timestamp": (4, _UNSIGNED),
}
_ENTITY = {"id": (1, _TEXT), "trip_update": (3, _UPDATE), "vehicle": (4, _VEHICLE)}
# entities are lengths here, and read one by one
_MESSAGE = {"header": (1, {"timestamp": (3, _UNSIGNED)}), "entity": (2, [_TEXT])}
_UPDATES, _STOPS = "trip_update", "stop_time_update"


def records(chunks: Iterator[bytes], wanted: tuple[str, ...]) -> Iterator[Found]:
    """Yield the records of a message.

    Args:
        chunks: its bytes.
        wanted: columns; records are of trip updates if one is, else of vehicles.

    Raises:
        EOFError: it is no such message, or is cut off within an entity.
    """
    try:
        message = message_of("FeedMessage").FromString(b"".join(chunks))
    except DecodeError:
        raise EOFError from None
    of = _UPDATES if any(name.startswith(f"{_UPDATES}.") for name in wanted) else "vehicle"
    header = dict(_leaves(message.header, "header."))
    for entity in message.entity:
        try:
            entity_message = message_of("FeedEntity").FromString(entity)
            entity_records = [dict(fields) for fields in _of_entity(entity_message, of)]
        except (DecodeError, UnicodeDecodeError):
            yield entity
            continue
        yield from (header | record for record in entity_records)


def _of_entity(entity: Any, of: str) -> Iterator[Iterator[tuple[str, str]]]:  # noqa: ANN401 - a message
    """Yield the fields of each record of an entity; of one that has none, nothing."""
    if not entity.HasField(of):
        return
    submessage = getattr(entity, of)
    if of != _UPDATES:
        yield _leaves(submessage, f"{of}.")
        return
    shared = [*_leaves(submessage, f"{of}.")]
    for stop in submessage.stop_time_update:
        yield iter([*shared, *_leaves(stop, f"{of}.{_STOPS}.")])


def _leaves(message: Any, above: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - a message
    """Yield the path and text of every field that a message states."""
    for field, value in message.ListFields():
        path = above + field.name
        if field.is_repeated:
            continue
        if field.type == _F.TYPE_MESSAGE:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value.decode() if isinstance(value, bytes) else str(value)


@cache
def message_of(name: str) -> Any:  # noqa: ANN401 - a class that is made here
    """Return the class of `FeedMessage` (whose entities are bytes) or `FeedEntity`."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="transit")
    _add(file.message_type.add(name=name), {"FeedMessage": _MESSAGE, "FeedEntity": _ENTITY}[name])
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"transit.{name}")
    return message_factory.GetMessageClass(descriptor)


def _add(message: Any, fields: Mapping[str, tuple[int, Any]]) -> None:  # noqa: ANN401 - a descriptor
    """Describe the fields of a message; one of a message of its own is nested in it."""
    for name, (number, kind) in fields.items():
        element_kind, is_list = (kind[0], True) if isinstance(kind, list) else (kind, False)
        field = message.field.add(name=name, number=number)
        field.label = _F.LABEL_REPEATED if is_list else _F.LABEL_OPTIONAL
        if isinstance(element_kind, Mapping):
            nested = message.nested_type.add(name=name.title().replace("_", ""))
            _add(nested, element_kind)
            field.type, field.type_name = _F.TYPE_MESSAGE, nested.name
        else:
            field.type = element_kind
