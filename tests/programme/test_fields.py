"""The field registry: names once, dimensions in order, nothing private in a table."""

from __future__ import annotations

import pytest

from turnstile.programme.field import Field, FieldType, Role
from turnstile.programme.field_registry import FIELDS, field_of
from turnstile.programme.fields import COARSER_OFF, COARSER_ON, VISITS, dimensions
from turnstile.programme.source_spec import RowShape

LISTED = ("route", "direction", "fare_product", "vehicle_trip", *VISITS)


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
