"""All small worlds of a programme's own row shape: how far one unit moves what is counted, at most.

What a unit moves is composed of the steps of its counting (`privacy.stability`). Here it is found:
with the programme's bounds replaced by 1, 2 and 3, every world of up to k + 2 records of one unit and
one record of another, inside and outside of the public cells, goes through the reference counting
with and without the unit. What is found must be no farther than what is composed. Worlds that
differ in names alone (of modes, of days, of labels within one mode and day, of dimensions that the
tables treat alike) are one. No data is read: programme and code decide everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import permutations, product

from turnstile.counting.reference import Cells, ReferenceCount, Row, Tap, joined
from turnstile.errors import ProgrammeError
from turnstile.privacy.events import Sensitivity
from turnstile.privacy.mechanisms.bounded_mean import center_steps
from turnstile.privacy.stability import Chain
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.counting_chain import chain_of_vector
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec
from turnstile.release.plan import marginals_of
from turnstile.release.sensitivities import sensitivities
from turnstile.service_calendar import ServiceWeek

BOUNDS = (1, 2, 3)
_MORE = 2  # records of a unit above its bound
_TAPS_OF_OTHER_TRIPS = 4  # two trips that a pair of taps can part
_LABELS = 2  # of each dimension, in one mode and day
_WORLDS_MAX = 300_000  # of one bound: a record less where there are more
_DAYS = ServiceWeek(2016, 30).days[:2]
_MODES = ("one mode", "another mode")
_OWN, _OTHER = "the unit", "somebody else"
Neighbors = tuple[ProtectionUnit, Sequence[Row], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest movement that was found, beside the composed one.

    Args:
        vector: its tables and statistic, `on_time/count`.
        unit: that was there or not.
        bound: that took the place of the programme's.
        records: of the unit, at most.
        composed: from the steps; None: nothing bounds it.
        found: in all worlds; zeros if no world moved it.
    """

    vector: str
    unit: ProtectionUnit
    bound: int
    records: int
    composed: Sensitivity | None
    found: Sensitivity

    @property
    def is_within(self) -> bool:
        """Say whether nothing moved farther than is composed."""
        return self.composed is None or all(
            found <= composed
            for found, composed in zip(_numbers(self.found), _numbers(self.composed), strict=True)
        )


def check_small_worlds(programme: Programme) -> None:
    """Refuse a programme of which a unit moves some vector farther than is declared.

    Raises:
        ProgrammeError: it names the vector, the unit and the size of the world.
    """
    for largest in small_worlds(programme):
        if not largest.is_within:
            rule = (
                f"{largest.unit} moves {largest.vector} by {_words(largest.found)} in a world of "
                f"{largest.records} records and a bound of {largest.bound}, and its steps compose "
                f"to {_words(largest.composed)}; nothing may be drawn by this code"
            )
            raise ProgrammeError(where=f"{programme.name}.yaml", field="tables", rule=rule)


def small_worlds(programme: Programme) -> tuple[Largest, ...]:
    """Return the largest movement of every vector and unit, for each bound."""
    bounds = BOUNDS if any(not bound.unit.is_record for bound in programme.units) else BOUNDS[-1:]
    return tuple(
        largest for bound in bounds for largest in _of_bound(_bounded(programme, bound), bound)
    )


def _of_bound(programme: Programme, bound: int) -> Iterator[Largest]:
    """Yield the largest movements under one bound, for the vectors that count the same records."""
    vectors = list(_vectors(programme))
    chains = {vector: chain_of_vector(programme, *vector) for vector in vectors}
    for selection in dict.fromkeys(chain.selection for chain in chains.values()):
        of_selection = [v for v in vectors if chains[v].selection == selection]
        yield from _Worlds(programme, {v: chains[v] for v in of_selection}, bound).largest()


Vector = tuple[tuple[TableSpec, ...], str]


def _vectors(programme: Programme) -> Iterator[Vector]:
    """Yield the tables and statistic of every vector that a plan may draw."""
    for table in programme.tables:
        for statistic in table.statistics:
            yield (table,), statistic
    for tap in ("tap_on", "tap_off") if programme.mechanism.joint_marginals else ():
        pair = tuple(one for one in programme.shared_tables if one.by in marginals_of(tap))
        if len(pair) > 1:
            yield pair, "count"


def _bounded(programme: Programme, bound: int) -> Programme:
    """Return the programme with this bound in the place of each of its own, and of larger limits."""

    def least(limit: int | None) -> int | None:
        return None if limit is None else min(limit, bound)

    units = tuple(
        unit
        if unit.unit.is_record
        else replace(unit, contributions_max=bound, coarse_cell_max=least(unit.coarse_cell_max))
        for unit in programme.units
    )
    tables = tuple(
        replace(
            table,
            trips_max=None if table.trips_max is None else bound,
            per_cell_max=least(table.per_cell_max),
        )
        for table in programme.tables
    )
    return replace(programme, units=units, tables=tables)


class _Worlds:
    """The small worlds of vectors that count the same records."""

    def __init__(self, programme: Programme, chains: dict[Vector, Chain], bound: int) -> None:
        self._programme, self._chains, self._bound = programme, chains, bound
        chain = self._chain = next(iter(chains.values()))
        used = {axis for own in chains.values() for by in own.project.tables for axis in by}
        used |= {axis for limit in (chain.once.limits if chain.once else ()) for axis in limit.by}
        used |= {axis for group in chain.filter.judged for axis in group}
        of_end = set(chain.join.of_end) if chain.join else set()
        self._axes = (*sorted(used - of_end), *sorted(used & of_end))
        self._ends = len(used & of_end)
        self._counts = {v: ReferenceCount(own, self._axes) for v, own in chains.items()}
        self._records = bound + _MORE

    def largest(self) -> Iterator[Largest]:
        """Yield the largest movement of each vector and unit."""
        found: dict[tuple[Vector, ProtectionUnit], list[int]] = {}
        select = next(iter(self._counts.values())).selected
        seen: set[tuple[object, ...]] = set()
        for unit, before, after in self._neighbors():
            left, right = select(before), select(after)
            moved = tuple((Counter(right) - Counter(left)).items())
            moved += tuple((row, -n) for row, n in (Counter(left) - Counter(right)).items())
            if (unit, frozenset(moved)) in seen:
                continue
            seen.add((unit, frozenset(moved)))
            for vector, count in self._counts.items():
                sizes = found.setdefault((vector, unit), [0, 0, 0, 0])
                for place, size in enumerate(_size(count.change(moved))):
                    sizes[place] = max(sizes[place], size)
        days = _DAYS
        for vector in self._chains:
            composed = dict(sensitivities(self._programme, *vector, days))
            for unit, one in composed.items():
                sizes = found.get((vector, unit), [0, 0, 0, 0])
                yield Largest(
                    _label(vector), unit, self._bound, self._records, one, Sensitivity(*sizes)
                )
