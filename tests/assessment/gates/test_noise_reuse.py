"""No noise serves twice: any scale, layout, distance, order of axes, sign, week and programme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from assessment_releases import Case, Ints, case_of
from scipy.special import ndtri
from scipy.stats import binom

from turnstile.assessment.gates import noise_reuse
from turnstile.assessment.gates.noise_reuse import (
    alike_in_part,
    drawn_once,
    share_found,
    ties_limit,
)
from turnstile.assessment.gates.numbers import Judged, Totals, judged_release
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.programme.domain.public_domain import Segment
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Vector, vectors_of_sealed
from turnstile_lab.baselines import uniforms

LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
SLOTS, STOPS = 24, 40


def unit(family: NoiseFamily, label: int, cells: int) -> np.ndarray:
    """A stream of unit noise."""
    share = uniforms(f"unit {label}", cells)
    laplace = -np.sign(share - 0.5) * np.log1p(-2 * np.abs(share - 0.5))
    return np.asarray(ndtri(share) if family is GAUSSIAN else laplace)


def vector(
    family: NoiseFamily, scale: float, noise: np.ndarray, *, table: str = "t", counts: int = 3
) -> Vector:
    """A draw of noise of a scale on small counts, most of them 0."""
    share = uniforms(f"{table} {counts}", noise.size)
    exact = np.floor(np.where(share < 0.4, counts * share, 0)).astype(np.int64)
    event = DrawEvent(table, "count", family, Fraction(scale), (), ())
    return Vector(event, None, exact + np.rint(scale * noise).astype(np.int64))


def judged(*vectors: Vector, earlier: tuple[Vector, ...] = ()) -> Judged:
    """Vectors of two axes."""
    shape = {
        drawn_vector.event.table: (Segment("bus", (SLOTS, STOPS), 0),) for drawn_vector in vectors
    }
    return Judged(vectors, (), (earlier,) if earlier else (), shape)


def by_day(case: Case) -> list[Ints]:
    """The ordinary slip: one stream of unit noise a day, multiplied by each table's scale."""
    return [
        cells
        + np.rint(
            float(event.scale)
            * unit(event.noise, min(b.service_date for b in event.blocks).toordinal(), cells.size)
        ).astype(np.int64)
        for event, cells in zip(case.drawn.events, case.exact, strict=True)
    ]


@pytest.mark.parametrize("name", ["opal_trip", "opal", "itms", "opal_year"])
def test_one_stream_of_unit_noise_under_the_scales_of_all_tables_stops_a_release(name: str) -> None:
    case = case_of(name, slots=24, stops=20)
    assert drawn_once(judged_release(case.drawn)).passed
    gate_result = drawn_once(judged_release(case.with_vectors(by_day(case))))
    assert not gate_result.passed
    assert "noise serves twice" in gate_result.statement


def test_noise_of_one_seed_is_seen_many_weeks_later_and_what_is_not_compared_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Newer weeks used up what is compared, and of all it was said that none shares its noise."""
    case, labels = case_of("opal", slots=24, stops=20), [f"week {n}" for n in range(10)]
    earlier = [
        vectors_of_sealed(case_of("opal", slots=24, stops=20, label=n).drawn) for n in labels
    ]
    own = judged_release(case.drawn)
    assert "too many" not in drawn_once(own).statement
    cells = sum(pair.cells for pair in noise_reuse._moved(own))
    monkeypatch.setattr(noise_reuse, "CELLS_MOST", 2 * cells)
    other = case_of("opal", slots=24, stops=20, label=labels[-1])
    noise = [sealed - exact for sealed, exact in zip(other.honest, other.exact, strict=True)]
    again = [exact + z for exact, z in zip(case.exact, noise, strict=True)]
    assert not drawn_once(judged_release(case.with_vectors(again), earlier)).passed
    honest = drawn_once(judged_release(case.drawn, earlier))
    assert honest.passed
    assert "with those of other releases (10)" in honest.statement
    assert "pairs are too many to compare" in honest.statement


REUSED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as it was": lambda z: z,
    "moved": lambda z: np.roll(z, 17),
    "sign turned": np.negative,
    "sign turned and moved": lambda z: -np.roll(z, -5),
    "with its axes in the other order": lambda z: z.reshape(STOPS, SLOTS).T.ravel(),
}


@pytest.mark.parametrize("how", REUSED)
@pytest.mark.parametrize(("family", "scales"), [(GAUSSIAN, (10, 34)), (LAPLACE, (4, 9))])
def test_noise_is_found_again_however_it_lies(
    family: NoiseFamily, scales: tuple[int, int], how: str
) -> None:
    noise = unit(family, 1, SLOTS * STOPS)
    again = vector(family, scales[1], REUSED[how](noise), table="u", counts=9)
    assert not drawn_once(judged(vector(family, scales[0], noise), again)).passed
    fresh = vector(family, scales[1], unit(family, 2, noise.size), table="u", counts=9)
    assert drawn_once(judged(vector(family, scales[0], noise), fresh)).passed
    before = vector(family, scales[0], noise, table="u")
    assert not drawn_once(judged(again, earlier=(before,))).passed
    assert drawn_once(judged(fresh, earlier=(before,))).passed


def test_noise_that_serves_again_in_a_stretch_is_found() -> None:
    noise, other = (unit(GAUSSIAN, n, 20_000) for n in (1, 2))
    for cells, passed in ((800, False), (20, True)):
        mixed = np.where(np.arange(noise.size) < cells, noise, other)
        pair = vector(GAUSSIAN, 10, noise), vector(GAUSSIAN, 34, mixed, table="u")
        assert drawn_once(Judged(pair, ())).passed is passed


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("family", [LAPLACE, GAUSSIAN])
def test_scattered_cells_whose_noise_serves_again_under_the_same_scale_are_found(
    family: NoiseFamily, sign: int
) -> None:
    noise, other = (unit(family, n, 20_000) for n in (1, 2))
    scattered = uniforms("scattered", noise.size)
    for share, passed in ((0.05, False), (0.0, True)):
        mixed = np.where(scattered < share, sign * noise, other)
        first, again = (vector(family, 20, z, counts=0) for z in (noise, mixed))
        assert drawn_once(Judged((first, again), ())).passed is passed
        assert drawn_once(judged(again, earlier=(first,))).passed is passed


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("family", "scale"), [(LAPLACE, 1), (GAUSSIAN, 12)])
def test_equal_numbers_are_too_many_no_more_often_than_stated(
    family: NoiseFamily, scale: int, *, is_known: bool
) -> None:
    trials, alpha, cells = 400, 0.05, 200
    event = vector(family, scale, np.zeros(cells)).event
    most = ties_limit(event, cells, alpha, is_known=is_known)
    refused = 0
    for trial in range(trials):
        first, other = (
            vector(family, scale, unit(family, 5000 + 2 * trial + n, cells), counts=9).values
            for n in (0, 1)
        )
        refused += int(np.count_nonzero(first == (other if is_known else 0 * other))) >= most
    assert binom.sf(refused - 1, trials, alpha) > 1e-3


def test_noise_that_is_alike_in_part_is_found() -> None:
    noise, other = (unit(GAUSSIAN, n, 20_000) for n in (1, 2))
    for correlation, passed in ((0.6, False), (0.0, True)):
        mixed = correlation * noise + (1 - correlation**2) ** 0.5 * other
        pair = vector(GAUSSIAN, 10, noise), vector(GAUSSIAN, 34, mixed, table="u")
        assert drawn_once(Judged(pair, ())).passed is passed


def _mixed(case: Case, correlation: float) -> Drawn:
    """Let the last day's noise be alike in part to that of each other day."""
    noise, last = list(case.noise), {}
    for event, own in zip(case.drawn.events, noise, strict=True):
        last[event.label] = own
    vectors = []
    for event, exact, own in zip(case.drawn.events, case.exact, noise, strict=True):
        of = last[event.label]
        fresh = own if own is of else (1 - correlation**2) ** 0.5 * own + correlation * of
        vectors.append(exact + np.rint(fresh).astype(np.int64))
    return case.with_vectors(vectors)


@pytest.mark.some(1)
@pytest.mark.parametrize(("name", "least"), [("opal_trip", 0.3), ("opal", 0.3), ("opal", -0.3)])
def test_days_that_are_alike_in_part_are_found_in_totals_minus_parts(
    name: str, least: float
) -> None:
    case = case_of(name)
    test_days = drawn_once(judged_release(_mixed(case, least)))
    assert "and other days, in part" in test_days.statement
    assert not test_days.passed
    assert drawn_once(judged_release(case.drawn)).passed


def test_fresh_totals_are_alike_in_part_no_more_often_than_stated() -> None:
    trials, alpha, refused = 300, 0.05, 0
    for trial in range(trials):
        days = [
            Totals(f"on_time and on_time_location on {day}", unit(LAPLACE, n, 40), 2.0)
            for day, n in enumerate(range(10_000 + 7 * trial, 10_007 + 7 * trial))
        ]
        refused += bool(alike_in_part(days, alpha))
    assert binom.sf(refused - 1, trials, alpha) > 1e-3
    assert alike_in_part([replace(one, residuals=days[0].residuals) for one in days], alpha)


def test_a_week_of_another_programme_of_the_group_is_looked_at() -> None:
    case, other = case_of("opal", slots=24, stops=20), case_of("opal_year", slots=24, stops=20)
    again = case.with_vectors(by_day(case))
    week = vectors_of_sealed(other.with_vectors(by_day(other)))
    vectors = [  # one day's noise is that of the other programme, under another scale
        mine if event.blocks[0].service_date.isoweekday() == 1 else honest
        for event, mine, honest in zip(
            case.drawn.events, vectors_of_sealed(again), vectors_of_sealed(case.drawn), strict=True
        )
    ]
    assert not drawn_once(Judged(tuple(vectors), (), (week,))).passed
    assert drawn_once(judged_release(case.drawn, [week])).passed


@pytest.mark.some(2)
@pytest.mark.parametrize("counts", [0, 9])
@pytest.mark.parametrize(("family", "scale"), [(LAPLACE, 1), (LAPLACE, 3), (GAUSSIAN, 12)])
def test_fresh_noise_is_refused_no_more_often_than_stated(
    family: NoiseFamily, scale: int, counts: int
) -> None:
    trials, alpha = 150, 0.05
    refused = 0
    for trial in range(trials):
        pair = [
            vector(family, scale, unit(family, 1000 + 3 * trial + n, 60), counts=counts)
            for n in range(2)
        ]
        gate_result = drawn_once(Judged(tuple(pair), ()), alpha)
        refused += not gate_result.passed
    assert binom.sf(refused - 1, trials, alpha) > 1e-3


def test_the_share_that_is_stated_is_found_and_a_third_of_it_is_not(release: Drawn) -> None:
    event, cells = replace(release.events[0], noise=GAUSSIAN, scale=Fraction(20)), 4_000
    share = share_found(event, cells, alpha=1e-9 / 8) + 3 / cells**0.5
    assert 0.05 < share < 0.2
    refusals = []
    for trial in range(30):
        noise, other = (np.rint(20 * unit(GAUSSIAN, 100 * trial + n, cells)) for n in (1, 2))
        for part in (share, share / 3):
            mixed = np.where(np.arange(cells) < part * cells, noise, other).astype(np.int64)
            mixed = mixed[np.argsort(uniforms("order", cells))]
            noise = noise[np.argsort(uniforms("order", cells))]
            wider = replace(event, scale=2 * event.scale)  # no number is equal for that
            pair = Vector(event, None, noise.astype(np.int64)), Vector(wider, None, 2 * mixed)
            refusals.append(not drawn_once(Judged(pair, ()), 1e-9 * 2).passed)
    assert sum(refusals[::2]) >= 27
    assert sum(refusals[1::2]) <= 1
