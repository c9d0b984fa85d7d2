"""The field registry: one entry is a further dimension, from the raw file to the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch_copy import ScratchCopy

from turnstile.programme.field import Field, FieldType, Role
from turnstile.programme.fields import (
    COARSER_OFF,
    COARSER_ON,
    FIELDS,
    VISITS,
    dimensions,
    field_of,
)
from turnstile.programme.source_spec import RowShape

LISTED = ("route", "direction", "fare_product", "vehicle_trip", *VISITS)
_ENTRY = """FIELDS: tuple[Field, ...] = (
    Field(
        "rider_category",
        _T.STRING,
        "",
        "Rider",
        "Category of the card.",
        Role.DIMENSION,
        "VARCHAR",
        _TRIPS,
        _TRIPS,
        ("adult", "child"),
    ),
"""
_LANDING = """
import csv, os
from pathlib import Path
from turnstile.cli import main

home = Path(os.environ["TURNSTILE_HOME"])
weeks = ["--weeks", "2016-W30:2016-W30", "--rows", "20000", "--seed", "1"]
assert main(["sample", "opal", *weeks]) == 0
for path in (home / "landing/opal/2016-W30").glob("*.csv"):
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0], "rider_category"])
        writer.writeheader()
        writer.writerows({**row, "rider_category": "adult"} for row in rows)
"""
_COUNT = (
    _LANDING
    + """
from turnstile.counting.tables import count
from turnstile.estimates.labelled import labelled
from turnstile.pipeline.context import open_release
from turnstile.publishing.dictionary import described
from turnstile.sources.ingest import ingest

release = open_release("opal", "2016-W30")
programme, domain, days = release.programme, release.domain, release.week.days
settings, quiet = release.settings, lambda _: None
read = ingest(
    programme, release.week, landing=settings.landing, private=settings.private, progress=quiet
)
tables = count(
    programme, domain, days, read.folder / "rows", secret=b"k", work=home / "work", progress=quiet
)
riders = [table.reveal_to_mechanism() for table in tables if table.table == "riders"]
spec = next(table for table in programme.tables if table.name == "riders")
rows = labelled(domain, spec, days, {"count": riders}).to_pylist()
total = {name: 0 for name in ("adult", "child", "UNKNOWN")}
for row in rows:
    total[row["rider_category"]] += row["count"]
by_mode = sum(t.reveal_to_mechanism().sum() for t in tables if t.table == "on_location")
assert total["adult"] == by_mode > 100 and total["child"] == total["UNKNOWN"] == 0, total
print(described("rider_category"))
"""
)
_WEEK = (
    _LANDING
    + """
import pyarrow.parquet as pq

assert main(["run", "opal", "--week", "2016-W30"]) == 0
table = pq.read_table(home / "public/opal/2016-W30/r0/tables/riders.parquet").to_pydict()
total = {"adult": 0, "child": 0, "UNKNOWN": 0}
for category, count in zip(table["rider_category"], table["count"]):
    total[category] += count
# Noise of the difference has a standard deviation of a few hundred; of 700 trips it was as large.
assert total["adult"] > total["child"] + 4_000, total
"""
)


def _with_riders(folder: Path, *, entry: bool = True) -> ScratchCopy:
    copy = ScratchCopy(folder)
    if entry:
        fields = "include/turnstile/programme/fields.py"
        copy.replace(fields, "FIELDS: tuple[Field, ...] = (\n", _ENTRY)
    programme = "include/programmes/opal.yaml"
    copy.replace(programme, "tables:  ", "tables:\n  riders: {by: [rider_category]}\n  # ")
    copy.replace(programme, '    on_time: "1/8"\n', '    on_time: "1/16"\n    riders: "1/16"\n')
    return copy


def test_a_dimension_is_one_entry_from_the_raw_file_to_the_dictionary(tmp_path: Path) -> None:
    copy = _with_riders(tmp_path)
    assert "Category of the card." in copy.run(_COUNT)
    assert copy.touched_sources == ["include/turnstile/programme/fields.py"]


@pytest.mark.long
def test_a_dimension_is_drawn_and_published(tmp_path: Path) -> None:
    _with_riders(tmp_path).run(_WEEK)


def test_without_the_entry_the_same_programme_is_refused(tmp_path: Path) -> None:
    said = _with_riders(tmp_path, entry=False).run(_COUNT, expect_failure=True)
    assert "'rider_category' is unknown" in said


def test_names_are_there_once_and_dimensions_in_the_order_in_which_they_are_counted() -> None:
    names = [field.name for field in FIELDS]
    assert len(names) == len(set(names))
    assert dimensions(RowShape.TRIPS) == (
        "tap_on_slot",
        "tap_on_location",
        "tap_off_slot",
        "tap_off_location",
        *COARSER_ON,
        *COARSER_OFF,
        *LISTED,
    )


def test_no_private_field_may_be_a_column_of_a_table() -> None:
    for name in ("card_id", "vehicle_id", "latitude"):
        entry = field_of(name)
        assert entry is not None
        assert entry.role in (Role.UNIT, Role.ROW)
        assert not entry.tables


def test_a_category_that_no_row_carries_is_refused_because_nothing_would_count_it() -> None:
    with pytest.raises(ValueError, match="of one shape"):
        Field(
            "line",
            FieldType.STRING,
            "",
            "Line",
            "Line.",
            Role.DIMENSION,
            "VARCHAR",
            (RowShape.TRIPS,),
            (RowShape.TELEMETRY,),
            ("1", "2"),
        )
