"""The synthetic copy with the product's own bounding in it: real SQL, real keyed order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from turnstile.assessment.audits.pipeline_copy import Bound, PipelineCopy
from turnstile.assessment.audits.release_audit import audit_release
from turnstile.counting.bounding import Bounding, install_key, keep_at_most
from turnstile.counting.engine import Connection, engine
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity
from turnstile.privacy.units import ProtectionUnit

_UNIT = ProtectionUnit.CARD_DAY
_OWN = Sensitivity(l0=2, l1=2, l2_squared=4, linf=2)
_EVENT = DrawEvent("t", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(2), (), ((_UNIT, _OWN),))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """An engine with a key."""
    with engine(tmp_path) as opened:
        install_key(opened, b"a secret")
        yield opened


def bound_with(connection: Connection, *, at_most: int | None) -> Bound:
    """Bound canaries by the product's SQL; `at_most` overrides the programme's bound."""

    def bound(offered: np.ndarray, programmes_own: int) -> np.ndarray:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE record AS SELECT unit::VARCHAR AS card_id, "
            "unit::INTEGER AS cell FROM (SELECT unnest(range(len(?::BIGINT[]))) AS unit, "
            "unnest(?::BIGINT[]) AS times), range(9) AS copy(n) WHERE n < times",
            [offered.tolist(), offered.tolist()],
        )
        bounding = Bounding("card_id", ("cell",), at_most or programmes_own)
        keep_at_most(connection, "record", "kept", bounding=bounding, day=date(2016, 7, 25))
        found = connection.execute("SELECT cell, count(*) FROM kept GROUP BY cell").fetchnumpy()
        kept = np.zeros(offered.size, dtype=np.int64)
        kept[found["cell"]] = found["count_star()"]
        return kept

    return bound


def test_the_products_own_bounding_keeps_the_claim(connection: duckdb.DuckDBPyConnection) -> None:
    copy = PipelineCopy(bound=bound_with(connection, at_most=None))
    found = audit_release([_EVENT], _UNIT, copy=copy)[0]
    assert not found.is_refuted
    assert found.bound.epsilon >= 0.9 * found.claimed


def test_a_bound_that_is_too_loose_is_refuted(connection: duckdb.DuckDBPyConnection) -> None:
    copy = PipelineCopy(bound=bound_with(connection, at_most=6))
    assert audit_release([_EVENT], _UNIT, copy=copy)[0].is_refuted
