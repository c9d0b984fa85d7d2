"""No record decides how another is read: every shape beside every other one, in any order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.sources.feeds import itms
from turnstile.sources.ingest.snapshot import counts_of

WEEK = "2016-W30"
AT = (72.83, 21.17)
POINTS: dict[str, dict[str, Any]] = {
    "text": {"location.coordinates": f"[{AT[0]}, {AT[1]}]"},
    "list": {"location.coordinates": list(AT)},
    "split": {"location/coordinates/0": AT[0], "location/coordinates/1": str(AT[1])},
    "nested": {"location": {"type": "Point", "coordinates": list(AT)}},
    "own columns": {"latitude": AT[1], "longitude": AT[0]},
    "two shapes, one empty": {"latitude": None, "location": {"coordinates": list(AT)}},
    "half of one, another": {"latitude": 1.0, "location.coordinates": f"[{AT[0]},{AT[1]}]"},
}


def observation(number: int, point: dict[str, Any]) -> dict[str, Any]:
    """One ITMS record."""
    stamp = f"2016-07-25T10:{number // 60:02d}:{number % 60:02d}+05:30"
    return {"license_plate": f"p{number}", "observationDateTime": stamp, "speed": 30} | point


def position(number: int, shape: str) -> dict[str, Any]:
    """One GTFS-realtime VehiclePosition."""
    stamp = 1469421000 + number
    where = {"latitude": AT[1], "longitude": AT[0], "speed": 8.5}
    if shape == "nested":
        return {"vehicle": {"vehicle": {"id": f"p{number}"}, "timestamp": stamp, "position": where}}
    outer = "vehicle." if shape == "by path" else ""
    flat = {f"{outer}position.{key}": value for key, value in where.items()}
    return {f"{outer}vehicle.id": f"p{number}", f"{outer}timestamp": str(stamp)} | flat


def written(records: list[dict[str, Any]], form: str) -> dict[str, str]:
    """The records as a file."""
    if form == "array":
        return {"a.json": json.dumps(records)}
    lines = "\n".join(json.dumps(record) for record in records)
    return {"a.ndjson" if form == "ndjson" else "a.json": lines}


@pytest.mark.parametrize("form", ["array", "ndjson", "lines"])
def test_shapes_of_an_observation_stand_beside_each_other(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, form: str
) -> None:
    shapes = [*POINTS.values()] * 3
    records = [observation(n, point) for n, point in enumerate(shapes)]
    zones.deliver(WEEK, written(records, form))
    snapshot = zones.ingest(programme_of("itms"), WEEK)
    assert rows_of(snapshot, "latitude, longitude") == [(AT[1], AT[0])] * len(records)


@pytest.mark.parametrize("form", ["array", "ndjson"])
def test_shapes_of_a_vehicle_position_stand_beside_each_other(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, form: str
) -> None:
    shapes = ["by path", "short path", "nested"] * 3
    zones.deliver(WEEK, written([position(n, shape) for n, shape in enumerate(shapes)], form))
    programme = programme_of("itms", feed=Feed.GTFS_VEHICLE_POSITIONS)
    rows = rows_of(zones.ingest(programme, WEEK), "vehicle_id, latitude, longitude")
    assert rows == [(f"p{n}", AT[1], AT[0]) for n in range(9)]


def test_a_shape_that_comes_late_is_read(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    """Beyond any sample of the first records, and in a file of one other shape."""
    records = [observation(n % 3000, POINTS["text"]) for n in range(2999)]
    zones.deliver(WEEK, written([*records, observation(2999, POINTS["nested"])], "array"))
    counts = counts_of(zones.ingest(programme_of("itms"), WEEK))
    assert (counts["rows_in"], counts["rows_out"], counts["null_coordinates"]) == (3000, 3000, 0)


@pytest.mark.parametrize("odd", [{"location": 5}, {"location": "x"}, {"location": {"a": []}}, {}])
@pytest.mark.parametrize("form", ["array", "ndjson"])
def test_a_record_of_no_shape_costs_itself(
    zones: Any, programme_of: Callable[..., Programme], form: str, odd: dict[str, Any]
) -> None:
    records = [observation(n, POINTS["text"]) for n in range(5)]
    zones.deliver(WEEK, written([observation(9, odd), *records], form))
    counts = counts_of(zones.ingest(programme_of("itms"), WEEK))
    assert (counts["rows_out"], counts["null_coordinates"]) == (5, 1)


def test_columns_of_two_shapes_in_a_table_are_read_row_by_row(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    header = "license_plate,observationDateTime,speed,location.coordinates,"
    rows = [
        'p1,2016-07-25T10:00:00+05:30,30,"[72.83, 21.17]",,',
        "p2,2016-07-25T10:00:00+05:30,30,,72.83,21.17",
    ]
    header += "location/coordinates/0,location/coordinates/1"
    zones.deliver(WEEK, {"a.csv": "\n".join([header, *rows]) + "\n"})
    assert counts_of(zones.ingest(programme_of("itms"), WEEK))["rows_out"] == 2


def test_long_numbers_are_ids_digit_by_digit(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    """Read as floating-point numbers they would be one vehicle."""
    records = [observation(n, POINTS["text"]) for n in range(2)]
    for n, record in enumerate(records):
        record["license_plate"] = 90071992547409931234567 + n
    zones.deliver(WEEK, written(records, "array"))
    rows = rows_of(zones.ingest(programme_of("itms"), WEEK), "vehicle_id")
    assert rows == [("90071992547409931234567",), ("90071992547409931234568",)]


def test_a_file_without_any_record_of_a_column_names_it(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    records = [observation(n, {}) for n in range(3)]
    zones.deliver(WEEK, written(records, "ndjson"))
    with pytest.raises(InputError, match=r"location\.coordinates"):
        zones.ingest(programme_of("itms"), WEEK)


def test_one_shape_for_all_is_seen(
    zones: Any, programme_of: Callable[..., Programme], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault put back: the first shape that any record has is taken for every record."""
    shapes = itms._shapes
    monkeypatch.setattr(itms, "_shapes", lambda *args: list(shapes(*args))[:1])
    records = [observation(n, point) for n, point in enumerate(POINTS.values())]
    zones.deliver(WEEK, written(records, "array"))
    assert counts_of(zones.ingest(programme_of("itms"), WEEK))["null_coordinates"] > 0
