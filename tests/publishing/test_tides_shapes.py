"""Taps in the shape of TIDES 1.0: valid against its schema, and the same numbers as the tables."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from zoneinfo import ZoneInfo

import frictionless
import pandas as pd
import pyarrow as pa
import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import ProgrammeError
from turnstile.programme.domain.mode_slots import clock
from turnstile.programme.field_registry import BY_NAME
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import TimeSpec
from turnstile.publishing.contents import Contents
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.week.gtfs_ride import RIDERSHIP
from turnstile.publishing.week.tides_shapes import (
    ACTIVITIES,
    ACTIVITY_COLUMNS,
    ERRORS,
    _periods,
)
from turnstile.service_calendar import parse_period

UNKNOWN = "UNKNOWN"


@pytest.fixture
def opal(published: Path) -> Path:
    return published / "opal" / WEEK / "r0"


def valid(file: Path, schema: Path) -> bool:
    with frictionless.system.use_context(trusted=True):
        described = frictionless.Schema(str(schema))
        return bool(frictionless.Resource(path=str(file), schema=described).validate().valid)


def test_frictionless_accepts_the_shape_against_the_schema_of_tides(
    opal: Path, shared_data: Path, tmp_path: Path
) -> None:
    schema = shared_data / "tides_1.0/station_activities.schema.json"
    assert valid(opal / ACTIVITIES, schema)
    text = (opal / ACTIVITIES).read_text()
    header, first, *rest = text.splitlines()
    for broken in (
        [header, first, first, *rest],  # the key is there twice
        [header, first.replace("T", "at", 1), *rest],  # no time
        [f"{header},more", f"{first},1"],
    ):
        (tmp_path / "broken.csv").write_text("\n".join(broken) + "\n")
        assert not valid(tmp_path / "broken.csv", schema)


def test_its_totals_are_those_of_the_tables_with_their_errors(opal: Path) -> None:
    shape = pd.read_csv(opal / ACTIVITIES)
    errors = pd.read_csv(opal / ERRORS)
    key = ["service_date", "stop_id", "time_period_start", "time_period_end"]
    assert shape[key].equals(errors[key])
    for side, tap in (("entries", "on"), ("exits", "off")):
        table = pd.read_parquet(opal / "data/location_slot.parquet")
        slot, place = table.slot, table.location.astype(str)
        known = table[(table.tap == tap) & (slot != UNKNOWN) & (place != UNKNOWN)]
        variance = (known.unbiased_sd**2).sum()
        assert abs(shape[f"total_{side}"].sum() - known.value.sum()) <= len(shape) / 2
        assert shape[f"total_{side}"].sum() > 0
        assert errors[f"total_{side}_reconciled"].sum() == pytest.approx(known.unbiased.sum())
        error_variance = (errors[f"total_{side}_standard_deviation"] ** 2).sum()
        assert error_variance == pytest.approx(variance, rel=1e-3)
        busiest = known.iloc[known.value.argmax()]
        begins = f"{busiest.service_date}T{busiest.slot}:00+10:00"
        row = shape[(shape.stop_id == str(busiest.location)) & (shape.time_period_start == begins)]
        assert row[f"total_{side}"].item() >= round(busiest.value) > 0


@pytest.mark.parametrize(
    ("week", "minutes", "periods"),
    [("2016-W30", 15, 672), ("2016-W39", 15, 668), ("2016-W39", 40, 251), ("2016-W13", 15, 672)],
    ids=["no change", "an hour is skipped", "slots across it", "an hour comes twice"],
)
def test_periods_follow_each_other_whatever_the_clock_does(
    week: str, minutes: int, periods: int
) -> None:
    """On the day that clocks go forward a period ended before it began, and two were the same."""
    slots = [clock(minute) for minute in range(0, 1440, minutes)]
    contents = SimpleNamespace(drawn=SimpleNamespace(plan=SimpleNamespace(week=parse_period(week))))
    time = SimpleNamespace(zone=ZoneInfo("Australia/Sydney"), slot_minutes=minutes)
    made = _periods(cast("Contents", contents), cast("TimeSpec", time), pa.table({"slot": slots}))
    ends = ("time_period_start", "time_period_end")
    begins, over = ([datetime.fromisoformat(at) for at in made[end].to_pylist()] for end in ends)
    assert len(begins) == periods
    assert all(first < last for first, last in zip(begins, over, strict=True))
    if week != "2016-W13":
        assert over[:-1] == begins[1:]
        return
    # A slot that is passed twice holds the taps of both: it ended an hour before some of them.
    zone, night = ZoneInfo("Australia/Sydney"), datetime(2016, 4, 2, 13, 3, tzinfo=UTC)
    for first, last, slot in zip(begins, over, made["slot"].to_pylist(), strict=True):
        local = {night + timedelta(minutes=n) for n in range(0, 480, 15)}
        taps = [at for at in local if clock_of(at.astimezone(zone), minutes) == slot]
        is_night = first.date() == date(2016, 4, 3)
        assert not is_night or all(first <= at < last for at in taps), slot
        assert is_night or last - first == timedelta(minutes=minutes)
    assert all(begin <= end for end, begin in pairwise_of(over, begins))


def clock_of(at: datetime, minutes: int) -> str:
    """Return the slot of a time of the agency's clock."""
    return clock((60 * at.hour + at.minute) // minutes * minutes)


def pairwise_of(over: list[datetime], begins: list[datetime]) -> list[tuple[datetime, datetime]]:
    """Return each end with the begin that follows it."""
    return list(zip(over[:-1], begins[1:], strict=True))


def test_every_column_is_in_the_registry_and_the_descriptor(opal: Path) -> None:
    resources = json.loads((opal / "datapackage.json").read_text())["resources"]
    fields = {
        resource["path"]: {
            f["name"]: f["description"] for f in resource.get("schema", {}).get("fields", ())
        }
        for resource in resources
    }
    for path, columns in ACTIVITY_COLUMNS.items():
        assert [*fields[path]] == list(columns)
        assert all(fields[path][column] == BY_NAME[column].description for column in columns)


def test_a_column_that_nothing_declares_is_found_in_it(copied: Path) -> None:
    if not (copied / ACTIVITIES).exists():
        pytest.skip("of telemetry, which has none")
    assert unknown_contents(copied) == ()
    text = (copied / ACTIVITIES).read_text()
    (copied / ACTIVITIES).write_text(text.replace("bike_exits", "riders_by_name", 1))
    assert any("riders_by_name" in problem for problem in unknown_contents(copied))


def test_a_programme_that_does_not_ask_has_none_and_one_without_taps_by_place_may_not(
    published: Path, deployment: Deployment
) -> None:
    assert not (published / "itms" / WEEK / "r0/tides").exists()
    deployment.edit("itms", "  contact:", "  tides_shapes: true\n  contact:")
    with pytest.raises(ProgrammeError, match="tides_shapes"):
        load_programme("itms", deployment.include)


def test_gtfs_ride_has_the_same_numbers_by_stop_and_period(opal: Path) -> None:
    shape, ride = pd.read_csv(opal / ACTIVITIES), pd.read_csv(opal / RIDERSHIP)
    for total, side in (("total_boardings", "total_entries"), ("total_alightings", "total_exits")):
        assert ride[total].sum() == shape[side].sum() > 0
        assert (ride[total] >= 0).all()
    assert set(ride.ridership_start_date.astype(str)) == {f"201607{day}" for day in range(25, 32)}
    assert ride.ridership_start_time.str.fullmatch(r"\d\d:\d\d:00").all()
    assert not ride.duplicated(["ridership_start_date", "ridership_start_time", "stop_id"]).any()
    feed = pd.read_csv(opal / "gtfs_ride/ride_feed_info.txt").iloc[0]
    assert (feed.ride_files, str(feed.ride_start_date)) == (2, "20160725")
    assert not (opal / "gtfs_ride/board_alight.txt").exists()  # no table by visit
