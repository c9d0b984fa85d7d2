"""How far one unit moves what is counted in all small worlds, beside what its steps compose to.

PRIVACY 4.14. The programme's bounds are replaced by k = 1, 2 and 3; every world of its own row
shape of up to k + 2 records of one unit (`worlds_of_units`) goes through the reference counting
with and without the unit. What is found must be no farther than the sensitivity that is composed
for those bounds. No data is read: programme and code decide everything, so what was found is kept
by the digest of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any

from turnstile.counting.reference import Cells, ReferenceCount, Row
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.trials.kept_findings import kept_name, kept_or_found
from turnstile.pipeline.trials.worlds_of_units import DAYS, Rows, Shape, worlds
from turnstile.privacy.events import Sensitivity
from turnstile.privacy.stability import Chain
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.counting_chain import chain_of_vector
from turnstile.programme.fields import OF_OFF
from turnstile.programme.spec import Programme, TableSpec
from turnstile.release.plan import marginals_of
from turnstile.release.sensitivities import sensitivities

BOUNDS = (1, 2, 3)
_MORE = 2  # records of a unit above its bound
_MODES = ("one mode", "another mode")
_REMEMBERED = 2**16  # selections of rows
Vector = tuple[tuple[TableSpec, ...], str]
_Size = tuple[int, ...]
_FARTHEST = "l0, l1, l2^2 and linf of each vector and unit"
_NOTHING: _Size = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Movement:
    """The farthest that one unit moved one vector, beside the composed sensitivity.

    Args:
        vector: its tables and statistic, `on_time/count`.
        unit: that was there or not.
        bound: k, in the place of the programme's own bounds.
        records: of the unit in a world, at most.
        composed: of the steps for that bound; None: nothing bounds it.
        farthest: in all worlds; zeros if no world moved it.
    """

    vector: str
    unit: ProtectionUnit
    bound: int
    records: int
    composed: Sensitivity | None
    farthest: Sensitivity

    @property
    def is_within(self) -> bool:
        """Whether nothing moved farther than is composed."""
        return self.composed is None or all(
            observed <= composed
            for observed, composed in zip(
                _numbers(self.farthest), _numbers(self.composed), strict=True
            )
        )


def moved_too_far(programme: Programme, kept: Path | None = None) -> str | None:
    """Return what moves farther in some world than is composed; None if nothing does.

    Args:
        programme: bounds, tables and source.
        kept: folder of what was found before; None, or one that cannot be written: not kept.
    """
    for moved in small_worlds(programme, kept):
        if moved.composed is not None and not moved.is_within:
            return (
                f"one {moved.unit} moves {moved.vector} by (l0, l1, l2^2, linf) = "
                f"{_numbers(moved.farthest)} in a world of at most {moved.records} records under a "
                f"bound of {moved.bound}, where {_numbers(moved.composed)} is composed; this is a "
                "fault of the program: release nothing, and report it"
            )
    return None


def small_worlds(programme: Programme, kept: Path | None = None) -> tuple[Movement, ...]:
    """Return the farthest movement of every vector and unit, for each bound."""
    is_bounded = any(not bound.unit.is_record for bound in programme.units)
    return tuple(
        moved
        for bound in (BOUNDS if is_bounded else BOUNDS[:1])
        for moved in _under_bound(_bounded(programme, bound), bound, kept)
    )


def beside_each_other(movements: Sequence[Movement]) -> Iterator[str]:
    """Yield, for people, what is composed and what was found under the largest bound."""
    largest = max(moved.bound for moved in movements)
    vectors: dict[tuple[str, str, str], list[str]] = {}
    for moved in movements:
        if moved.bound == largest and moved.composed is not None:
            composed, observed = (
                f"l1 {sensitivity.l1}, l2^2 {sensitivity.l2_squared}"
                for sensitivity in (moved.composed, moved.farthest)
            )
            vectors.setdefault((str(moved.unit), composed, observed), []).append(moved.vector)
    yield f"{f'small worlds, bound {largest}':22} {'composed':>24} {'found at most':>24}"
    for (unit, composed, observed), names in vectors.items():
        yield f"{f'one {unit} moves':22} {composed:>24} {observed:>24}  {', '.join(names)}"


def _under_bound(programme: Programme, bound: int, kept: Path | None) -> Iterator[Movement]:
    """Yield the farthest movements under one bound, of vectors that count the same records."""
    chains = {vector: chain_of_vector(programme, *vector) for vector in _vectors(programme)}
    for selection in dict.fromkeys(chain.selection for chain in chains.values()):
        selected_chains = {
            vector: chain for vector, chain in chains.items() if chain.selection == selection
        }
        yield from _of_selection(programme, selected_chains, bound, kept)


def _vectors(programme: Programme) -> Iterator[Vector]:
    """Yield every vector that a plan draws as one: tables and statistic."""
    for table in programme.tables:
        for statistic in table.statistics:
            yield (table,), statistic
    for tap in ("tap_on", "tap_off") if programme.mechanism.joint_marginals else ():
        pair = tuple(shared for shared in programme.shared_tables if shared.by in marginals_of(tap))
        if len(pair) > 1:
            yield pair, "count"


def _bounded(programme: Programme, bound: int) -> Programme:
    """Return the programme with this bound in the place of its own, and of larger limits."""

    def least(limit: int | None) -> int | None:
        return None if limit is None else min(limit, bound)

    units = (
        unit_bound
        if unit_bound.unit.is_record
        else replace(
            unit_bound, contributions_max=bound, coarse_cell_max=least(unit_bound.coarse_cell_max)
        )
        for unit_bound in programme.units
    )
    tables = (
        replace(table, trips_max=least(table.trips_max), per_cell_max=least(table.per_cell_max))
        for table in programme.tables
    )
    return replace(programme, units=tuple(units), tables=tuple(tables))


def _of_selection(
    programme: Programme, chains: dict[Vector, Chain], bound: int, kept: Path | None
) -> Iterator[Movement]:
    """Yield the farthest movement of each unit, for vectors that count the same records."""
    shape = _shape(programme, tuple(chains.values()))
    records = bound + _MORE
    farthest = _kept_or_found(shape, tuple(dict.fromkeys(chains.values())), records, kept)
    for vector, chain in chains.items():
        equivalents = [other for other in chains.values() if _are_alike(shape, chain, other)]
        for unit, composed in sensitivities(programme, *vector, DAYS):
            sizes = (farthest.get((other, unit), _NOTHING) for other in equivalents)
            sensitivity = Sensitivity(*map(max, _NOTHING, *sizes))
            label = f"{'+'.join(table.name for table in vector[0])}/{vector[1]}"
            yield Movement(label, unit, bound, records, composed, sensitivity)


def _kept_or_found(
    shape: Shape, chains: tuple[Chain, ...], records: int, kept: Path | None
) -> Mapping[tuple[Chain, ProtectionUnit], _Size]:
    """Return `_farthest` as it was found before by this code, or find and keep it."""
    if kept is None:
        return _farthest(shape, chains, records)

    def written(farthest: Mapping[tuple[Chain, ProtectionUnit], _Size]) -> dict[str, object]:
        sizes = [(chains.index(chain), str(u), size) for (chain, u), size in farthest.items()]
        return {_FARTHEST: sizes}

    def read(content: Any) -> dict[tuple[Chain, ProtectionUnit], _Size]:  # noqa: ANN401 - JSON
        return {
            (chains[chain], ProtectionUnit(unit)): tuple(int(number) for number in size)
            for chain, unit, size in content[_FARTHEST]
        }

    path = kept / _name_of(shape, chains, records)
    return kept_or_found(
        path, lambda: _farthest(shape, chains, records), written=written, read=read
    )


def _name_of(shape: Shape, chains: tuple[Chain, ...], records: int) -> str:
    """Name the file of what was found, by all that decides it."""
    return f"{kept_name(repr((shape, chains, records, code_version())))}.json"


@lru_cache(maxsize=64)  # programmes share their chains
def _farthest(
    shape: Shape, chains: tuple[Chain, ...], records: int
) -> Mapping[tuple[Chain, ProtectionUnit], _Size]:
    """Return how far each unit moves the vector of each chain, in all worlds of so many records."""
    counts = {chain: ReferenceCount(chain, shape.axes) for chain in chains}
    first = counts[chains[0]]
    judged = cache(first.judged)

    @lru_cache(maxsize=_REMEMBERED)  # worlds share what is left of them
    def selected(rows: Rows) -> list[Row]:
        return first.selected(map(judged, rows))

    farthest: dict[tuple[Chain, ProtectionUnit], _Size] = {}
    known: set[tuple[object, ...]] = set()
    for world in worlds(shape, records):
        after = selected(world.rows)
        for unit, rows in world.without:
            before = selected(rows)
            change = unit, _without(after, before), _without(before, after)
            if change in known:
                continue
            known.add(change)
            for chain, count in counts.items():
                size = _size(count.cells(before), count.cells(after))
                had = farthest.get((chain, unit), size)
                farthest[chain, unit] = tuple(map(max, had, size))
    return farthest


def _shape(programme: Programme, chains: Sequence[Chain]) -> Shape:
    """Return what decides which worlds there are for vectors that count the same records."""
    chain = chains[0]
    groups = {frozenset(by) for vector_chain in chains for by in vector_chain.project.tables}
    groups |= {frozenset(limit.by) for limit in (chain.once.limits if chain.once else ())}
    used = {axis for group in (*groups, *chain.filter.judged) for axis in group}
    of_end = used & set(chain.join.of_end if chain.join else OF_OFF)
    axes = (*sorted(used - of_end), *sorted(of_end))
    members = [frozenset(group for group in groups if axis in group) for axis in axes]
    distinct = [member for member in dict.fromkeys(members) if member]
    kinds = tuple(distinct.index(member) if member else -1 for member in members)
    as_they_are = tuple(range(len(distinct)))
    ends_differ = chain.join is not None or chain.read.ends_apart  # a tap-off can be without a trip
    structure = _structure(chains, axes, kinds, as_they_are)
    symmetries = tuple(
        order
        for order in ([as_they_are] if ends_differ else permutations(as_they_are))
        if _structure(chains, axes, kinds, order) == structure
    )
    modes = _MODES[: len(programme.source.modes)]
    return Shape(chain, axes, len(of_end), kinds, symmetries, modes)


def _kinds_of(
    by: Sequence[str], axes: Sequence[str], kinds: Sequence[int], order: Sequence[int]
) -> tuple[int, ...]:
    """Return the kinds of some axes after a permutation of kinds, sorted."""
    return tuple(sorted({order[kinds[axes.index(axis)]] for axis in by}))


def _structure(
    chains: Sequence[Chain], axes: Sequence[str], kinds: Sequence[int], order: Sequence[int]
) -> object:
    """Return tables and limits after a permutation of kinds, without their names."""
    limits = chains[0].once.limits if chains[0].once else ()
    tables = Counter(
        tuple(sorted(_kinds_of(by, axes, kinds, order) for by in chain.project.tables))
        for chain in chains
    )
    return tables, {(_kinds_of(limit.by, axes, kinds, order), limit.at_most) for limit in limits}


def _are_alike(shape: Shape, chain: Chain, other: Chain) -> bool:
    """Whether a symmetry turns one vector into another, so that what moves one moves the other."""

    def kinds(candidate: Chain, order: Sequence[int]) -> list[tuple[int, ...]]:
        return sorted(
            _kinds_of(by, shape.axes, shape.kinds, order) for by in candidate.project.tables
        )

    as_they_are = range(len(shape.axes))
    return chain.count == other.count and any(
        kinds(chain, order) == kinds(other, as_they_are) for order in shape.symmetries
    )


def _without(rows: Sequence[Row], others: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows that are there more often than among others."""
    left = list(others)
    more = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            more.append(row)
    return tuple(more)


def _size(before: Sequence[Cells], after: Sequence[Cells]) -> _Size:
    """Return l0, l1, squared l2 and linf of a vector's change."""
    moved = [
        abs(counts[cell] - had[cell])
        for had, counts in zip(before, after, strict=True)
        for cell in had.keys() | counts.keys()
    ]
    return sum(map(bool, moved)), sum(moved), sum(n * n for n in moved), max(moved, default=0)


def _numbers(sensitivity: Sensitivity) -> tuple[int, int, int, int]:
    """Return l0, l1, squared l2 and linf."""
    return sensitivity.l0, sensitivity.l1, sensitivity.l2_squared, sensitivity.linf
