from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    Place,
    PublicDomain,
    layout,
    public_domain,
)
from turnstile.programme.spec import TableSpec

SOURCE = Path(__file__).resolve().parents[2] / "include/turnstile"
SLOTS = Dimension("tap_on_slot", ("00:00", "12:00", "UNKNOWN"))
PLACES = (Place("bus", "b1", "2000"), Place("train", "t1", "Central"))


def domain(*, bus_areas: tuple[str, ...] = ("2000", "UNKNOWN"), version: str = "v") -> PublicDomain:
    bus = ModeCells("bus", (SLOTS, Dimension("tap_on_location", bus_areas)))
    train = ModeCells("train", (SLOTS, Dimension("tap_on_location", ("Central",))))
    return public_domain(version, (bus, train), PLACES)


@given(
    by=st.lists(st.sampled_from(["tap_on_slot", "tap_on_location"]), unique=True).map(tuple),
    areas=st.integers(1, 5),
)
def test_segments_of_a_layout_follow_each_other_and_fill_the_vector(
    by: tuple[str, ...], areas: int
) -> None:
    cells = domain(bus_areas=tuple(f"area {number}" for number in range(areas)))
    table = TableSpec("t", by)
    offset = 0
    for segment, mode in zip(layout(cells, table), ("bus", "train"), strict=True):
        assert (segment.mode, segment.offset) == (mode, offset)
        assert segment.shape == cells.shape(table, mode)
        offset += segment.cells
    assert offset == cells.cells(table)


def test_a_total_has_one_cell_for_each_mode() -> None:
    assert domain().cells(TableSpec("total", ())) == 2


def test_the_place_of_unknown_is_the_last_and_there_is_none_without_it() -> None:
    assert SLOTS.unknown == 2
    assert domain().dimension("train", "tap_on_location").unknown is None


def test_an_equal_domain_has_an_equal_digest_whatever_the_order_of_its_lookup() -> None:
    again = public_domain("other file", domain().cells_by_mode, PLACES[::-1])
    assert again.digest == domain().digest
    assert again.places == domain().places


def test_another_label_order_of_labels_or_lookup_has_another_digest() -> None:
    cells = domain().cells_by_mode
    others = (
        domain(bus_areas=("2001", "UNKNOWN")),
        domain(bus_areas=("UNKNOWN", "2000")),
        public_domain("v", cells[::-1], PLACES),
        public_domain("v", cells, (*PLACES, Place("bus", "b2", "2000"))),
        public_domain("v", cells, (Place("bus", "b1", "Central"), PLACES[1])),
    )
    assert len({other.digest for other in (domain(), *others)}) == 1 + len(others)


def test_only_the_reader_of_public_files_makes_a_domain() -> None:
    makers = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in ("public_domain", "PublicDomain"):
                makers.add(path.relative_to(SOURCE).as_posix())
    assert makers == {"programme/domain/public_domain.py", "programme/domain/files.py"}


def test_the_room_of_domains_knows_no_engine_and_no_rows() -> None:
    for name in ("public_domain", "files", "public_file", "service_area"):
        tree = ast.parse((SOURCE / f"programme/domain/{name}.py").read_text())
        imported = {
            alias.name if isinstance(node, ast.Import) else str(node.module)
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        forbidden = ("duckdb", "pandas", "pyarrow", "turnstile.sources", "turnstile.counting")
        assert not [module for module in imported if module.startswith(forbidden)]
        assert "turnstile.settings" not in imported
