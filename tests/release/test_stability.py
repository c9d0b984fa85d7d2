"""Sensitivities composed of the steps of counting: every figure that was declared before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

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


def figures(name: str) -> list[str]:
    """Return a line for each programme, feed, rule of outside, bound, and vectors that agree.

    It holds l0, l1, l2 squared and linf of every unit, finest first, for each number of days.
    """
    programme = parse_programme((ROOT / name).read_text(), Path(name).name)
    vectors_of: dict[tuple[str, str], list[str]] = {}
    for variant, label in _variants(programme):
        for tables, statistic in _vectors(variant):
            declared = " | ".join(_declared(variant, tables, statistic, n) for n in NUMBERS_OF_DAYS)
            vector = "+".join(table.name for table in tables) + f"/{statistic}"
            vectors_of.setdefault((f"{name} {label}", declared), []).append(vector)
    return [f"{of} {' '.join(v)}: {declared}" for (of, declared), v in vectors_of.items()]


def _declared(
    programme: Programme, tables: Sequence[TableSpec], statistic: str, number_of_days: int
) -> str:
    bounds = sensitivities(programme, tables, statistic, DAYS[:number_of_days])
    return ", ".join(
        "infinite" if moved is None else f"{moved.l0} {moved.l1} {moved.l2_squared} {moved.linf}"
        for _, moved in bounds
    )


def _variants(programme: Programme) -> Iterator[tuple[Programme, str]]:
    """Yield the programme over every feed of its shape, under both rules, with its bound or none."""
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
    declared = DECLARED.read_text().splitlines()
    assert figures(name) == [line for line in declared if line.startswith(f"{name} ")]
    assert figures(name)
