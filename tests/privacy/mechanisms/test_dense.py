"""Dense draws: the event decides, OpenDP draws, and its own map must agree with the plan."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from turnstile.errors import IntegrityError
from turnstile.privacy.accounts import Loss, loss_of
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms import dense
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import packed, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit

LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN


def event(
    noise: NoiseFamily = LAPLACE, scale: str = "2", threshold: int | None = None
) -> DrawEvent:
    units = (
        (ProtectionUnit.TRIP, records_at_most(1)),
        (ProtectionUnit.CARD_DAY, records_at_most(7)),
        (ProtectionUnit.CARD_WEEK, packed(5, 1)),
        (ProtectionUnit.CARD, None),
    )
    blocks = (Block(date(2016, 7, 25), "bus"),)
    return DrawEvent("t", "count", noise, Fraction(scale), blocks, units, threshold=threshold)


@pytest.mark.parametrize("noise", NoiseFamily)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_a_table_keeps_its_shape_and_stays_integer(
    noise: NoiseFamily, shape: tuple[int, ...]
) -> None:
    noisy = dense.draw(event(noise), np.zeros(shape, dtype=np.int64))
    assert noisy.shape == shape
    assert noisy.dtype == np.int64


def test_every_cell_gets_noise_the_empty_ones_too() -> None:
    noisy = dense.draw(event(scale="100"), np.zeros(2000, dtype=np.int64))
    assert np.mean(noisy == 0) < 0.03


def test_two_draws_of_the_same_table_differ() -> None:
    zeros = np.zeros(200, dtype=np.int64)
    assert (dense.draw(event(), zeros) != dense.draw(event(), zeros)).any()


@pytest.mark.parametrize("noise", NoiseFamily)
@pytest.mark.parametrize("scale", ["1/2", "2", "10.25", "4567.125"])
def test_the_plan_and_the_map_of_the_mechanism_agree(noise: NoiseFamily, scale: str) -> None:
    dense.agree(event(noise, scale))


@pytest.mark.parametrize("threshold", [2, 5, 9, 35])
def test_the_two_figures_of_a_threshold_agree(threshold: int) -> None:
    dense.agree(event(threshold=threshold))


@pytest.mark.parametrize("share", [Fraction(1, 2), 1 - Fraction(1, 10**6)])
def test_a_plan_that_charges_less_than_the_map_stops_the_draw(
    monkeypatch: pytest.MonkeyPatch, share: Fraction
) -> None:
    def less(drawn: DrawEvent, sensitivity: object) -> Loss:
        loss = loss_of(drawn, sensitivity)  # type: ignore[arg-type]
        return Loss(loss.epsilon * share, loss.rho, loss.delta)  # type: ignore[operator]

    monkeypatch.setattr(dense, "loss_of", less)
    with pytest.raises(IntegrityError, match="nothing was drawn"):
        dense.agree(event())


@pytest.mark.parametrize("feature", ["idealized-numerics", "honest-but-curious"])
def test_a_feature_that_voids_the_proofs_stops_the_draw(feature: str) -> None:
    import opendp.prelude as dp

    dp.enable_features(feature)
    try:
        with pytest.raises(IntegrityError, match="void"):
            dense.draw(event(), np.zeros(1, dtype=np.int64))
    finally:
        dp.disable_features(feature)


def test_floats_and_thresholded_events_are_refused() -> None:
    with pytest.raises(TypeError, match="int64"):
        dense.draw(event(), np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stability_histogram"):
        dense.draw(event(threshold=9), np.zeros(3, dtype=np.int64))


def test_a_cell_near_the_end_of_the_integers_is_refused_without_telling_its_value() -> None:
    with pytest.raises(ValueError, match="too large") as refused:
        dense.draw(event(), np.array([0, 2**62 + 1], dtype=np.int64))
    with pytest.raises(ValueError, match="too large"):
        dense.draw(event(), np.array([-(2**62) - 1, 0], dtype=np.int64))
    assert "4611" not in str(refused.value)
