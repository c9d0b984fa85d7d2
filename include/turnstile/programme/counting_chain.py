"""The chain of steps by which a programme counts a vector: what is bounded, charged and run.

PRIVACY 4. `release.sensitivities` composes its stability, `counting` runs it: whoever wants to know
which filter, bound or cells a table has asks here.
"""

from __future__ import annotations

from functools import lru_cache

from turnstile.privacy.stability import (
    Bound,
    CellLimit,
    Chain,
    Count,
    Filter,
    Identify,
    Join,
    OnceInACell,
    Project,
    Read,
    Selection,
)
from turnstile.programme.bounding_rule import bound_in_force, rule_of
from turnstile.programme.fields import OF_OFF, OF_ON
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Outside, Programme, TableSpec

JOIN_OF_TAPS = Join(within=("card_id", "mode", "service_date"), of_end=OF_OFF)
JOIN_OF_STOPS = Join(within=("vehicle_id", "service_date"))
"""A bus and a stop of its timetable: bounded_mean.proof.md, M9."""


def chain_of(programme: Programme, table: TableSpec, statistic: str = "count") -> Chain:
    """Return the chain of one vector of a table."""
    return chain_of_vector(programme, (table,), statistic)


@lru_cache(maxsize=256)  # asked for each table of each day
def chain_of_vector(programme: Programme, tables: tuple[TableSpec, ...], statistic: str) -> Chain:
    """Return the chain of a vector that several tables of one rule make up.

    Args:
        programme: whose source, filter and bounds hold.
        tables: whose draws make up the vector; of one rule.
        statistic: which of their vectors.
    """
    feed, rule = programme.source.feed, rule_of(programme, tables[0])
    is_of_vehicles = feed.shape is RowShape.TELEMETRY
    limits = () if rule is None else rule.limits
    if is_of_vehicles:  # readings of a bus, day and cell are one record
        limits = (CellLimit(tuple(sorted(tables[0].by)), 1),)
    return Chain(
        read=Read(2 if feed.joins_taps or feed.names_nobody else 1, feed.names_nobody),
        identify=Identify(
            programme.source.id_field,
            is_required=is_of_vehicles or bound_in_force(programme) is not None,
        ),
        join=join_of(feed, has_timetable=programme.source.timetable is not None),
        filter=_filter(programme),
        once=OnceInACell(limits) if limits else None,
        bound=None if rule is None else Bound(rule.unit, rule.records_max),
        project=Project(tuple(table.by for table in tables)),
        count=Count(
            adds_up=is_of_vehicles, mean_range=tables[0].mean_range if statistic == "sum" else None
        ),
    )


@lru_cache(maxsize=64)
def tables_of(programme: Programme, selection: Selection) -> tuple[TableSpec, ...]:
    """Return the tables that count the same records."""
    return tuple(
        table for table in programme.tables if chain_of(programme, table).selection == selection
    )


def join_of(feed: Feed, *, has_timetable: bool) -> Join | None:
    """Return how records of a feed are joined; None where each is counted as it came."""
    if feed.joins_taps:
        return JOIN_OF_TAPS
    return JOIN_OF_STOPS if has_timetable else None


def _filter(programme: Programme) -> Filter:
    """Return which labels a record must have.

    A boarding alone lies in none of the cells of the other end, and is judged by those of its own.
    """
    used = tuple(sorted({axis for table in programme.tables for axis in table.by}))
    judged: tuple[tuple[str, ...], ...] = (used,)
    if programme.source.feed.names_nobody:
        ends = ((OF_ON, OF_OFF), (OF_OFF, OF_ON))
        judged = tuple(
            tuple(axis for axis in used if axis not in other)
            for end, other in ends
            if not set(end).isdisjoint(used)
        )
    return Filter(judged, drops=programme.domain.outside is Outside.DROP)
