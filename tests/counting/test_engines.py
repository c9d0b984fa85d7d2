"""Counting engines by name."""

from __future__ import annotations

import pytest

from turnstile.counting.engines import engine_named
from turnstile.counting.exact_tables import count
from turnstile.errors import InputError


def test_the_usual_engine_is_duckdb_and_an_unknown_one_is_refused() -> None:
    assert engine_named("duckdb") is count
    with pytest.raises(InputError, match="TURNSTILE_COUNTING_ENGINE"):
        engine_named("abacus")
