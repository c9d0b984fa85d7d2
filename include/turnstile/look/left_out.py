"""What the bounds of a programme leave out of the rows of a week: exact, for the private page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from turnstile.counting.exact import ExactTable
from turnstile.look.asked import Asked
from turnstile.measures.registry import Measure
from turnstile.programme.bounding_rule import BoundingRule, rule_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.ingest.snapshot import Snapshot

_EVERY_BUS = next(m for m in Measure if m.kind.has_every_bus and not m.kind.option)
_LARGE = 0.1
_ANY_KEY = b"a look"  # which records are kept depends on it, how many hardly


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What one bound leaves out.

    Args:
        key: of the programme.
        rule: what the bound counts.
        records: in the public cells, before it.
        left: of these, left out.
    """

    key: str
    rule: BoundingRule
    records: int
    left: int

    @property
    def line(self) -> str:
        """What share it leaves out."""
        share = f"{self.left / max(self.records, 1):.1%}"
        return f"{self.key}: {self.rule.counted}; {share} are left out"

    @property
    def is_large(self) -> bool:
        """Whether so much is left out that somebody should think again."""
        return self.left > _LARGE * self.records


def left_out(
    asked: Asked, programme: Programme, week: ServicePeriod, snapshot: Snapshot, work: Path
) -> Iterator[LeftOut]:
    """Yield what each bound of a programme leaves out of what lies in its public cells.

    Args:
        asked: has the cells, if they are known; else nothing is yielded.
        programme: whose bounds.
        week: its days.
        snapshot: of its rows.
        work: folder of the private zone.
    """
    rules = {rule_of(programme, table): table for table in programme.tables[::-1]}
    if asked.domain is None or not any(rules):
        return
    from turnstile.counting.exact_tables import count  # a re-issue counts nothing

    if programme.source.feed.shape is RowShape.TELEMETRY:  # all tables have the same cells
        every_bus = replace(programme.tables[0], measure=_EVERY_BUS)
        programme = replace(programme, tables=(every_bus,))
    count_week = partial(
        count,
        domain=asked.domain,
        days=week.days,
        rows_folder=snapshot.folder / "rows",
        secret=_ANY_KEY,
        work=work,
        progress=lambda _: None,
        memory=asked.memory,
    )
    bounded, unbounded = (
        _totals(count_week(replace(programme, units=units))) for units in (programme.units, ())
    )
    for rule, table in rules.items():
        if rule is not None:
            records = unbounded[table.name]
            yield LeftOut(_key(rule, table), rule, records, records - bounded[table.name])


def _totals(tables: Iterable[ExactTable]) -> Counter[str]:
    """Return how many records each table counts."""
    totals: Counter[str] = Counter()
    for table in tables:
        totals[table.table] += int(table.reveal_to_mechanism().sum())
    return totals


def _key(rule: BoundingRule, table: TableSpec) -> str:
    """Return the key that states a bound."""
    if table.trips_max is not None:
        return f"tables.{table.name}.trips_at_most"
    return f"units.{rule.unit}.{rule.unit.bound_key}"
