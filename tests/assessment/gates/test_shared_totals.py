"""Coarse tables of the same counts: their totals differ by noise, no less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from assessment_releases import Case, case_of

from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.shared_totals import shared_totals
from turnstile.assessment.package.numbers import judged_package, layouts_of_package
from turnstile.estimates.release_tables import measurements
from turnstile.publishing.package_reader import Package
from turnstile.release.drawn import Drawn


@pytest.fixture(scope="module", params=["opal", "opal_trip"])
def case(request: pytest.FixtureRequest) -> Case:
    """A small release of four modes, with Gaussian and with Laplace noise."""
    return case_of(request.param, slots=12, stops=32)


def with_coarse_noise(case: Case, times: float, days: int) -> Drawn:
    """The release with so much of the noise of its coarse tables on the first days."""
    finest = max(cells.size for cells in case.exact)
    dates = sorted({block.service_date for event in case.drawn.events for block in event.blocks})
    chosen = [
        cells.size < finest and min(b.service_date for b in event.blocks) in dates[:days]
        for event, cells in zip(case.drawn.events, case.exact, strict=True)
    ]
    vectors = zip(case.exact, case.honest, chosen, strict=True)
    return case.with_vectors(
        [e + np.rint(times * (h - e)).astype(np.int64) if own else h for e, h, own in vectors]
    )


def test_an_honest_release_passes(case: Case) -> None:
    found = shared_totals(judged_release(case.drawn))
    assert found.passed
    assert found.is_applicable


@pytest.mark.parametrize(("times", "days"), [(0.0, 1), (0.25, 7)])
def test_coarse_tables_with_too_little_noise_are_stopped(
    case: Case, times: float, days: int
) -> None:
    spoiled = with_coarse_noise(case, times, days)
    assert not shared_totals(judged_release(spoiled)).passed
    package = Package(spoiled.programme, spoiled.events, measurements(spoiled))  # type: ignore[arg-type]
    assert not shared_totals(judged_package(package)).passed


def test_a_programme_without_two_sums_of_one_table_is_not_judged() -> None:
    drawn = case_of("itms", slots=12, stops=6).drawn
    assert not shared_totals(judged_release(drawn)).is_applicable


def test_a_release_and_its_package_show_the_same_differences(case: Case) -> None:
    package = Package(case.drawn.programme, case.drawn.events, measurements(case.drawn))  # type: ignore[arg-type]
    one, other = (
        np.sort(np.concatenate([own.residuals for own in numbers.shared]))
        for numbers in (judged_release(case.drawn), judged_package(package))
    )
    np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("rows", [slice(1, None), slice(None, None, -1)], ids=["lacking", "turned"])
def test_a_table_without_some_of_its_rows_or_with_others_first_has_no_totals(
    case: Case, rows: slice
) -> None:
    tables = measurements(case.drawn)
    whole = layouts_of_package(Package(Path(), case.drawn.events, tables))
    finest = max(tables, key=lambda name: len(tables[name]))
    tables[finest] = tables[finest].take(list(range(len(tables[finest])))[rows])
    spoiled = layouts_of_package(Package(Path(), case.drawn.events, tables))
    assert whole.keys() - spoiled.keys() == {finest}
