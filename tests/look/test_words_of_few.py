"""Words that few cards or vehicles share: which they are of, and where they may be named from."""

from __future__ import annotations

import duckdb
import pytest

from turnstile.look.fields_found import lines_of_fields


@pytest.mark.parametrize(
    ("unit", "field", "told"),
    [
        ("vehicle_id", "route", "10 vehicles, of fewer than 20 vehicles: not from here, by the"),
        ("card_id", "route", "10 cards, of fewer than 20 cards: not from here, by the public list"),
        ("card_id", "mode", "10 cards, of fewer than 20 cards: name it nowhere"),
        ("gate", "mode", "10 gates, of fewer than 20 gates: name it nowhere"),
        ("vehicle_id", "occupancy", "10 vehicles, of fewer than 20 vehicles: name it nowhere"),
    ],
)
def test_words_of_few_are_named_by_what_is_public(unit: str, field: str, told: str) -> None:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE said AS SELECT i AS {unit}, '801' AS {field} FROM range(10) t(i)"
    )
    page = "\n".join(lines_of_fields(connection, (field,), unit))
    assert f"'801': 100.00% of records, {told}" in page
