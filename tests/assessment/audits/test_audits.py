"""Audits: near the claim on a correct pipeline, above it on every broken one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from pair_audit import delta_at_least, epsilon_at_least, pair_bound

from turnstile.assessment.audits import release_audit
from turnstile.assessment.audits.one_run import audit, lower_bound
from turnstile.assessment.audits.pipeline_copy import (
    ObservedSensitivity,
    PipelineCopy,
    draw_once,
    run_canaries,
)
from turnstile.assessment.audits.release_audit import DrawAudit, audit_release
from turnstile.assessment.audits.sampler import DRAWS, log_moments, mean_limits, misfit, misfit_of
from turnstile.assessment.gates.pipeline_copy import sampler
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise import Term, pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import binomial_at_least
from turnstile.privacy.units import ProtectionUnit
from turnstile_lab.baselines import discrete_laplace, uniforms

_UNIT = ProtectionUnit.CARD_DAY
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
# At the release's own 20,000 canaries the bound at 95 % of a correct epsilon 1 falls below 0.9 with
# a chance of 1e-5; at 50,000 of 1e-15 (right guesses are binomial).
MANY_CANARIES = 50_000


@pytest.fixture
def many_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many canaries that a bound within ten percent of the claim never fails by chance."""
    monkeypatch.setattr(release_audit, "CANARIES", MANY_CANARIES)


def event(scale: str, records: int = 1, noise: NoiseFamily = LAPLACE) -> DrawEvent:
    """A draw in which the unit has so many records, all in one cell at worst."""
    sensitivity = Sensitivity(l0=records, l1=records, l2_squared=records**2, linf=records)
    return DrawEvent("t", "count", noise, Fraction(scale), (), ((_UNIT, sensitivity),))


def audited(draw_event: DrawEvent, copy: PipelineCopy | None = None) -> DrawAudit:
    """Audit one draw."""
    return audit_release([draw_event], _UNIT, copy=copy)[0]


def farther(times: int) -> Callable[[DrawEvent], PipelineCopy]:
    """Return a pipeline in which every unit moves a draw so many times as far as is declared."""
    return lambda draw_event: PipelineCopy(
        observed={
            (draw_event.label, unit): ObservedSensitivity(
                times * sensitivity.l1, times**2 * sensitivity.l2_squared
            )
            for unit, sensitivity in draw_event.sensitivities
            if sensitivity is not None
        }
    )


CLAIMS = [event("1"), event("1/2"), event("2", records=2), event("1", records=2)]
FAULTS: dict[str, Callable[[DrawEvent], PipelineCopy]] = {
    "halved scale": lambda _: PipelineCopy(
        draw=lambda e, x: (draw(replace(e, scale=e.scale / 2), x),)
    ),
    "wrong sensitivity": farther(2),
    "skipped bound": farther(3),
    "drawn twice": lambda _: PipelineCopy(draw=lambda e, x: (draw(e, x), draw(e, x))),
}


@pytest.mark.usefixtures("many_canaries")
@pytest.mark.parametrize(
    "draw_event", CLAIMS, ids=lambda e: f"b={e.scale}, k={e.sensitivities[0][1].l1}"
)
def test_a_correct_pipeline_is_measured_within_ten_percent_and_never_refuted(
    draw_event: DrawEvent,
) -> None:
    draw_audit = audited(draw_event)
    assert not draw_audit.is_refuted
    assert draw_audit.bound.epsilon >= 0.9 * draw_audit.claimed


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("draw_event", CLAIMS[:2], ids=["epsilon 1", "epsilon 2"])
def test_every_injected_fault_is_refuted(draw_event: DrawEvent, fault: str) -> None:
    draw_audit = audited(draw_event, FAULTS[fault](draw_event))
    assert draw_audit.is_refuted
    assert "refuted" in draw_audit.statement
    assert draw_audit.bound.epsilon > draw_audit.claimed


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_a_gaussian_are_refuted_too(fault: str) -> None:
    draw_event = event("5", records=5, noise=GAUSSIAN)
    assert not audited(draw_event).is_refuted
    assert audited(draw_event, FAULTS[fault](draw_event)).is_refuted


@pytest.mark.usefixtures("many_canaries")
@pytest.mark.parametrize(
    "draw_event", [event("40", records=3, noise=GAUSSIAN), event("12", records=2)]
)
def test_small_claims_are_measured_on_groups(draw_event: DrawEvent) -> None:
    draw_audit = audited(draw_event)
    assert not draw_audit.is_refuted
    assert 0.9 * draw_audit.claimed <= draw_audit.bound.epsilon
    assert audited(draw_event, FAULTS["halved scale"](draw_event)).is_refuted


@pytest.mark.usefixtures("many_canaries")
def test_a_thresholded_draw_is_audited_above_its_threshold() -> None:
    draw_event = replace(event("1"), threshold=17, delta=Fraction(1, 10**6))
    assert not audited(draw_event).is_refuted
    assert audited(draw_event).bound.epsilon > 0.9
    assert audited(draw_event, FAULTS["halved scale"](draw_event)).is_refuted


def test_further_units_are_audited_and_unbounded_ones_left_out() -> None:
    draw_event = event("2", records=2)
    card = (ProtectionUnit.CARD, None)
    both = replace(draw_event, sensitivities=(*draw_event.sensitivities, card))
    audits = audit_release([both], _UNIT, others=[ProtectionUnit.CARD])
    assert [draw_audit.unit for draw_audit in audits] == [_UNIT]


def test_the_bound_holds_as_often_as_it_says() -> None:
    """Guesses at the limit of epsilon 1 pass the bound at most in 5 % of the runs."""
    share = float(np.exp(1) / (1 + np.exp(1)))
    least = next(v for v in range(20_000) if binomial_at_least(v, 20_000, share) < 0.05)
    assert lower_bound(20_000, least, error=0.05) == pytest.approx(1, abs=0.01)
    assert least / 20_000 == pytest.approx(share, abs=0.01)
    assert lower_bound(20_000, least - 200, error=0.05) < 1 < lower_bound(20_000, least, error=0.05)
    assert lower_bound(1_000, 500, error=0.05) == lower_bound(10, 0, error=0.05) == 0


def test_scores_that_know_nothing_give_nothing() -> None:
    run = run_canaries(
        PipelineCopy(), event("1"), _UNIT, event("1").sensitivities[0][1], canaries=4_000
    )
    assert audit(run.scores, run.is_in, confidence=0.95).epsilon > 0.5
    shuffled = np.roll(run.scores, 1)
    assert audit(shuffled, run.is_in, confidence=1 - 1e-9).epsilon < 0.1


@pytest.mark.some(1)
@pytest.mark.parametrize(("scale", "change"), [("1", 1), ("2", 1), ("6", 3)])
def test_pair_audits_reach_the_claim_and_catch_a_halved_scale(scale: str, change: int) -> None:
    # At 40,000 runs the bound of scale 6 is below 0.7 of the claim with a chance of 2e-9; at 50,000
    # of 2e-14.
    runs, draw_event = 50_000, event(scale)
    claim = change / float(Fraction(scale))
    bound = pair_bound(lambda x: draw(draw_event, x), change=change, runs=runs, confidence=1 - 1e-9)
    assert 0.7 * claim < bound <= claim
    halved = replace(draw_event, scale=draw_event.scale / 2)
    caught = pair_bound(lambda x: draw(halved, x), change=change, runs=runs, confidence=1 - 1e-9)
    assert caught > claim


def test_the_chance_that_a_lone_record_shows_bounds_delta_from_below() -> None:
    draw_event = replace(event("1"), threshold=5, delta=Fraction(1, 20))
    # At 100,000 draws the bound is below 0.8 of delta with a chance of 3e-2; at 300,000 of 5e-14.
    runs = 300_000
    released = int((draw(draw_event, np.ones(runs, dtype=np.int64)) > 0).sum())
    exact = float(np.exp(-4) / (1 + np.exp(-1)))
    assert 0.8 * exact < delta_at_least(released, runs, confidence=1 - 1e-9) <= exact
    assert epsilon_at_least(5, 5, 10, confidence=0.95) == 0


def made_up(draw_event: DrawEvent, exact: np.ndarray) -> np.ndarray:
    """Noise of the right distribution that is no production sampler's, for controls."""
    return exact + discrete_laplace("sampler", exact.size, float(draw_event.scale))


BROKEN: dict[str, Callable[[DrawEvent, np.ndarray], np.ndarray]] = {
    "5 % too small": lambda e, x: made_up(replace(e, scale=e.scale * Fraction(243, 256)), x),
    "shifted": lambda e, x: made_up(e, x) + 1,
    "even numbers": lambda e, x: 2 * (made_up(e, x) // 2),
    "each used twice": lambda e, x: np.repeat(made_up(e, x[::2]), 2),
}


def test_the_production_sampler_fits_and_broken_ones_do_not() -> None:
    draw_event = event("4")

    def found(by: Callable[[DrawEvent, np.ndarray], np.ndarray]) -> str | None:
        return misfit(draw_event, lambda e, x: (by(e, x),), alpha=1e-9, draws=100_000)

    assert found(draw) is None
    assert found(made_up) is None
    for name, broken in BROKEN.items():
        assert found(broken) is not None, name


def cut(noise: np.ndarray, deviations: float, deviation: float) -> np.ndarray:
    """Noise without its tails: what lies in them is set to their beginning."""
    most = round(deviations * deviation)
    return np.clip(noise, -most, most)


def test_many_draws_that_were_wrong_stop_a_release_whether_an_audit_drew_that_noise_or_not() -> (
    None
):
    draw_event = event("40")
    misfits = {(draw_event.noise, draw_event.scale): "its mean is not as declared"}
    assert not sampler([draw_event], PipelineCopy(misfits=misfits)).passed
    assert sampler([draw_event], PipelineCopy(misfits=dict.fromkeys(misfits))).passed
    audits = audit_release([draw_event], _UNIT)
    assert not sampler([draw_event], PipelineCopy(misfits=misfits), audits).passed


FINE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cut at 4 deviations": lambda z: cut(z, 4.0, 40.1875),  # at 160.75, rounded: at 161
    "cut at 3 deviations": lambda z: cut(z, 3.0, 40.1875),
    "1 % too small": lambda z: np.rint(0.99 * z).astype(np.int64),
    "a hundredth of a deviation too high": lambda z: z + (np.arange(z.size) % 5 < 2),
}


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_very_many_draws_show_fine_faults_and_few_do_not(noise: NoiseFamily) -> None:
    draw_event = replace(event("643/16"), noise=noise)
    term = Term(noise, 40.1875)
    values, chances = pmf(term, reach=1_600)
    picked = np.searchsorted(np.cumsum(chances), uniforms(f"fine {noise}", 2**20))
    right = values[picked.clip(0, values.size - 1)]
    assert misfit_of(right, draw_event, alpha=1e-9) is None
    if noise is LAPLACE:
        return  # its tails are heavier: whatever is cut there shows in a few draws
    for name, spoil in FINE.items():
        assert misfit_of(spoil(right), draw_event, alpha=1e-9) is not None, name
    assert misfit_of(cut(right[:DRAWS], 4.0, 40.1875), draw_event, alpha=1e-9) is None


@pytest.mark.long
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_very_many_draws_of_the_product_fit(noise: NoiseFamily) -> None:
    draw_event = replace(event("34"), noise=noise)
    assert misfit(draw_event, draw_once, alpha=1e-9, draws=2**20) is None


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_a_mean_leaves_its_limits_no_more_often_than_stated(noise: NoiseFamily) -> None:
    values, chances = pmf(Term(noise, 6.0), reach=240)
    deviation = float(np.sqrt(values.astype(float) ** 2 @ chances))
    low, high = mean_limits(log_moments(values / deviation, chances), 500, 0.05)
    drawn = np.searchsorted(np.cumsum(chances), uniforms(f"means {noise}", 500 * 1_000))
    means = values[drawn.clip(0, values.size - 1)].reshape(1_000, 500).mean(axis=1) / deviation
    assert 0 < int(np.sum((means < low) | (means > high))) <= 50
