"""Flat vectors become labelled rows in the public order, as CSV and as Parquet."""

from __future__ import annotations

import csv
from datetime import date
from io import BytesIO, StringIO

import numpy as np
import pyarrow.parquet as pq

from turnstile.estimates.labelled import csv_bytes, labelled, parquet_bytes
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    PublicDomain,
    public_domain,
)
from turnstile.programme.spec import TableSpec

TABLE = TableSpec("on_time_location", ("tap_on_slot", "tap_on_location"))
DAYS = [date(2016, 7, 25), date(2016, 7, 26)]


def two_modes() -> PublicDomain:
    def cells(mode: str, *places: str) -> ModeCells:
        slots = Dimension("tap_on_slot", ("00:00", "12:00"))
        return ModeCells(mode, (slots, Dimension("tap_on_location", places)))

    return public_domain("v", (cells("bus", "2000", "2001", "UNKNOWN"), cells("train", 'A "B", C')))


def test_every_cell_of_every_mode_and_day_is_one_row_in_order() -> None:
    counts = [np.arange(8), np.arange(8) + 100]
    table = labelled(two_modes(), TABLE, DAYS, {"count": counts})
    rows = table.to_pylist()
    assert len(rows) == 16
    assert rows[0] == {
        "service_date": DAYS[0],
        "mode": "bus",
        "tap_on_slot": "00:00",
        "tap_on_location": "2000",
        "count": 0,
    }
    assert [row["count"] for row in rows] == [*range(8), *range(100, 108)]
    assert (rows[5]["mode"], rows[5]["tap_on_location"]) == ("bus", "UNKNOWN")
    assert (rows[7]["mode"], rows[7]["tap_on_slot"]) == ("train", "12:00")


def test_a_draw_over_the_week_has_no_day_and_one_mode_no_mode_column() -> None:
    slots, cells = Dimension("slot", ("09:00",)), Dimension("cell", ("87a", "87b"))
    domain = public_domain("v", (ModeCells("bus", (slots, cells)),))
    table = labelled(
        domain, TableSpec("speed", ("slot", "cell")), [None], {"buses": [np.array([3, 4])]}
    )
    assert table.column_names == ["slot", "cell", "buses"]


def test_csv_quotes_what_must_be_quoted_and_says_the_same_as_parquet() -> None:
    table = labelled(two_modes(), TABLE, DAYS[:1], {"count": [np.arange(8) - 4]})
    read = list(csv.DictReader(StringIO(csv_bytes(table).decode())))
    assert read[6]["tap_on_location"] == 'A "B", C'
    again = pq.read_table(BytesIO(parquet_bytes(table))).to_pylist()
    assert [int(row["count"]) for row in read] == [row["count"] for row in again]
