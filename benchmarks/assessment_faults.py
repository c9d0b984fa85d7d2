"""Faults that are put into releases: each by how it is made, and the sizes at which it is tried.

Each says too what a likelihood-ratio test tells that knows the fault and all raw counts, so that
what the gates miss is measured against what could be seen at all (`Gain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import assessment_noises as noises
import numpy as np
from assessment_noises import CERTAIN, NONE, Gain, Law, declared
from assessment_releases import Case, Ints
from numpy.typing import NDArray
from scipy.special import ndtri

from turnstile.privacy.events import DrawEvent
from turnstile.programme.domain.public_domain import layout
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact
from turnstile_lab.baselines import uniforms

_ONE_CELL = 7  # any
_COARSE_BELOW = 1000  # cells
_COUNTS = 16  # quantiles of a vector's raw counts that stand for all
Bools = NDArray[np.bool_]
Spoil = Callable[[Case, float], Drawn]
Told = Callable[[Case, float], Gain]
WHY_MISSED = {
    "one vector of noise on two days, in scattered cells (share)": (
        "where a number is compared with any other one, equal raw counts and equal noise are told "
        "from chance by so many cells (docs/LAB.md)"
    ),
    "noise of two days alike in part (correlation)": (
        "the phases of noise that is alike in part differ too, and are the less alike the finer "
        "they are (docs/LAB.md)"
    ),
}


class Cells(NamedTuple):
    """Cells of one draw whose noise has another law."""

    draw: int
    chosen: Bools
    law: Law


Laws = Callable[[Case, float], Iterator[Cells]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to spoil a release.

    Args:
        name: in words.
        spoil: release, size -> spoiled release.
        told: release, size -> what a likelihood-ratio test knows that knows all but the noise.
        sizes: at which it is tried, least first; the unit is in the name.
        only: programmes that it makes sense for; all by default.
        laws: of cells whose noise alone is another; None where cells depend on each other.
        is_by_counts: whether the raw counts decide which cells these are.
    """

    name: str
    spoil: Spoil
    told: Told
    sizes: tuple[float, ...] = (1.0,)
    only: tuple[str, ...] = ("opal_trip", "opal", "opal_year", "itms", "itms_delays")
    laws: Laws | None = None
    is_by_counts: bool = False


def _by_laws(name: str, laws: Laws, sizes: tuple[float, ...] = (1.0,), **more: object) -> Fault:
    """Return a fault of cells that do not depend on each other."""

    def spoil(case: Case, size: float) -> Drawn:
        vectors = case.honest
        for n, chosen, law in laws(case, size):
            noise = law.sampled(f"{name} {size} {n}", chosen.size)
            vectors[n] = np.where(chosen, case.exact[n] + noise, vectors[n])
        return case.with_vectors(vectors)

    def told(case: Case, size: float) -> Gain:
        gain = NONE
        for n, chosen, law in laws(case, size):
            cell_gain = law.against(declared(case.drawn.events[n]))
            gain = gain.plus(cell_gain.times(int(chosen.sum())))
        return gain

    return Fault(name, spoil, told, sizes, laws=laws, **more)  # type: ignore[arg-type]


def _noise(
    law: Callable[[DrawEvent, float], Law], chosen: Callable[[Case, int], bool] = lambda *_: True
) -> Laws:
    """Let all cells of chosen draws have another law: event, size -> law."""

    def laws(case: Case, size: float) -> Iterator[Cells]:
        for n, (event, cells) in enumerate(zip(case.drawn.events, case.exact, strict=True)):
            if chosen(case, n):
                yield Cells(n, np.ones(cells.size, dtype=np.bool_), law(event, size))

    return laws


def _kind(law: Callable[[DrawEvent], Law]) -> Laws:
    """Let all noise be of another kind."""
    return _noise(lambda event, _: law(event))


def _bare(chosen: Callable[[Case, int, Ints, float], Bools | bool]) -> Laws:
    """Leave the noise off chosen cells: case, draw, exact cells, size -> which."""

    def laws(case: Case, size: float) -> Iterator[Cells]:
        for n, (event, cells) in enumerate(zip(case.drawn.events, case.exact, strict=True)):
            which = np.broadcast_to(chosen(case, n, cells, size), cells.shape)
            if which.any():
                yield Cells(n, which, noises.bare(event))

    return laws


def _finest(case: Case) -> int:
    """Return the first draw of the largest table."""
    sizes = [cells.size for cells in case.exact]
    return sizes.index(max(sizes))


def _is_finest(case: Case, n: int) -> bool:
    """Tell whether a draw is the first of the largest table."""
    return n == _finest(case)


def _is_one_table(case: Case, n: int) -> bool:
    """Tell whether a draw is of one table: on what day soever."""
    return case.drawn.events[n].label.endswith(
        ("on_time_location/count", "speed/buses", "delay/buses")
    )


def _is_coarse(case: Case, n: int) -> bool:
    """Tell whether a draw is of totals by time."""
    return case.drawn.events[n].table in ("on_time", "off_time")


def _is_first_day(case: Case, n: int) -> bool:
    """Tell whether a draw is that of the first day."""
    return _day_before(case, n) is None


def _day_before(case: Case, n: int) -> int | None:
    """Return the draw of the same table on the first day."""
    label = case.drawn.events[n].label
    first = next(m for m, event in enumerate(case.drawn.events) if event.label == label)
    return None if first == n else first


def _second_day_alone(case: Case, n: int) -> int | None:
    """Return the first day's draw of the finest table for its second day alone."""
    finest = _finest(case)
    return finest if n == _next(case) else None


def _next(case: Case) -> int:
    """Return the second draw of the finest table."""
    label = case.drawn.events[_finest(case)].label
    return [m for m, event in enumerate(case.drawn.events) if event.label == label][1]


def _other_table(case: Case, n: int) -> int | None:
    """Return the draw of another table of the same size, on the same day."""
    events, sizes = case.drawn.events, [cells.size for cells in case.exact]
    for m in range(n):
        is_same = sizes[m] == sizes[n] and events[m].scale == events[n].scale
        if is_same and events[m].blocks == events[n].blocks:
            return m
    return None


def known_noise(case: Case, draws: dict[int, float]) -> Gain:
    """Return what cells tell whose noise is known: draw -> how many."""
    gain = NONE
    for n, cells in draws.items():
        gain = gain.plus(declared(case.drawn.events[n]).surprise.times(cells))
    return gain


def _shared(partner: Callable[[Case, int], int | None], sign: int = 1, shift: int = 0) -> tuple:
    """Let the noise of one draw serve another: case, index -> whose noise, None for its own."""

    def spoil(case: Case, _: float) -> Drawn:
        noise = case.noise
        vectors = []
        for n, exact in enumerate(case.exact):
            other = partner(case, n)
            draw_noise = noise[n] if other is None else sign * noise[other] + shift
            vectors.append(exact + draw_noise)
        return case.with_vectors(vectors)

    def told(case: Case, _: float) -> Gain:
        return known_noise(
            case, {n: x.size for n, x in enumerate(case.exact) if partner(case, n) is not None}
        )

    return spoil, told


def _half(change: Callable[[Ints], Ints]) -> tuple[Spoil, Told]:
    """Let one half of the noise of each draw follow from the other."""

    def spoil(case: Case, _: float) -> Drawn:
        pairs = zip(case.exact, case.noise, strict=True)
        return case.with_vectors([exact + change(noise) for exact, noise in pairs])

    def told(case: Case, _: float) -> Gain:
        return known_noise(case, {n: x.size // 2 for n, x in enumerate(case.exact)})

    return spoil, told


def _again_in(change: Callable[[Case, Ints, float], Ints]) -> tuple[Spoil, Told]:
    """Let the finest table's first noise serve its next draw, changed so."""

    def spoil(case: Case, size: float) -> Drawn:
        first, second, vectors = _finest(case), _next(case), case.honest
        vectors[second] = case.exact[second] + change(case, case.noise[first], size)
        return case.with_vectors(vectors)

    def told(case: Case, _: float) -> Gain:
        second = _next(case)
        return known_noise(case, {second: case.exact[second].size})

    return spoil, told


def _in_part(case: Case, share: float) -> Drawn:
    """Let the noise of scattered cells of the finest table's first draw serve its next one."""
    first, second, vectors = _finest(case), _next(case), case.honest
    chosen = uniforms("scattered", vectors[first].size) < share
    noise = np.where(chosen, case.noise[first], case.noise[second])
    vectors[second] = case.exact[second] + noise
    return case.with_vectors(vectors)


def _in_part_told(case: Case, share: float) -> Gain:
    """Of each cell the noise is that of the other draw with this chance, or any."""
    law = declared(case.drawn.events[_next(case)])
    held = law.chances > 1e-300  # noqa: PLR2004 - what is never drawn
    chances = law.chances[held]
    # Of a number z that was drawn before, it comes again with share + (1 - share) p(z).
    same, other = np.log((share + (1 - share) * chances) / chances), np.log1p(-share)
    again = share + (1 - share) * chances
    mean = float(chances @ (again * same + (1 - again) * other))
    square = float(chances @ (again * same**2 + (1 - again) * other**2))
    return Gain(mean, square - mean**2).times(case.exact[_next(case)].size)


def _transposed(case: Case, noise: Ints, _: float) -> Ints:
    """Return noise by the other axis."""
    finest = _finest(case)
    table = next(
        t for t in case.drawn.programme.tables if t.name == case.drawn.events[finest].table
    )
    parts = [
        noise[s.offset : s.offset + s.cells].reshape(s.shape[::-1]).T.ravel()
        for s in layout(case.drawn.domain, table)
    ]
    return np.concatenate(parts)


def _one_stream(case: Case, _: float) -> Drawn:
    """Draw a day's tables from one stream of unit noise, multiplied by each table's scale."""
    vectors = []
    for event, exact in zip(case.drawn.events, case.exact, strict=True):
        share = uniforms(f"day {min(block.service_date for block in event.blocks)}", exact.size)
        laplace = -np.sign(share - 0.5) * np.log1p(-2 * np.abs(share - 0.5))
        unit = laplace if event.noise.record.is_pure else ndtri(share)
        vectors.append(exact + np.rint(unit * float(event.scale)).astype(np.int64))
    return case.with_vectors(vectors)


def _one_stream_told(case: Case, _: float) -> Gain:
    """Given the largest table of a day, each number of another is one of few (at least so much)."""
    gain, sizes = NONE, [x.size for x in case.exact]
    days = [min(block.service_date for block in event.blocks) for event in case.drawn.events]
    for day in set(days):
        draws = [n for n, other in enumerate(days) if other == day]
        first = max(draws, key=lambda n: (sizes[n], case.drawn.events[n].scale))
        for n in draws:
            event = case.drawn.events[n]
            few = np.log(float(event.scale / case.drawn.events[first].scale) + 2)
            surprise = declared(event).surprise
            if n != first and surprise.mean > few:
                gain = gain.plus(Gain(surprise.mean - few, surprise.variance).times(sizes[n]))
    return gain


def _alike_in_part(case: Case, correlation: float) -> Drawn:
    """Let the noise of the other days be correlated with that of the first."""
    vectors, noise = case.honest, case.noise
    for n, exact in enumerate(case.exact):
        first = _day_before(case, n)
        if first is not None:
            mixed = correlation * noise[first] + (1 - correlation**2) ** 0.5 * noise[n]
            vectors[n] = exact + np.rint(mixed).astype(np.int64)
    return case.with_vectors(vectors)


def _alike_told(case: Case, correlation: float) -> Gain:
    """As of normal noise: -1/2 ln(1 - correlation squared) a pair."""
    cells = sum(x.size for n, x in enumerate(case.exact) if _day_before(case, n) is not None)
    return Gain(-0.5 * np.log1p(-(correlation**2)), correlation**2).times(cells)


def _published(change: Callable[[Ints, float], Ints]) -> tuple[Spoil, Told]:
    """Change the numbers that are published: numbers, size -> integers."""

    def told(case: Case, size: float) -> Gain:
        gain = NONE
        for event, exact in zip(case.drawn.events, case.exact, strict=True):
            law = declared(event)
            for count in np.quantile(exact, np.linspace(0, 1, _COUNTS)).round().astype(np.int64):
                changed_law = law.put(lambda z, c=count: change(c + z, size) - c)
                gain = gain.plus(changed_law.against(law).times(exact.size / _COUNTS))
        return gain

    return lambda case, size: case.with_vectors([change(x, size) for x in case.honest]), told


def _typed(change: Callable[[Ints], NDArray[np.generic]]) -> tuple[Spoil, Told]:
    """Publish numbers of another type."""
    return _certain(lambda case, _: case.with_vectors([change(x) for x in case.honest]))  # type: ignore[misc]


def _tables(change: Callable[[list], list]) -> tuple[Spoil, Told]:  # type: ignore[type-arg]
    """Change the list of sealed tables."""

    def spoil(case: Case, _: float) -> Drawn:
        tables = tuple(change(list(case.drawn.artefact.tables)))
        return replace(case.drawn, artefact=Artefact(tables))

    return _certain(spoil)


def _certain(spoil: Spoil) -> tuple[Spoil, Told]:
    """Return a fault that no correct release shows."""
    return spoil, lambda *_: CERTAIN


def _grid(numbers: Ints, step: float) -> Ints:
    """Round to a grid."""
    return int(step) * np.rint(numbers / step).astype(np.int64)


_TRIPS, _BUSES = ("opal_trip", "opal"), ("itms", "itms_delays")
_DAILY = (*_TRIPS, "opal_year")
_LAPLACE, _GAUSSIAN = ("opal_trip",), ("opal", "opal_year", *_BUSES)
_SMALL, _LARGE = (0.95, 0.9, 0.8, 0.5), (1.05, 1.1, 1.25, 2.0)
FAULTS: tuple[Fault, ...] = (
    _by_laws("scale too small, all tables (times)", _noise(declared), _SMALL),
    _by_laws("scale too large, all tables (times)", _noise(declared), _LARGE),
    _by_laws(
        "scale too small, one table (times)", _noise(declared, _is_one_table), (0.9, 0.8, 0.5)
    ),
    _by_laws("scale too large, one table (times)", _noise(declared, _is_one_table), (1.25, 2.0)),
    _by_laws(
        "scale too small, one day's finest table (times)",
        _noise(declared, _is_finest),
        (0.9, 0.8, 0.7, 0.5),
    ),
    _by_laws(
        "scale too small, coarse tables (times)",
        _noise(declared, _is_coarse),
        (0.8, 0.5, 0.25),
        only=_TRIPS,
    ),
    _by_laws("no noise at all", _bare(lambda *_: True)),
    _by_laws("no noise on one day's finest table", _bare(lambda c, n, *_: _is_finest(c, n))),
    _by_laws(
        "no noise on one day's coarse tables",
        _bare(lambda c, n, x, _: x.size < _COARSE_BELOW and _is_first_day(c, n)),
        only=_TRIPS,
    ),
    _by_laws(
        "no noise in the first cells of one table (share)",
        _bare(lambda c, n, x, share: (np.arange(x.size) < share * x.size) & _is_finest(c, n)),
        (0.01, 0.02, 0.05, 0.1),
    ),
    _by_laws(
        "no noise in random cells (share)",
        _noise(noises.bare_in_part),
        (0.01, 0.02, 0.05, 0.1, 0.2),
    ),
    _by_laws(
        "no noise in the busiest cells (share)",
        _bare(lambda _, __, x, share: x >= max(1, np.quantile(x, 1 - share))),
        (0.01, 0.05, 0.2),
        is_by_counts=True,
    ),
    _by_laws(
        "one cell without noise",
        _bare(lambda c, n, x, _: (np.arange(x.size) == _ONE_CELL) & _is_finest(c, n)),
    ),
    _by_laws(
        "empty cells left alone, first cells (share)",
        _bare(lambda _, __, x, share: (x == 0) & (np.arange(x.size) < share * x.size)),
        (0.05, 0.1, 0.5, 1.0),
        is_by_counts=True,
    ),
    _by_laws(
        "noise whose mean is not 0 (deviations)", _noise(noises.moved), (0.02, 0.05, 0.1, 0.5)
    ),
    Fault("one vector of noise on all days", *_shared(_day_before), only=_DAILY),
    Fault("one vector of noise on two days", *_shared(_second_day_alone), only=_DAILY),
    Fault("one vector of noise, sign turned", *_shared(_day_before, sign=-1), only=_DAILY),
    Fault("one vector of noise, shifted by 1", *_shared(_day_before, shift=1), only=_DAILY),
    Fault(
        "one vector of noise in two tables",
        *_shared(_other_table),
        only=("opal_trip", "opal", "opal_year", "itms"),
    ),
    Fault(
        "one stream of unit noise a day, times each table's scale", _one_stream, _one_stream_told
    ),
    Fault(
        "one vector of noise on two days, by the other axis", *_again_in(_transposed), only=_DAILY
    ),
    Fault(
        "one vector of noise on two days, in scattered cells (share)",
        _in_part,
        _in_part_told,
        (0.05, 0.1, 0.2, 0.5),
        _DAILY,
    ),
    Fault(
        "noise of two days alike in part (correlation)",
        _alike_in_part,
        _alike_told,
        (0.3, 0.5, 0.7, 0.9),
        _DAILY,
    ),
    Fault(
        "one vector of noise on two days, moved by so many cells",
        *_again_in(lambda _, z, cells: np.roll(z, int(cells))),
        (1, 100),
        _DAILY,
    ),
    Fault(
        "half of the noise twice in each draw",
        *_half(lambda z: np.resize(z[: z.size // 2 or 1], z.size)),
    ),
    Fault("neighbors share their noise", *_half(lambda z: np.repeat(z[::2], 2)[: z.size])),
    Fault("neighbors with opposite noise", *_half(noises.opposite)),
    _by_laws("floating-point Laplace noise, rounded", _kind(noises.laplace), only=_LAPLACE),
    _by_laws(
        "Laplace noise of the same variance, for Gaussian", _kind(noises.laplace), only=_GAUSSIAN
    ),
    _by_laws("normal noise of the same variance, for Laplace", _kind(noises.normal), only=_LAPLACE),
    _by_laws(
        "normal noise of the same variance, rounded, for Gaussian noise",
        _kind(noises.normal),
        only=_GAUSSIAN,
    ),
    _by_laws("uniform noise of the same variance", _kind(noises.uniform)),
    _by_laws("one-sided noise of the same variance", _kind(noises.one_sided)),
    _by_laws("Student noise of the same variance", _kind(noises.student)),
    _by_laws("noise of two values", _kind(noises.two_points)),
    _by_laws("noise clipped (deviations)", _noise(noises.clipped), (3.5, 3.0, 2.0, 1.0)),
    _by_laws(
        "noise clipped from above alone (deviations)",
        _noise(partial(noises.clipped, above_alone=True)),
        (2.0, 1.0),
    ),
    Fault("numbers below zero set to 0", *_published(lambda y, _: np.maximum(y, 0))),
    Fault("numbers without their sign", *_published(lambda y, _: np.abs(y))),
    Fault("numbers on a grid (step)", *_published(_grid), (2, 5, 10)),
    Fault("fractions", *_typed(lambda x: x + 0.5)),
    Fault("negative zeros", *_typed(lambda x: np.where(x == 0, -0.0, x))),
    Fault("numbers of 32 bits", *_typed(lambda x: x.astype(np.int32))),
    Fault("a cell missing", *_tables(lambda t: [replace(t[0], values=t[0].values[1:]), *t[1:]])),
    Fault("a draw missing", *_tables(lambda t: t[1:])),
    Fault("a draw too many", *_tables(lambda t: [*t, t[0]])),
    Fault("draws in another order", *_tables(lambda t: [t[-1], *t[1:-1], t[0]])),
    Fault(
        "a draw that stands for another",
        *_tables(lambda t: [t[0], replace(t[1], values=t[0].values), *t[2:]]),
    ),
)
"""Each is tried on each of its programmes, at each size."""
