"""Sealed files: written once, for ever, and read as a draw wrote them or not at all."""

from __future__ import annotations

from datetime import date
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from turnstile.errors import IntegrityError
from turnstile.release.sealed import Artefact, NoisyTable, decode, encode
from turnstile.release.zones import write_once

DAY = date(2016, 7, 25)
ARTEFACT = Artefact(
    (
        NoisyTable("on_time", "count", DAY, np.array([3, -2, 7])),
        NoisyTable("speed", "sum", None, np.array([0, 12])),
    ),
    (DAY,),
    ("opal/2016-W29/r0",),
)


def test_other_bytes_never_take_the_place_of_sealed_ones(tmp_path: Path) -> None:
    sealed = tmp_path / "sealed-1.parquet"
    write_once(sealed, b"drawn")
    write_once(sealed, b"drawn")  # a repeat of the same draw
    with pytest.raises(IntegrityError, match="sealed with other bytes; nothing was written"):
        write_once(sealed, b"drawn again")
    assert sealed.read_bytes() == b"drawn"
    assert sealed.stat().st_mode & 0o777 == 0o444
    assert [path.name for path in tmp_path.iterdir()] == [sealed.name]


def test_an_artefact_is_read_as_it_was_written() -> None:
    again = decode(encode(ARTEFACT))
    assert encode(again) == encode(ARTEFACT)
    assert (again.gaps, again.carried) == (ARTEFACT.gaps, ARTEFACT.carried)
    pairs = zip(again.tables, ARTEFACT.tables, strict=True)
    for table, before in pairs:
        assert (table.table, table.statistic, table.service_date) == (
            before.table,
            before.statistic,
            before.service_date,
        )
        assert table.values.tolist() == before.values.tolist()


def _written_by_others() -> bytes:
    sink = BytesIO()
    pq.write_table(pq.read_table(BytesIO(encode(ARTEFACT))).replace_schema_metadata({}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", encode(ARTEFACT)[:-9], _written_by_others()], ids=len
)
def test_what_no_draw_wrote_is_refused(content: bytes) -> None:
    with pytest.raises(IntegrityError, match="not what a draw writes; restore it"):
        decode(content)


def test_cells_in_another_order_are_refused() -> None:
    whole = pq.read_table(BytesIO(encode(ARTEFACT)))
    sink = BytesIO()
    pq.write_table(whole.take(list(range(len(whole)))[::-1]), sink)
    with pytest.raises(IntegrityError, match="cells are out of order; restore it"):
        decode(sink.getvalue())
