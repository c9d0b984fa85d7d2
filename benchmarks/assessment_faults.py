"""Faults that are put into releases: each by how it is made, and the sizes at which it is tried.

A fault turns a release into a spoiled one. What cannot be seen from the numbers is here too, and
says why (`UNSEEN`): the table names it as missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from assessment_noises import (
    clipped_above,
    deviation,
    laplace,
    normal,
    one_sided,
    opposite,
    student,
    two_points,
    uniform,
)
from assessment_releases import Case, Ints, Redraw
from numpy.typing import NDArray
from scipy.special import ndtri

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.programme.domain.public_domain import layout
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact
from turnstile_lab.baselines import uniforms

_ONE_CELL = 7  # any
_COARSE_BELOW = 1000  # cells
Spoil = Callable[[Case, float], Drawn]
UNSEEN = {
    "normal noise of the same variance, rounded, for Gaussian noise": (
        "a rounded normal deviate has the variance of the discrete Gaussian but for 1/12, and "
        "its distribution but for less than one part in a thousand: no release is long enough"
    ),
    "one cell without noise": "any one number is likely under some raw count",
    "no noise in the first cells (share)": (
        "of opal_trip alone: its first cells are busy here, and any number is likely under some "
        "raw count"
    ),
    "a sampler shifted by one": (
        "of itms alone: one count is so small a part of its noise that 20,000 draws do not show it"
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to spoil a release.

    Args:
        name: in words.
        spoil: release, size -> spoiled release.
        sizes: at which it is tried, smallest first; the unit is in the name.
        only: programmes that it makes sense for; all by default.
    """

    name: str
    spoil: Spoil
    sizes: tuple[float, ...] = (1.0,)
    only: tuple[str, ...] = ("opal_trip", "opal", "itms", "opal_year")


def _scaled(event: DrawEvent, factor: float) -> DrawEvent:
    """Return the draw with another scale."""
    return replace(event, scale=Fraction(float(event.scale) * factor))


def _redraw(change: Redraw) -> Spoil:
    """Spoil by drawing anew."""
    return lambda case, _: case.redrawn(change)


def _scale(chosen: Callable[[DrawEvent, int], bool]) -> Spoil:
    """Draw some tables with another scale."""

    def spoil(case: Case, factor: float) -> Drawn:
        return case.redrawn(
            lambda event, n, cells: draw(
                _scaled(event, factor) if chosen(event, n) else event, cells
            )
        )

    return spoil


def _finest(case: Case) -> int:
    """Return the first draw of the largest table."""
    sizes = [cells.size for cells in case.exact]
    return sizes.index(max(sizes))


def _mixed(case: Case, chosen: Callable[[int, Ints], NDArray[np.bool_]]) -> Drawn:
    """Leave the noise off chosen cells: index of the draw, exact cells -> which."""
    return case.with_vectors(
        [
            np.where(chosen(n, exact), exact, noisy)
            for n, (exact, noisy) in enumerate(zip(case.exact, case.honest, strict=True))
        ]
    )


def _first_rows(case: Case, share: float) -> Drawn:
    """Leave the noise off the first cells of the finest table of one day."""
    own = _finest(case)
    return _mixed(case, lambda n, x: (np.arange(x.size) < share * x.size) & (n == own))


def _random_cells(case: Case, share: float) -> Drawn:
    """Leave the noise off random cells of every draw."""
    return _mixed(case, lambda n, x: uniforms(f"cells {n}", x.size) < share)


def _one_cell(case: Case, _: float) -> Drawn:
    """Leave the noise off one cell."""
    own = _finest(case)
    return _mixed(case, lambda n, x: (np.arange(x.size) == _ONE_CELL) & (n == own))


def _no_noise(chosen: Callable[[Case, int], bool]) -> Spoil:
    """Leave the noise off whole draws."""
    return lambda case, _: _mixed(case, lambda n, x: np.full(x.size, chosen(case, n)))


def _zeros(case: Case, share: float) -> Drawn:
    """Leave empty cells alone in the first cells of each draw."""
    return _mixed(case, lambda _, x: (x == 0) & (np.arange(x.size) < share * x.size))


def _shared(partner: Callable[[Case, int], int | None], sign: int = 1, shift: int = 0) -> Spoil:
    """Let the noise of one draw serve another: case, index -> whose noise, None for its own."""

    def spoil(case: Case, _: float) -> Drawn:
        noise = [noisy - exact for noisy, exact in zip(case.honest, case.exact, strict=True)]
        vectors = []
        for n, exact in enumerate(case.exact):
            other = partner(case, n)
            own = noise[n] if other is None else sign * noise[other] + shift
            vectors.append(exact + own)
        return case.with_vectors(vectors)

    return spoil


def _again(change: Callable[[Ints], Ints]) -> Spoil:
    """Change the noise of each draw: its noise -> other noise."""

    def spoil(case: Case, _: float) -> Drawn:
        pairs = zip(case.honest, case.exact, strict=True)
        return case.with_vectors([exact + change(noisy - exact) for noisy, exact in pairs])

    return spoil


def _clipped_above(case: Case, deviations: float) -> Drawn:
    """Clip the noise above zero."""
    return _again(lambda noise: clipped_above(noise, deviations))(case, deviations)


def _moved(case: Case, cells: float) -> Drawn:
    """Let the noise of the first draw of the finest table serve the next draw, some cells on."""
    own = _finest(case)
    vectors = case.honest
    noise = np.roll(vectors[own] - case.exact[own], int(cells))
    vectors[own + 1] = case.exact[own + 1] + noise
    return case.with_vectors(vectors)


def _one_day(case: Case, factor: float) -> Drawn:
    """Draw one day's finest table with another scale."""
    own = _finest(case)
    return case.redrawn(
        lambda event, n, cells: draw(_scaled(event, factor) if n == own else event, cells)
    )


def _busiest(case: Case, share: float) -> Drawn:
    """Leave the noise off the busiest cells of each draw."""
    return _mixed(case, lambda _, x: x >= max(1, np.quantile(x, 1 - share)))


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
    own = _finest(case)
    label = case.drawn.events[own].label
    second = [m for m, event in enumerate(case.drawn.events) if event.label == label][1:2]
    return own if [n] == second else None


def _one_stream(case: Case, _: float) -> Drawn:
    """Draw a day's tables from one stream of unit noise, multiplied by each table's scale."""
    vectors = []
    for event, exact in zip(case.drawn.events, case.exact, strict=True):
        share = uniforms(f"day {min(block.service_date for block in event.blocks)}", exact.size)
        laplace = -np.sign(share - 0.5) * np.log1p(-2 * np.abs(share - 0.5))
        unit = laplace if event.noise.record.is_pure else ndtri(share)
        vectors.append(exact + np.rint(unit * float(event.scale)).astype(np.int64))
    return case.with_vectors(vectors)


def _transposed(case: Case, _: float) -> Drawn:
    """Let the finest table's first noise serve its next draw, cells by the other axis."""
    own = _finest(case)
    table = next(t for t in case.drawn.programme.tables if t.name == case.drawn.events[own].table)
    noise, vectors = case.honest[own] - case.exact[own], case.honest
    parts = [
        noise[s.offset : s.offset + s.cells].reshape(s.shape[::-1]).T.ravel()
        for s in layout(case.drawn.domain, table)
    ]
    vectors[own + 1] = case.exact[own + 1] + np.concatenate(parts)
    return case.with_vectors(vectors)


def _alike_in_part(case: Case, correlation: float) -> Drawn:
    """Let the noise of the second day be correlated with that of the first."""
    vectors = case.honest
    for n, exact in enumerate(case.exact):
        first = _day_before(case, n)
        if first is not None:
            one, own = (case.honest[m] - case.exact[m] for m in (first, n))
            mixed = correlation * one + (1 - correlation**2) ** 0.5 * own
            vectors[n] = exact + np.rint(mixed).astype(np.int64)
    return case.with_vectors(vectors)


def _other_table(case: Case, n: int) -> int | None:
    """Return the draw of another table of the same size, on the same day."""
    events, sizes = case.drawn.events, [cells.size for cells in case.exact]
    for m in range(n):
        is_same = sizes[m] == sizes[n] and events[m].scale == events[n].scale
        if is_same and events[m].blocks == events[n].blocks and m != n:
            return m
    return None


def _own(maker: Callable[[DrawEvent, str, int], NDArray[np.float64]]) -> Spoil:
    """Draw noise of another kind: event, label, cells -> noise, rounded here."""

    def redraw(event: DrawEvent, n: int, cells: Ints) -> Ints:
        return cells + np.rint(maker(event, f"{event.label} {n}", cells.size)).astype(np.int64)

    return _redraw(redraw)


def _clipped(case: Case, deviations: float) -> Drawn:
    """Clip the noise."""

    def clip(event: DrawEvent, _: int, cells: Ints) -> Ints:
        most = round(deviations * deviation(event))
        return cells + np.clip(draw(event, np.zeros_like(cells)), -most, most)

    return case.redrawn(clip)


def _grid(case: Case, step: float) -> Drawn:
    """Round the numbers to a grid."""
    return case.with_vectors([int(step) * np.rint(x / step).astype(np.int64) for x in case.honest])


def _typed(change: Callable[[Ints], NDArray[np.generic]]) -> Spoil:
    """Publish numbers of another type."""
    return lambda case, _: case.with_vectors([change(x) for x in case.honest])  # type: ignore[misc]


def _tables(change: Callable[[list], list]) -> Spoil:  # type: ignore[type-arg]
    """Change the list of sealed tables."""

    def spoil(case: Case, _: float) -> Drawn:
        tables = tuple(change(list(case.drawn.artefact.tables)))
        return replace(case.drawn, artefact=Artefact(tables))

    return spoil


_TRIPS = ("opal_trip", "opal")
_DAILY = (*_TRIPS, "opal_year")
_LAPLACE, _GAUSSIAN = ("opal_trip",), ("opal", "itms", "opal_year")
FAULTS: tuple[Fault, ...] = (
    Fault("scale too small, all tables (times)", _scale(lambda *_: True), (0.95, 0.9, 0.8, 0.5)),
    Fault("scale too large, all tables (times)", _scale(lambda *_: True), (1.05, 1.1, 1.25, 2.0)),
    Fault(
        "scale too small, one table (times)",
        _scale(lambda event, _: event.label.endswith(("on_time_location/count", "buses"))),
        (0.9, 0.8, 0.5),
    ),
    Fault("scale too small, one day's finest table (times)", _one_day, (0.9, 0.8, 0.7, 0.5)),
    Fault(
        "scale too small, coarse tables (times)",
        _scale(lambda event, _: event.table in ("on_time", "off_time")),
        (0.8, 0.5, 0.25),
        _TRIPS,
    ),
    Fault("no noise at all", _no_noise(lambda *_: True)),
    Fault("no noise on one day's finest table", _no_noise(lambda c, n: n == _finest(c))),
    Fault(
        "no noise on one day's coarse tables",
        _no_noise(lambda c, n: c.exact[n].size < _COARSE_BELOW and _is_first_day(c, n)),
        only=_TRIPS,
    ),
    Fault("no noise in the first cells (share)", _first_rows, (0.01, 0.02, 0.05, 0.1)),
    Fault("no noise in random cells (share)", _random_cells, (0.01, 0.02, 0.05, 0.1, 0.2)),
    Fault("no noise in the busiest cells (share)", _busiest, (0.01, 0.05, 0.2)),
    Fault("one cell without noise", _one_cell),
    Fault("empty cells left alone, first cells (share)", _zeros, (0.05, 0.1, 0.5, 1.0)),
    Fault("one vector of noise on all days", _shared(_day_before), only=_DAILY),
    Fault("one vector of noise on two days", _shared(_second_day_alone), only=_DAILY),
    Fault("one vector of noise, sign turned", _shared(_day_before, sign=-1), only=_DAILY),
    Fault("one vector of noise, shifted by 1", _shared(_day_before, shift=1), only=_DAILY),
    Fault("one vector of noise in two tables", _shared(_other_table)),
    Fault("one stream of unit noise a day, times each table's scale", _one_stream),
    Fault("one vector of noise on two days, by the other axis", _transposed, only=_DAILY),
    Fault(
        "noise of two days alike in part (correlation)",
        _alike_in_part,
        (0.3, 0.5, 0.7, 0.9),
        _DAILY,
    ),
    Fault("one vector of noise on two days, moved by so many cells", _moved, (1, 100), _DAILY),
    Fault(
        "half of the noise twice in each draw",
        _again(lambda z: np.resize(z[: z.size // 2 or 1], z.size)),
    ),
    Fault("neighbors share their noise", _again(lambda z: np.repeat(z[::2], 2)[: z.size])),
    Fault("neighbors with opposite noise", _again(opposite)),
    Fault("floating-point Laplace noise, rounded", _own(laplace), only=_LAPLACE),
    Fault("Laplace noise of the same variance, for Gaussian", _own(laplace), only=_GAUSSIAN),
    Fault("normal noise of the same variance, for Laplace", _own(normal), only=_LAPLACE),
    Fault(
        "normal noise of the same variance, rounded, for Gaussian noise",
        _own(normal),
        only=_GAUSSIAN,
    ),
    Fault("uniform noise of the same variance", _own(uniform)),
    Fault("one-sided noise of the same variance", _own(one_sided)),
    Fault("Student noise of the same variance", _own(student)),
    Fault("noise of two values", _own(two_points)),
    Fault("noise clipped (deviations)", _clipped, (3.0, 2.0, 1.0)),
    Fault("noise clipped from above alone (deviations)", _clipped_above, (2.0, 1.0)),
    Fault("numbers below zero set to 0", _typed(lambda x: np.maximum(x, 0))),
    Fault("numbers without their sign", _typed(np.abs)),
    Fault("numbers on a grid (step)", _grid, (2, 5, 10)),
    Fault("fractions", _typed(lambda x: x + 0.5)),
    Fault("negative zeros", _typed(lambda x: np.where(x == 0, -0.0, x))),
    Fault("numbers of 32 bits", _typed(lambda x: x.astype(np.int32))),
    Fault("a cell missing", _tables(lambda t: [replace(t[0], values=t[0].values[1:]), *t[1:]])),
    Fault("a draw missing", _tables(lambda t: t[1:])),
    Fault("a draw too many", _tables(lambda t: [*t, t[0]])),
    Fault("draws in another order", _tables(lambda t: [t[-1], *t[1:-1], t[0]])),
    Fault(
        "a draw that stands for another",
        _tables(lambda t: [t[0], replace(t[1], values=t[0].values), *t[2:]]),
    ),
)
"""Each is tried on each of its programmes, and at each size until it is caught."""
