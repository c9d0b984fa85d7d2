"""The noisy numbers as the gates read them: of a sealed release, or of a published package.

The same checks run before a publication and afterwards, by anybody, on what was published.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.sums_of_squares import Kinds
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import Term, noise_fourth_cumulant, noise_variance, term_of
from turnstile.programme.domain.public_domain import Segment, layout
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Vector, vectors_of_sealed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the cells of one table lie in its vectors.

    Args:
        axes: its dimensions, in order.
        segments: one a mode.
    """

    axes: tuple[str, ...]
    segments: tuple[Segment, ...]


Layouts = Mapping[str, Layout]  # by table: dense tables of the same counts


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums of one draw minus sums of another that hold the same raw counts: noise alone.

    Args:
        name: of both tables and the day, in words.
        residuals: shape (totals,), over the declared standard deviation.
        variance_of_square: of each, as declared; 2 for a normal deviate.
        kinds: how many of them are sums of which noises, as declared.
        sum_of_differences: all totals minus all parts, in counts.
    """

    name: str
    residuals: Floats
    variance_of_square: float
    kinds: Kinds = ()
    sum_of_differences: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Everything that the gates on numbers read.

    Args:
        vectors: of all draws.
        totals: of every pair of a dense table of counts and a finer one.
        earlier: vectors of other releases of the group, newest first.
        segments: where the cells of each mode lie in a table's vectors.
    """

    vectors: tuple[Vector, ...]
    totals: tuple[Totals, ...]
    earlier: tuple[tuple[Vector, ...], ...] = ()
    segments: Mapping[str, Sequence[Segment]] = field(default_factory=dict)

    @property
    def dense(self) -> tuple[Vector, ...]:
        """Vectors without a threshold."""
        return tuple(vector for vector in self.vectors if vector.event.threshold is None)

    def pooled(self, chosen: Sequence[Vector]) -> dict[str, tuple[DrawEvent, NDArray[np.int64]]]:
        """Return the numbers of each kind of draw, over its days."""
        by_label: dict[str, list[Vector]] = {}
        for vector in chosen:
            by_label.setdefault(vector.event.label, []).append(vector)
        return {
            label: (vectors[0].event, np.concatenate([day.values for day in vectors]))
            for label, vectors in by_label.items()
        }

    def by_day_and_pooled(
        self, chosen: Sequence[Vector]
    ) -> dict[str, tuple[DrawEvent, NDArray[np.int64]]]:
        """Return the numbers of each kind of draw over its days, and of each of several days."""
        pooled = self.pooled(chosen)
        days = {
            vector.where: (vector.event, vector.values)
            for vector in chosen
            if vector.values.size < pooled[vector.event.label][1].size
        }
        return pooled | days


def judged_release(drawn: Drawn, earlier: Sequence[tuple[Vector, ...]] = ()) -> Judged:
    """Return the numbers of a sealed release as the gates read them."""
    segments = {table.name: layout(drawn.domain, table) for table in drawn.programme.tables}
    numbers = judged(vectors_of_sealed(drawn), layouts_of(drawn), earlier)
    return replace(numbers, segments=segments)


def judged(
    vectors: tuple[Vector, ...], layouts: Layouts, earlier: Sequence[tuple[Vector, ...]] = ()
) -> Judged:
    """Return numbers with the totals that can be taken of them.

    Args:
        vectors: of all draws.
        layouts: of the dense tables of counts.
        earlier: vectors of other releases of the group, newest first.
    """
    counts: dict[str, list[Vector]] = {name: [] for name in layouts}
    for vector in vectors:
        if vector.event.table in counts and vector.event.statistic == "count":
            counts[vector.event.table].append(vector)
    nested = nested_pairs(layouts)
    totals = tuple(total for pair in nested for total in _totals(counts, layouts, *pair))
    segments = {name: table_layout.segments for name, table_layout in layouts.items()}
    return Judged(vectors, totals, tuple(earlier), segments)


def layouts_of(drawn: Drawn) -> Layouts:
    """Return the layouts of a release's tables that count the same records; none has a threshold.

    A table with a bound of its own nests in none.
    """
    dense = {event.table for event in drawn.events if event.threshold is None}
    return {
        table.name: Layout(table.by, layout(drawn.domain, table))
        for table in drawn.programme.shared_tables
        if table.measure.kind.is_of_trips and table.name in dense
    }


def nested_pairs(layouts: Layouts) -> list[tuple[str, str]]:
    """Return pairs of a table and one whose dimensions include its own."""
    axes = {name: set(table_layout.axes) for name, table_layout in layouts.items()}
    return [(coarse, fine) for coarse in axes for fine in axes if axes[coarse] < axes[fine]]


def _named(table: str, other: str, vector: Vector) -> str:
    """Name two tables and the day."""
    on = f" on {vector.service_date}" if vector.service_date else ""
    return f"{table} and {other}{on}"


def totals_of(
    name: str,
    difference: Floats,
    cells: tuple[Ints, Ints],
    draws: tuple[DrawEvent, DrawEvent],
) -> Totals:
    """Return differences over their declared deviation.

    Args:
        name: of both tables and the day, in words.
        difference: shape (totals,), sums of one draw minus sums of another.
        cells: shape (totals,), how many each sum adds, of the one draw and of the other.
        draws: of both.
    """
    both = list(zip(cells, draws, strict=True))
    variance = sum(n * noise_variance(event.noise, event.scale) for n, event in both)
    fourth = sum(n * noise_fourth_cumulant(event.noise, event.scale) for n, event in both)
    added, times = np.unique(np.stack(cells, axis=1), axis=0, return_counts=True)
    kinds = tuple(
        (number, tuple(term_of(event, n) for n, event in zip(counts, draws, strict=True)))
        for counts, number in zip(added.tolist(), times.tolist(), strict=True)
    )
    scatter = 2 + float(np.mean(fourth / variance**2))
    residuals = np.asarray(difference / np.sqrt(variance))
    return Totals(name, residuals, scatter, kinds, float(difference.sum()))


def kinds_of(chosen: Sequence[Totals]) -> Kinds:
    """Return how many differences there are of which noise, in one order."""
    numbers = Counter[tuple[Term, ...]]()
    for totals in chosen:
        for times, terms in totals.kinds:
            numbers[terms] += times
    return tuple((numbers[terms], terms) for terms in sorted(numbers, key=str))


def _totals(
    counts: Mapping[str, list[Vector]], layouts: Layouts, coarse: str, fine: str
) -> Iterator[Totals]:
    """Yield totals minus the sums of their parts, a day at a time, over all modes."""
    axes = tuple(n for n, name in enumerate(layouts[fine].axes) if name not in layouts[coarse].axes)
    for of_fine, of_coarse in zip(counts[fine], counts[coarse], strict=True):
        differences, terms = [], []
        segments = zip(layouts[fine].segments, layouts[coarse].segments, strict=True)
        for large, small in segments:
            cells = of_fine.values[large.offset : large.offset + large.cells].reshape(large.shape)
            direct = of_coarse.values[small.offset : small.offset + small.cells]
            differences.append(cells.sum(axis=axes).ravel() - direct)
            terms.append(np.full(small.cells, large.cells // small.cells))
        parts = np.concatenate(terms)
        yield totals_of(
            _named(coarse, fine, of_fine),
            np.concatenate(differences),
            (parts, np.ones_like(parts)),
            (of_fine.event, of_coarse.event),
        )


def relative_reach(size: int, *, alpha: float, power: float, scatter: float = 2.0) -> float:
    """Return how far off a scale must be for a mean of squares to show it.

    Args:
        size: squared deviates, >= 1.
        alpha: chance of a false alarm, two-sided.
        power: with which it is to be found.
        scatter: variance of a square; 2 for normal deviates.
    """
    from statistics import NormalDist

    deviates = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    return math.sqrt(1 + deviates * math.sqrt(scatter / size)) - 1
