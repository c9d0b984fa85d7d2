"""Gates: an honest release passes all; for each gate there is a release that it stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from assessment_releases import case_of

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity, PipelineCopy
from turnstile.assessment.audits.release_audit import audit_release
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.noise_scale import nested_scale
from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.registry import gate_results
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.units import ProtectionUnit
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact
from turnstile_lab.baselines import discrete_laplace

Build = Callable[..., Drawn]
Spoil = Callable[[np.ndarray], np.ndarray]


def failed(drawn: Drawn) -> set[str]:
    """Names of the gates that stop a release, without the audit (it has its own test)."""
    return {r.gate for r in gate_results(drawn, None, []) if not r.passed} - {"one_run_audit"}


def test_an_honest_release_passes_every_gate(release: Drawn) -> None:
    results = gate_results(release)
    assert [result.gate for result in results if not result.passed] == []
    assert {result.gate for result in results} == {
        "support",
        "noised_zeros",
        "one_sealed",
        "drawn_once",
        "integers",
        "declared_scale",
        "geometric_below_zero",
        "noise_kind",
        "declared_sensitivity",
        "one_run_audit",
        "sampler",
    }


def test_a_missing_cell_and_a_missing_draw_stop_a_release(release: Drawn) -> None:
    tables = release.artefact.tables
    short = replace(tables[0], values=tables[0].values[:-1])
    assert "support" in failed(replace(release, artefact=Artefact((short, *tables[1:]))))
    assert "support" in failed(replace(release, artefact=Artefact(tables[1:])))


def test_zeros_left_alone_stop_a_release(drawn_with: Build) -> None:
    def lazy(label: str, exact: np.ndarray, scale: float, _table: str) -> np.ndarray:
        return np.where(exact > 0, exact + discrete_laplace(label, exact.size, scale), 0)

    assert "noised_zeros" in failed(drawn_with(lazy))


def test_a_thresholded_table_must_not_hold_numbers_below_its_threshold(release: Drawn) -> None:
    events = tuple(
        replace(event, threshold=5, delta=Fraction(1, 20)) for event in release.plan.events
    )
    plan = replace(release.plan, events=events)
    assert "noised_zeros" in failed(replace(release, plan=plan))
    tables = tuple(
        replace(table, values=np.where(table.values >= 5, table.values, 0))
        for table in release.artefact.tables
    )
    threshold = replace(release, plan=plan, artefact=Artefact(tables))
    assert not failed(threshold) & {"noised_zeros", "declared_scale", "geometric_below_zero"}


def test_an_unsealed_key_stops_a_release(unsealed: Drawn) -> None:
    assert "one_sealed" in failed(unsealed)


def test_a_second_sealed_byte_string_stops_a_release(release: Drawn) -> None:
    digest = str(release.attempt.artefact_digest)
    for digests, passed in (
        ((digest,), True),
        ((digest, digest), True),
        ((digest, "4" * 64), False),
    ):
        results = {r.gate: r for r in gate_results(release, Evidence(sealed_digests=digests), [])}
        assert results["one_sealed"].passed is passed
    assert "2 distinct sealed byte strings" in results["one_sealed"].statement


def test_a_unit_that_moves_a_table_farther_than_declared_stops_a_release(release: Drawn) -> None:
    label = release.events[0].label
    for l1, passed in ((2, True), (3, False)):
        copy = PipelineCopy(
            observed={(label, ProtectionUnit.CARD_DAY): ObservedSensitivity(l1, l1)}
        )
        results = {r.gate: r for r in gate_results(release, Evidence(copy=copy), [])}
        assert results["declared_sensitivity"].passed is passed
    assert "3 in all, 2 are declared" in results["declared_sensitivity"].statement


def test_the_same_noise_on_two_days_stops_a_release(drawn_with: Build) -> None:
    def reused(_label: str, exact: np.ndarray, scale: float, table: str) -> np.ndarray:
        return exact + discrete_laplace(table, exact.size, scale)

    assert "drawn_once" in failed(drawn_with(reused))


@pytest.mark.parametrize(("filled", "passed"), [(1, True), (90, False)])
def test_released_cells_and_not_empty_ones_find_a_thresholded_draw_that_serves_twice(
    release: Drawn, filled: int, *, passed: bool
) -> None:
    """Two days may well have one released cell alike; ninety are one draw used twice, on a grid."""
    events = tuple(replace(e, threshold=5, delta=Fraction(1, 20)) for e in release.plan.events)
    vectors = {
        e.label: np.zeros_like(t.values)
        for e, t in zip(events, release.artefact.tables, strict=True)
    }
    for values in vectors.values():
        values[:filled] = 7
    tables = tuple(
        replace(t, values=vectors[e.label])
        for e, t in zip(events, release.artefact.tables, strict=True)
    )
    threshold = replace(
        release, plan=replace(release.plan, events=events), artefact=Artefact(tables)
    )
    stopped_by = failed(threshold) & {"drawn_once", "integers"}
    assert stopped_by == (set() if passed else {"drawn_once", "integers"})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda first: np.roll(first, 3),
        lambda first: -np.roll(first, -7),
    ],
    ids=["as it was", "with its sign turned"],
)
def test_noise_that_serves_again_at_other_cells_stops_a_release(spoil: Spoil) -> None:
    case = case_of("opal_year", slots=48, stops=24)
    noise = [noisy - exact for noisy, exact in zip(case.honest, case.exact, strict=True)]
    assert "drawn_once" not in failed(case.drawn)
    noise[1] = spoil(noise[0])
    moved = [exact + deviates for exact, deviates in zip(case.exact, noise, strict=True)]
    assert "drawn_once" in failed(case.with_vectors(moved))


def test_neighbors_that_share_their_noise_stop_a_release_of_seven_days() -> None:
    case = case_of("opal_year", slots=48, stops=24)
    shared = [
        exact + np.repeat((noisy - exact)[::2], 2)
        for noisy, exact in zip(case.honest, case.exact, strict=True)
    ]
    assert "drawn_once" in failed(case.with_vectors(shared))


@pytest.mark.long
def test_half_of_the_noise_on_one_day_stops_a_release_of_seven() -> None:
    case = case_of("opal_year")
    assert failed(case.drawn) == set()
    noise = case.honest[0] - case.exact[0]
    half = np.rint(noise / 2).astype(np.int64)
    assert "noise_kind" in failed(case.with_vectors([case.exact[0] + half, *case.honest[1:]]))


def test_noise_that_is_not_centered_stops_a_release() -> None:
    case = case_of("opal_trip")
    numbers = judged_release(case.drawn)
    off = [
        replace(total, sum_of_differences=total.sum_of_differences + 300)
        for total in numbers.totals
    ]
    assert nested_scale(numbers).passed
    gate_result = nested_scale(
        replace(numbers, totals=tuple(off))
    )  # 0.08 a cell, a sixth of a deviation
    assert "not centered" in gate_result.statement
    assert not gate_result.passed


def test_a_draw_that_stands_twice_stops_a_release(release: Drawn) -> None:
    tables = release.artefact.tables
    copied = replace(tables[1], values=tables[0].values)
    twice = Artefact((tables[0], copied, *tables[2:]))
    assert "drawn_once" in failed(replace(release, artefact=twice))
    longer = Artefact((*tables, tables[0]))
    assert "support" in failed(replace(release, artefact=longer))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda values: values.astype(np.float64) + 0.5,
        lambda values: np.where(values == 0, -0.0, values.astype(np.float64)),
        lambda values: values.astype(np.int32),
        lambda values: 2 * (values // 2),
    ],
    ids=["fractions", "negative zero", "32 bits", "even numbers only"],
)
def test_numbers_that_are_not_64_bit_integers_stop_a_release(
    release: Drawn, spoil: Callable[[np.ndarray], np.ndarray]
) -> None:
    tables = tuple(replace(t, values=spoil(t.values)) for t in release.artefact.tables)
    assert "integers" in failed(replace(release, artefact=Artefact(tables)))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_noise_of_another_scale_stops_a_release(drawn_with: Build, factor: float) -> None:
    def scaled(label: str, exact: np.ndarray, scale: float, _table: str) -> np.ndarray:
        return exact + discrete_laplace(label, exact.size, factor * scale)

    stopped = failed(drawn_with(scaled))
    assert {"declared_scale", "geometric_below_zero", "noise_kind"} <= stopped


def test_one_table_with_too_little_noise_stops_a_release(drawn_with: Build) -> None:
    def partly(label: str, exact: np.ndarray, scale: float, table: str) -> np.ndarray:
        return exact + discrete_laplace(
            label, exact.size, scale / (2 if table == "on_time_location" else 1)
        )

    assert "geometric_below_zero" in failed(drawn_with(partly))


def test_a_refuted_claim_stops_a_release(release: Drawn) -> None:
    unit = release.programme.mechanism.unit
    halved = PipelineCopy(draw=lambda e, x: (draw(replace(e, scale=e.scale / 2), x),))
    results = gate_results(release, None, audit_release(release.events, unit, copy=halved))
    stopped = [result for result in results if not result.passed]
    assert [result.gate for result in stopped] == ["one_run_audit", "sampler"]
    assert "refuted" in stopped[0].statement
    assert "does not fit" in stopped[1].statement  # the noise of the same canaries


def test_a_release_without_any_audit_is_stopped(release: Drawn) -> None:
    results = {result.gate: result.passed for result in gate_results(release, None, [])}
    assert not results["one_run_audit"]
