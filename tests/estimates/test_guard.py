"""The guard gives back what is plainly there and next to nothing of noise."""

from __future__ import annotations

import numpy as np
import pytest

from turnstile.estimates.fitting.fission import public_normals
from turnstile.estimates.fitting.guard import guarded

SHAPE = (40, 7, 96)
DEVIATION = 10.0


def test_a_closed_station_and_an_event_of_two_hours_are_given_back() -> None:
    rates = np.full(SHAPE, 12.0)
    truth = rates.copy()
    truth[3] = 0
    truth[5, 2, 41:49] += 40
    drawn = truth + DEVIATION * public_normals("guard", SHAPE)
    estimate = guarded(drawn, rates, DEVIATION**2)
    assert abs(estimate[3].mean()) < 2
    assert abs(estimate[5, 2, 41:49].mean() - 52) < 12


def test_noise_alone_gives_back_almost_nothing() -> None:
    rates = np.full(SHAPE, 12.0)
    estimate = guarded(rates + DEVIATION * public_normals("noise", SHAPE), rates, DEVIATION**2)
    assert np.mean(estimate != rates) < 0.01


def test_an_event_below_the_limit_is_not_given_back() -> None:
    rates = np.full(SHAPE, 12.0)
    drawn = rates.copy()
    drawn[5, 2, 41] += 40  # one quarter of an hour at less than 4 standard deviations
    assert (guarded(drawn, rates, DEVIATION**2) == rates).all()


@pytest.mark.parametrize("deviation", [1e-3, 1e-9, 1e-160])
def test_with_practically_no_noise_what_was_drawn_is_given_back(deviation: float) -> None:
    rates = np.zeros(SHAPE)
    rates[:, :, :20] = 5000  # and nothing runs after these
    assert (guarded(rates, rates, deviation**2) == rates).all()
    drawn = rates.copy()
    drawn[5, 2, 41:49] += 40
    assert np.allclose(guarded(drawn, rates, deviation**2)[5, 2], drawn[5, 2])
