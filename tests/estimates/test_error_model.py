"""Errors of sizes and modes: read from many numbers, shared by few, and wide where none tells."""

from __future__ import annotations

import numpy as np
from estimate_weeks import Floats, dice

from turnstile.estimates.fitting.error_model import (
    OF_CELLS,
    ErrorModel,
    ErrorTerms,
    Judged,
    calibrated,
)
from turnstile.estimates.fitting.fission import FITTED_TIMES, JUDGED_TIMES

NOISE_SD, LOOKS, CLASSES = 10.0, 8, 3
SIZES = (20.0, 100.0, 400.0)
Z_90 = 1.645


def numbers_of(counts: tuple[int, ...]) -> tuple[ErrorTerms, Floats]:
    """Return numbers of three sizes, so many of each, and which class each is in."""
    classes = np.repeat(np.arange(CLASSES), counts)
    rates = np.array(SIZES)[classes]
    zeros = np.zeros(classes.size, dtype=np.int64)
    variance = np.full(classes.size, NOISE_SD**2)
    return ErrorTerms(
        rates, rates, rates, variance, classes, zeros, zeros, zeros, zeros + 1.0
    ), rates


def model_of(
    counts: tuple[int, ...], seed: int, *, error: float = 1.0
) -> tuple[ErrorModel, Floats]:
    """Calibrate on looks at made numbers; return the model and what 90 % intervals of each hold."""
    coins = dice(seed)
    numbers, rates = numbers_of(counts)
    of_noise = NOISE_SD**2
    variance = error * rates * of_noise / (rates + of_noise)

    def judged() -> Judged:
        off = np.sqrt(FITTED_TIMES * variance) * coins.standard_normal(rates.size)
        judge = rates - off + (JUDGED_TIMES * of_noise) ** 0.5 * coins.standard_normal(rates.size)
        return Judged(numbers, judge)

    model = calibrated([judged() for _ in range(LOOKS)], OF_CELLS, CLASSES)
    errors = np.sqrt(variance) * coins.standard_normal(rates.size)
    held = np.abs(errors) <= Z_90 * np.sqrt(model.variances(numbers))
    return model, held


def test_few_large_numbers_have_an_error_that_holds() -> None:
    few, many = 12, 2_000
    fits = [model_of((many, many, few), seed) for seed in range(20)]
    assert all(model.of_class[2] == model.of_class[1] for model, _ in fits)
    held = np.concatenate([held[-few:] for _, held in fits])
    assert 0.85 <= held.mean() <= 0.97


def test_many_numbers_have_an_error_of_their_own() -> None:
    model, _ = model_of((2_000, 2_000, 2_000), 1)
    assert model.of_class[2] != model.of_class[1] != model.of_class[0]


def test_a_table_of_few_numbers_alone_has_the_wider_intervals_the_less_is_known() -> None:
    numbers, _ = numbers_of((5, 5, 5))
    few, many = (model_of((n, n, n), 1)[0].variances(numbers) for n in (5, 2_000))
    assert (few[:5] > 1.5 * many[:5]).all()
    held = np.concatenate([model_of((5, 5, 5), seed)[1] for seed in range(40)])
    assert held.mean() >= 0.9


def test_a_size_that_no_look_saw_is_that_of_the_next_one_below() -> None:
    model, _ = model_of((2_000, 2_000, 0), 1)
    assert model.of_class[2] == model.of_class[1]


def hidden(mode: int, seed: int) -> tuple[Judged, Floats]:
    """A look at two modes that are shrunk to 0: trains at night, a ferry of 4 trips."""
    coins = dice(seed)
    sizes = (4_000, 400)
    groups = np.repeat([0, 1], sizes)
    truth = coins.poisson(np.repeat([0.02, 4.0], sizes)).astype(float)
    none, noise = np.zeros(truth.size), np.full(truth.size, 30.0**2)
    zeros = np.zeros(truth.size, dtype=np.int64)
    numbers = ErrorTerms(none, none + 0.1, none + 0.1, noise, zeros, zeros, groups, zeros, none + 1)
    judge = truth + (JUDGED_TIMES * noise) ** 0.5 * coins.standard_normal(truth.size)
    return Judged(numbers, judge), truth[groups == mode]


def test_a_mode_that_the_noise_hides_has_intervals_that_hold_its_trips() -> None:
    for seed in range(5):
        simulations = [hidden(1, seed * 100 + n) for n in range(LOOKS)]
        model = calibrated([look for look, _ in simulations], OF_CELLS, 1)
        variances = model.variances(simulations[0][0].numbers)
        reach = 1.2816 * np.sqrt(variances) + 0.5
        ferry = simulations[0][1]
        assert (ferry <= reach[-ferry.size :]).mean() >= 0.85
        # The trains' are no wider for it: their numbers are many.
        assert reach[0] < 0.7 * reach[-1]
        # The negative control: what was taken as known of a number of 0 before.
        assert (ferry <= 1.2816 * 0.1**0.5 + 0.5).mean() < 0.2
