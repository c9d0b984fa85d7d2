"""Sensitivities composed of the steps of counting: every figure that was declared before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from turnstile.privacy.mechanisms.bounded_mean import sum_sensitivity
from turnstile.privacy.sensitivities import difference_of_counts, difference_of_sums, packed
from turnstile.privacy.stability import CellLimit, Movement, Project
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Outside, Programme, TableSpec, UnitBound
from turnstile.release.plan import marginals_of
from turnstile.release.sensitivities import sensitivities

ROOT = Path(__file__).parents[2]
DECLARED = ROOT / "tests/fixtures/declared_sensitivities.txt"
FOLDERS = ("include/programmes", "tests/pipeline/programmes", "tests/support/programmes")
NAMES = [f"{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / folder).glob("*.yaml")]
DAYS = [date(2016, 7, 25) + timedelta(days=n) for n in range(28)]
NUMBERS_OF_DAYS = (1, 7, 28)
DAY, WEEK = ProtectionUnit.CARD_DAY, ProtectionUnit.CARD_WEEK
BOUNDS = (
    UnitBound(DAY, 3),
    UnitBound(DAY, 4, once_per_cell=True),
    UnitBound(WEEK, 9, once_per_cell=True),
    UnitBound(WEEK, 7, once_per_finest_cell=True, coarse_cell_max=3),
)


def figures(name: str) -> dict[str, str]:
    """Return l0, l1, l2 squared and linf of every unit, finest first, for each number of days.

    By programme, feed, rule of outside, bound, and vector.
    """
    programme = parse_programme((ROOT / name).read_text(), Path(name).name)
    return {
        f"{name} {label} {'+'.join(table.name for table in tables)}/{statistic}": " | ".join(
            _declared(variant, tables, statistic, number) for number in NUMBERS_OF_DAYS
        )
        for variant, label in _variants(programme)
        for tables, statistic in _vectors(variant)
    }


def pinned(name: str) -> dict[str, str]:
    """Return the same as the case table before the chain declared it; vectors share a line."""
    declarations = {}
    for line in DECLARED.read_text().splitlines():
        of, _, declared = line.partition(": ")
        words = of.split(" ")
        vectors = [word for word in words[1:] if "/" in word]
        label = " ".join(words[: -len(vectors)])
        declarations |= {f"{label} {vector}": declared for vector in vectors if words[0] == name}
    return declarations


def _declared(
    programme: Programme, tables: Sequence[TableSpec], statistic: str, number_of_days: int
) -> str:
    bounds = sensitivities(programme, tables, statistic, DAYS[:number_of_days])
    return ", ".join(
        "infinite" if moved is None else f"{moved.l0} {moved.l1} {moved.l2_squared} {moved.linf}"
        for _, moved in bounds
    )


def _variants(programme: Programme) -> Iterator[tuple[Programme, str]]:
    """Yield the programme over all feeds of its shape, under both rules, bounded or not."""
    feeds = [programme.source.feed]
    if programme.source.feed.shape is RowShape.TRIPS and not programme.source.feed.names_nobody:
        feeds = [Feed.OPAL_TRIPS, Feed.TAPS, Feed.TIDES_FARE_TRANSACTIONS]
    for feed in feeds:
        for outside in Outside:
            made = replace(
                programme,
                source=replace(programme.source, feed=feed),
                domain=replace(programme.domain, outside=outside),
            )
            yield made, f"{feed} {outside} bounded"
            if feed.shape is RowShape.TRIPS:
                yield replace(made, units=()), f"{feed} {outside} unbounded"
                for bound in BOUNDS if made.name == "opal" else ():
                    yield replace(made, units=(bound,)), f"{feed} {outside} {_words(bound)}"


def _words(bound: UnitBound) -> str:
    cells = (bound.once_per_cell, bound.once_per_finest_cell, bound.coarse_cell_max)
    return f"{bound.unit} {bound.contributions_max} {cells}"


def _vectors(programme: Programme) -> Iterator[tuple[tuple[TableSpec, ...], str]]:
    for table in programme.tables:
        for statistic in table.statistics:
            yield (table,), statistic
    for tap in ("tap_on", "tap_off"):
        pair = tuple(t for t in programme.shared_tables if t.by in marginals_of(tap))
        if len(pair) > 1:
            yield pair, "count"


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_that_was_declared_is_composed_again(name: str) -> None:
    composed, declared = figures(name), pinned(name)
    assert composed.keys() == declared.keys()
    differ = {vector for vector in declared if composed[vector] != declared[vector]}
    # One trip moves two marginals that nothing bounds by 2, and 1 stood there. No programme drew
    # them as one vector: `joint_marginals` asks for once_per_finest_cell, so for a bound.
    assert all("opal_trips" in vector and "+" in vector for vector in differ)
    assert {declared[vector].count("1 1 1 1") for vector in differ} <= {len(NUMBERS_OF_DAYS)}
    assert {composed[vector].count("2 2 2 1") for vector in differ} <= {len(NUMBERS_OF_DAYS)}
    assert len(declared) > len(differ)


def test_a_sum_under_a_bound_of_a_week_moves_as_the_difference_of_two_centered_sums() -> None:
    """A day of a bus may displace its other days, of whose speeds it takes the place."""
    programme = parse_programme((ROOT / "include/programmes/itms.yaml").read_text(), "itms.yaml")
    programme = replace(programme, units=(UnitBound(ProtectionUnit.BUS_WEEK, 40),))
    (speed,) = (table for table in programme.tables if "sum" in table.statistics)
    bounds = dict(sensitivities(programme, (speed,), "sum", DAYS[:7]))
    assert speed.clamp_kmh is not None
    moved = sum_sensitivity(packed(40, 7), speed.clamp_kmh)
    assert bounds[ProtectionUnit.BUS_DAY] == difference_of_sums(moved)
    counts = dict(sensitivities(programme, (speed,), "buses", DAYS[:7]))
    assert counts[ProtectionUnit.BUS_DAY] == difference_of_counts(packed(40, 7))


def test_of_several_marginals_the_one_without_a_limit_of_its_own_says_what_is_displaced() -> None:
    movement = Movement(ProtectionUnit.TRIP, (), displaced=2, limits=(CellLimit(("a",), 1),))
    assert Project((("a",),)).after(movement).displaced == 1
    assert Project((("a",), ("b",))).after(movement).displaced == 2
