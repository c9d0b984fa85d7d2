"""A generated week, scaled down, gives planning tables of the ITMS report's pattern."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile_design.private_reports.bus_pairs import read_pairs, records_by_hour
from turnstile_design.private_reports.exact_tables_of_buses import resolution_row
from turnstile_samples.corruption import Rows
from turnstile_samples.itms import DEGREES_SCALE, itms_rows, read_area

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK = ServiceWeek(2021, 46)
ROWS = 1_000_000  # a quarter of the report's density
# Section III A of the report: cells, buses per HAT and day, share that meets the condition.
REPORT = {6: (33, 26.62, 0.30), 7: (117, 13.30, 0.26), 8: (473, 8.22, 0.116)}
REPORT_K = 89
Table = dict[int, dict[str, float]]


@pytest.fixture(scope="module")
def sampled() -> Rows:
    area = read_area(INCLUDE / "domains" / "surat_area.geojson")
    return itms_rows(WEEK, ROWS, 1, area=area, corruptions=frozenset())


def written(rows: Rows, folder: Path) -> Path:
    """Write canonical rows by service day."""
    for number, day in enumerate(WEEK.days):
        of_day = rows["day"] == number
        seconds = rows["second"][of_day]
        place = folder / f"service_date={day}"
        place.mkdir(parents=True)
        columns = {
            "vehicle_id": pa.array(rows["bus"][of_day].astype(str)),
            "observed_at_utc": np.datetime64(day, "us") + seconds.astype("timedelta64[s]"),
            "minute_of_day": (seconds // 60).astype(np.int32),
            "latitude": rows["latitude"][of_day] / DEGREES_SCALE,
            "longitude": rows["longitude"][of_day] / DEGREES_SCALE,
            "speed_milli_kmh": rows["speed"][of_day] * 10,
        }
        pq.write_table(pa.table(columns), place / "part-000.parquet")
    return folder


def planned(folder: Path) -> Table:
    itms = load_programme("itms", INCLUDE)
    itms = replace(itms, caps=(), time=replace(itms.time, slot_minutes=60))
    return {
        resolution: resolution_row(
            read_pairs(itms, WEEK.days, folder, resolution=resolution), resolution
        )
        for resolution in REPORT
    }


def differences(table: Table) -> set[str]:
    """Name the figures that are not of the report's pattern."""
    mismatches = set()
    for resolution, (cells, buses, share) in REPORT.items():
        row = table[resolution]
        if abs(row["cells"] / cells - 1) > 0.15:
            mismatches.add(f"cells {resolution}")
        if abs(row["mean_buses_per_hat_and_day"] / buses - 1) > 0.15:
            mismatches.add(f"buses {resolution}")
        if abs(row["share_meeting_condition"] - share) > 0.07:
            mismatches.add(f"share {resolution}")
        if row["hats"] < 9 * row["cells"]:
            mismatches.add(f"hats {resolution}")
    shares = [table[resolution]["share_meeting_condition"] for resolution in (8, 7, 6)]
    if shares != sorted(shares):
        mismatches.add("order of shares")
    if not 0.75 * REPORT_K <= table[7]["largest_hats_of_a_bus_day"] <= 1.15 * REPORT_K:
        mismatches.add("K")
    return mismatches


def test_the_planning_tables_have_the_reports_pattern(sampled: Rows, tmp_path: Path) -> None:
    rows = written(sampled, tmp_path / "rows")
    assert differences(planned(rows)) == set()
    hours = records_by_hour(WEEK.days, rows)
    assert hours[5:21].sum() == ROWS
    assert hours[9:21].sum() / ROWS == pytest.approx(13_296_107 / 16_977_444, abs=0.03)


def test_a_quarter_of_the_fleet_has_another_pattern(sampled: Rows, tmp_path: Path) -> None:
    # Negative control: the bands can fail.
    few = sampled["bus"] < 200
    rows = written({name: column[few] for name, column in sampled.items()}, tmp_path / "rows")
    mismatches = differences(planned(rows))
    assert {"buses 7", "buses 6", "share 7"} <= mismatches


@pytest.mark.long
def test_a_city_of_one_long_road_has_another_pattern(sampled: Rows, tmp_path: Path) -> None:
    # Negative control: the same buses, all on one line of latitude.
    latitude = np.full_like(sampled["latitude"], int(np.median(sampled["latitude"])))
    rows = written({**sampled, "latitude": latitude}, tmp_path / "rows")
    assert {"cells 7", "buses 7", "share 8"} <= differences(planned(rows))
