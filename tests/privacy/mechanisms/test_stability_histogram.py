"""Thresholded histograms: the source's calibration, ours, and what they release."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.privacy.accounts import loss_of
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms import stability_histogram as sbh
from turnstile.privacy.mechanisms import thresholds
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import packed, records_at_most
from turnstile.privacy.tails import stability_delta
from turnstile.privacy.units import Block, ProtectionUnit

SOURCE_DELTA = Fraction(1, 8_000_000)
ONE = records_at_most(1)


def event(scale: Fraction, threshold: int | None) -> DrawEvent:
    blocks = (Block(date(2016, 7, 25), "bus"),)
    units = ((ProtectionUnit.TRIP, ONE),)
    family = NoiseFamily.DISCRETE_LAPLACE
    return DrawEvent("on_time", "count", family, scale, blocks, units, threshold=threshold)


@pytest.mark.parametrize(("epsilon", "stated", "cut"), [(1, 34.18, 35), (2, 17.59, 18)])
def test_the_source_thresholds_are_reproduced(epsilon: int, stated: float, cut: int) -> None:
    assert thresholds.source_threshold(Fraction(epsilon), SOURCE_DELTA) == pytest.approx(
        stated, abs=0.005
    )
    parameters = thresholds.source_parameters(Fraction(epsilon), SOURCE_DELTA)
    assert (parameters.scale, parameters.threshold) == (Fraction(2, epsilon), cut)


def test_the_source_variant_is_accounted_as_the_integer_noise_that_is_drawn() -> None:
    total, deltas = Fraction(0), Fraction(0)
    for epsilon in (1, 1, 1, 1, 2, 2):
        parameters = thresholds.source_parameters(Fraction(epsilon), SOURCE_DELTA)
        loss = loss_of(event(parameters.scale, parameters.threshold), ONE)
        total += loss.epsilon or 0
        deltas += loss.delta
        exact = math.exp(-(parameters.threshold - 1) / float(parameters.scale))
        assert float(loss.delta) == pytest.approx(
            exact / (1 + math.exp(-1 / float(parameters.scale)))
        )
        assert loss.delta < SOURCE_DELTA
    assert total == 4
    assert deltas < Fraction(75, 10**8)


@pytest.mark.parametrize(("epsilon", "threshold"), [("1/2", 32), ("1", 17), ("2", 9)])
def test_our_thresholds_are_the_smallest_that_meet_the_delta(epsilon: str, threshold: int) -> None:
    parameters = thresholds.tight_parameters(Fraction(epsilon), SOURCE_DELTA, ONE)
    assert (parameters.scale, parameters.threshold) == (1 / Fraction(epsilon), threshold)
    b = float(parameters.scale)
    closed = 1 + math.ceil(b * math.log(1 / (float(SOURCE_DELTA) * (1 + math.exp(-1 / b)))))
    assert threshold == closed


@given(
    st.sampled_from(["1/4", "1", "3"]),
    st.sampled_from([Fraction(1, 100), Fraction(1, 10**7)]),
    st.integers(1, 8),
    st.sampled_from([records_at_most, lambda most: packed(most, 1)]),
)
def test_a_unit_of_several_records_stays_within_epsilon_and_delta(
    epsilon: str, delta: Fraction, bound: int, unit: object
) -> None:
    sensitivity = unit(bound)  # type: ignore[operator]
    parameters = thresholds.tight_parameters(Fraction(epsilon), delta, sensitivity)
    loss = loss_of(event(parameters.scale, parameters.threshold), sensitivity)
    assert loss.epsilon is not None
    assert loss.epsilon <= Fraction(epsilon)
    assert loss.delta <= delta
    if parameters.threshold > sensitivity.linf + 1:
        lower = stability_delta(
            parameters.scale, parameters.threshold - 1, l1=sensitivity.l1, linf=sensitivity.linf
        )
        assert lower > delta


def test_empty_cells_are_never_released_and_nothing_below_the_threshold_is() -> None:
    # One of 2000 cells of 40 falls below the threshold with a chance of 1e-4, of 100 with 1e-17.
    exact = np.array([0, 1, 5, 9, 10, 100] * 2000, dtype=np.int64)
    released = sbh.draw(event(Fraction(2), 9), exact)
    assert not released[exact == 0].any()
    assert ((released == 0) | (released >= 9)).all()
    assert (released[exact == 100] > 0).all()
    assert (released[exact == 9] == 9).any()  # the threshold itself is released


def test_negative_counts_and_dense_events_are_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        sbh.draw(event(Fraction(2), 9), np.array([-1], dtype=np.int64))
    with pytest.raises(ValueError, match="dense"):
        sbh.draw(event(Fraction(2), None), np.array([1], dtype=np.int64))
