from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from bounding_messages import message
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.counting import bounding, lowest
from turnstile.counting.bounding import Bounding, Limit, install_key, keep_at_most
from turnstile.counting.engine import Connection, engine

DAY = "2016-07-25"
SECRET = b"release secret"
ONCE_IN_EACH = (Limit(("x",), 1), Limit(("y",), 1))
Record = tuple[str, int, int]
RECORDS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c|1", "é"]), st.integers(-1, 3), st.integers(0, 2)),
    max_size=25,
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with engine(tmp_path_factory.mktemp("work")) as opened:
        yield opened


def kept(
    connection: Connection,
    records: list[Record],
    at_most: int,
    *,
    secret: bytes = SECRET,
    scope: str = DAY,
    limits: tuple[Limit, ...] = (),
) -> list[Record]:
    install_key(connection, secret)
    connection.execute("CREATE OR REPLACE TEMP TABLE rec (card VARCHAR, x INTEGER, y INTEGER)")
    connection.execute(
        "INSERT INTO rec SELECT unnest(?::VARCHAR[]), unnest(?::INTEGER[]), unnest(?::INTEGER[])",
        [[record[place] for record in records] for place in range(3)],
    )
    bounding = Bounding("card", ("x", "y"), at_most, limits)
    keep_at_most(connection, "rec", "kept_rec", bounding=bounding, scope=scope)
    return sorted(connection.execute("SELECT card, x, y FROM kept_rec").fetchall())


def key(record: Record) -> tuple[str, int, int]:
    text = message(DAY, record[1:], record[0])
    return hmac.new(SECRET, text, hashlib.sha256).hexdigest(), record[1], record[2]


def by_hand(records: list[Record], at_most: int) -> list[Record]:
    units: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        units[record[0]].append(record)
    return sorted(record for unit in units.values() for record in sorted(unit, key=key)[:at_most])


def once_by_hand(records: list[Record], at_most: int) -> list[Record]:
    """Keep what no other record of the unit with the same x or the same y comes before."""
    alone = [
        record
        for record in set(records)
        if all(
            key(record) <= key(other)
            for other in records
            if other[0] == record[0] and (other[1] == record[1] or other[2] == record[2])
        )
    ]
    return by_hand(alone, at_most)


@settings(max_examples=40, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 5))
def test_a_unit_keeps_its_first_records_by_hmac_sha256(
    connection: Connection, records: list[Record], at_most: int
) -> None:
    assert kept(connection, records, at_most) == by_hand(records, at_most)


@settings(max_examples=25, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 5))
def test_bounding_what_is_bounded_changes_nothing(
    connection: Connection, records: list[Record], at_most: int
) -> None:
    once = kept(connection, records, at_most)
    assert kept(connection, once, at_most) == once


@settings(max_examples=25, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 5))
def test_a_units_choice_does_not_depend_on_other_units(
    connection: Connection, records: list[Record], at_most: int
) -> None:
    kept_records = kept(connection, records, at_most)
    for unit in {record[0] for record in records}:
        alone = kept(connection, [record for record in records if record[0] == unit], at_most)
        assert [record for record in kept_records if record[0] == unit] == alone


@settings(max_examples=25, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 5), shuffle=st.randoms(use_true_random=False))
def test_the_choice_does_not_depend_on_the_order_of_rows(
    connection: Connection, records: list[Record], at_most: int, shuffle: object
) -> None:
    first = kept(connection, records, at_most)
    shuffle.shuffle(records)  # type: ignore[attr-defined] # hypothesis' random.Random
    assert kept(connection, records, at_most) == first


def test_the_choice_changes_with_the_key_and_with_the_day(connection: Connection) -> None:
    records = [("a", x, y) for x in range(20) for y in range(5)]
    first = kept(connection, records, 10)
    assert kept(connection, records, 10, secret=b"another") != first
    assert kept(connection, records, 10, scope="2016-07-26") != first
    assert kept(connection, records, 10) == first


def test_a_key_longer_than_a_block_is_hashed_first(connection: Connection) -> None:
    long = b"k" * 100
    records = [("a", x, 0) for x in range(30)]
    order = sorted(
        records,
        key=lambda record: hmac.new(long, message(DAY, record[1:], "a"), "sha256").hexdigest(),
    )
    assert kept(connection, records, 3, secret=long) == sorted(order[:3])


def test_every_record_of_a_unit_is_kept_equally_often(connection: Connection) -> None:
    # 2000 units, 4 of 16 records: each place is expected 500 times with sd 19.4; 6.5 sd are 126.
    times: dict[int, int] = defaultdict(int)
    units = [f"card {number}" for number in range(2000)]
    for _, x, _ in kept(connection, [(unit, x, 0) for unit in units for x in range(16)], 4):
        times[x] += 1
    assert sum(times.values()) == 4 * len(units)
    assert all(374 <= times[x] <= 626 for x in range(16))


def test_the_key_is_in_no_query_text(connection: Connection) -> None:
    install_key(connection, b"SECRETCANARY")
    known = connection.execute(
        "SELECT sql FROM duckdb_tables() UNION SELECT sql FROM duckdb_views()"
    )
    assert "SECRETCANARY" not in str(known.fetchall())


def test_an_engine_error_shows_no_value(tmp_path: Path) -> None:
    from turnstile.errors import IntegrityError

    with pytest.raises(IntegrityError) as error, engine(tmp_path) as opened:
        opened.execute("SELECT 'canary-card-77'::INTEGER")
    assert "canary" not in str(error.value)
    assert error.value.__suppress_context__


@settings(max_examples=40, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 3))
def test_records_that_count_once_a_cell_are_the_lowest_of_all_that_share_one_with_them(
    connection: Connection, records: list[Record], at_most: int
) -> None:
    kept_records = kept(connection, records, at_most, limits=ONCE_IN_EACH)
    assert kept_records == once_by_hand(records, at_most)
    for column in (1, 2):
        cells = [(record[0], record[column]) for record in kept_records]
        assert len(set(cells)) == len(cells)


def test_records_without_a_limit_share_cells(connection: Connection) -> None:
    records = [("a", 0, 0), ("a", 0, 1)]
    assert kept(connection, records, 5) == records
    assert len(kept(connection, records, 5, limits=ONCE_IN_EACH)) == 1
    assert kept(connection, records, 5, limits=(Limit(("x", "y"), 1),)) == records


def limited_by_hand(records: list[Record], at_most: int, share: int) -> list[Record]:
    """Keep what is among the lowest so many of its unit with the same x, and of those the first."""
    lowest: list[Record] = []
    for unit, x in {record[:2] for record in records}:
        lowest += sorted((r for r in records if r[:2] == (unit, x)), key=key)[:share]
    return by_hand(lowest, at_most)


@settings(max_examples=40, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 6), share=st.integers(2, 3))
def test_so_many_may_share_a_cell_equal_records_included(
    connection: Connection, records: list[Record], at_most: int, share: int
) -> None:
    kept_records = kept(connection, records, at_most, limits=(Limit(("x",), share),))
    assert kept_records == limited_by_hand(records, at_most, share)


def test_without_the_limit_more_would_share_a_cell(connection: Connection) -> None:
    records = [("a", 0, y) for y in range(3)]
    assert len(kept(connection, records, 9, limits=(Limit(("x",), 2),))) == 2
    assert kept(connection, records, 9) == records


@settings(max_examples=25, deadline=None)
@given(records=RECORDS, at_most=st.integers(1, 5))
def test_parts_of_the_records_keep_what_all_at_once_keep(
    connection: Connection, records: list[Record], at_most: int
) -> None:
    whole = kept(connection, records, at_most, limits=ONCE_IN_EACH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounding, "_ROWS_OF_PART", 3)
        assert kept(connection, records, at_most, limits=ONCE_IN_EACH) == whole


def test_units_that_share_the_first_bits_of_their_hash_are_told_apart(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounding, "_prefix", lambda _: "(42::UBIGINT)")
    records = [(unit, x, 0) for unit in ("a", "b") for x in range(4)]
    assert kept(connection, records, 3) == by_hand(records, 3)


@pytest.mark.parametrize("span", [1, 2**33, 2**61])
def test_the_lowest_of_an_order_are_those_of_the_plain_rule(span: int) -> None:
    """However far apart the numbers of units and cells are: products of two pass 64 bits."""
    for seed in range(30):
        random = Random(seed)  # noqa: S311 - makes no noise
        number = random.randrange(40)
        units, near, far = (np.array(random.choices(range(-1, 3), k=number)) * span for _ in "123")
        order = np.array(random.sample(range(64), number), np.uint64) << np.uint64(57)
        limits, left = [([near, far], 1), ([far], 3)], []
        for unit in set(units.tolist()):
            own = sorted(np.flatnonzero(units == unit).tolist(), key=order.__getitem__)
            fits = [
                record
                for place, record in enumerate(own)
                if all(
                    sum(all(of[record] == of[at] for of in cell) for at in own[:place]) < most
                    for cell, most in limits
                )
            ]
            left += fits[:4]
        assert sorted(lowest.lowest(units, order, limits, 4).tolist()) == sorted(left)


@pytest.mark.parametrize("block", [1, 7, None])
def test_crowded_are_those_after_which_too_many_of_the_same_come(
    block: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowest, "_BLOCK", block or lowest._BLOCK)
    for seed in range(30):
        random = Random(seed)  # noqa: S311 - makes no noise
        records = np.array(random.choices(range(96), k=40))
        records = records[np.argsort(records >> 4, kind="stable")]
        at_most, most = random.choices(range(1, 9), k=2)
        flags = lowest.crowded(records.astype(np.uint64), 0xF0, [(0xFF, most), (0xFC, 3)], at_most)
        assert flags.tolist() == [
            any(
                sum(record >> bits == other >> bits for other in records[place + 1 :]) >= limit
                for bits, limit in ((4, at_most), (0, most), (2, 3))
            )
            for place, record in enumerate(records)
        ]
