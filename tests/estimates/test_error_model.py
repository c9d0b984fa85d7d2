"""Errors of sizes and modes: read from how estimates go with the noise, wide where little tells."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from estimate_weeks import Floats, dice
from numpy.typing import NDArray

from turnstile.estimates.fitting.error_model import (
    USUAL,
    ErrorModel,
    ErrorTerms,
    Judged,
    calibrated,
)

NOISE_SD, HIDING_SD, CLASSES = 10.0, 30.0, 3
SIZES = (5.0, 20.0, 400.0)  # below, about and above the noise
Z_90 = 1.645
ALWAYS = np.array(USUAL)


def numbers_of(estimates: Floats, rates: Floats, classes: Floats, groups: Floats) -> ErrorTerms:
    """Put beside estimates what their error depends on."""
    zeros = np.zeros(rates.size, dtype=np.int64)
    variance = np.full(rates.size, NOISE_SD**2)
    sizes = classes.astype(np.int64)
    return ErrorTerms(estimates, rates, variance, sizes, rates, groups, zeros, zeros, zeros + 1.0)


def judged_of(counts: tuple[int, ...], seed: int, off: tuple[float, ...]) -> tuple[Judged, Floats]:
    """Best estimates of counts of three sizes, so many of each, that lie off besides; the truth."""
    coins = dice(seed)
    classes = np.repeat(np.arange(CLASSES), counts)
    rates = np.array(SIZES)[classes]
    truth = rates + np.sqrt(rates) * coins.standard_normal(rates.size)
    unbiased = truth + NOISE_SD * coins.standard_normal(rates.size)
    slope = rates / (rates + NOISE_SD**2)
    estimates = rates + slope * (unbiased - rates)
    estimates += np.array(off)[classes] * coins.standard_normal(rates.size)
    slopes = slope * NOISE_SD**2 * (1 + coins.standard_normal(rates.size))
    zeros = np.zeros(rates.size, dtype=np.int64)
    return Judged(numbers_of(estimates, rates, classes, zeros), unbiased, slopes), truth


def model_of(
    counts: tuple[int, ...], seed: int, off: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> tuple[ErrorModel, Judged, NDArray[np.bool_]]:
    """Calibrate; return the model, its numbers, and whether 90 % intervals hold."""
    judged, truth = judged_of(counts, seed, off)
    model = calibrated(judged, CLASSES, ALWAYS)
    errors = judged.numbers.estimates - truth
    return model, judged, np.abs(errors) <= Z_90 * np.sqrt(model.variances(judged.numbers))


def test_few_large_numbers_have_an_error_that_holds() -> None:
    few, many = 12, 2_000
    held = np.concatenate([model_of((many, many, few), seed)[2][-few:] for seed in range(20)])
    assert 0.85 <= held.mean() <= 0.97


def test_numbers_that_lie_off_have_an_error_of_their_own() -> None:
    many = 20_000
    _, _, held = model_of((many, many, many), 1, off=(0.0, 0.0, 9.0))
    for size in range(CLASSES):
        assert 0.86 <= held[size * many : (size + 1) * many].mean() <= 0.95
    # The negative control: what goes with the noise alone does not tell of it.
    judged, truth = judged_of((many, many, many), 1, (0.0, 0.0, 9.0))
    told = np.sqrt(judged.slopes[-many:].mean())
    assert (np.abs(judged.numbers.estimates - truth)[-many:] <= Z_90 * told).mean() < 0.82


def test_a_table_of_few_numbers_alone_has_the_wider_intervals_the_less_is_known() -> None:
    few, many = (
        model.variances(judged.numbers)
        for model, judged, _ in (model_of((n, n, n), 1) for n in (5, 2_000))
    )
    assert (few[:5] > 1.5 * many[:5]).all()
    held = np.concatenate([model_of((5, 5, 5), seed)[2] for seed in range(40)])
    assert held.mean() >= 0.9


def test_a_size_that_was_not_seen_has_a_ratio_of_those_that_were() -> None:
    model, judged, _ = model_of((2_000, 2_000, 0), 1)
    seen = model.shares.of(judged.numbers)
    large = np.array([SIZES[2]])
    unseen = model.shares.of(numbers_of(large, large, np.array([2.0]), np.array([0])))
    assert min(seen) <= unseen[0] <= max(seen)


def hidden(seed: int) -> tuple[Judged, Floats]:
    """Two modes that are shrunk to 0: trains at night, a ferry of 4 trips."""
    coins = dice(seed)
    groups = np.repeat([0, 1], (4_000, 400))
    truth = coins.poisson(np.repeat([0.02, 4.0], (4_000, 400))).astype(float)
    none = np.zeros(truth.size)
    noise = np.full(truth.size, HIDING_SD**2)
    numbers = replace(numbers_of(none, none + 0.1, none, groups), noise_variance=noise)
    return Judged(numbers, truth + HIDING_SD * coins.standard_normal(truth.size), none), truth


def test_a_mode_that_the_noise_hides_has_intervals_that_hold_its_trips() -> None:
    for seed in range(5):
        judged, truth = hidden(seed)
        variances = calibrated(judged, 1, USUAL).variances(judged.numbers)
        reach = 1.2816 * np.sqrt(variances) + 0.5
        ferry = truth[judged.numbers.groups == 1]
        assert (ferry <= reach[-ferry.size :]).mean() >= 0.85
        # The trains' are no wider for it: their numbers are many.
        assert reach[0] < 0.7 * reach[-1]
        # The negative control: what was taken as known of a number of 0 before.
        assert (ferry <= 1.2816 * 0.1**0.5 + 0.5).mean() < 0.2


def test_numbers_published_as_0_hide_more_than_goes_with_the_noise() -> None:
    many, beside = 4_000, 9.0  # trips in the slots around
    judged, _ = judged_of((0, many, many), 9, (0.0, 0.0, 0.0))
    zeros = np.zeros(many)
    found = numbers_of(zeros, zeros + beside, zeros, np.zeros(many, dtype=np.int64))
    coins = dice(10)
    truth = coins.poisson(2.5, many).astype(float)
    noisy = truth + NOISE_SD * coins.standard_normal(many)
    numbers = ErrorTerms(
        *(
            np.concatenate([getattr(part, field.name) for part in (found, judged.numbers)])
            for field in fields(ErrorTerms)
        )
    )
    unbiased = np.concatenate([noisy, judged.unbiased])
    slopes = np.concatenate([zeros, judged.slopes])  # 0 stays 0
    model = calibrated(Judged(numbers, unbiased, slopes), CLASSES, ALWAYS)
    reach = 1.2816 * np.sqrt(model.variances(found)) + 0.5
    assert 0.85 <= (truth <= reach).mean() <= 0.97
    # The negative control: the class by itself, as it goes with the noise.
    told = np.sqrt(model.shares.least / model.shares.of(found))
    assert (truth <= 1.2816 * np.sqrt(model.variances(found)) * told + 0.5).mean() < 0.7


def held_of(judged: Judged, truth: Floats, model: ErrorModel) -> NDArray[np.bool_]:
    """Return whether 90 % intervals hold."""
    errors = np.abs(judged.numbers.estimates - truth)
    return errors <= Z_90 * np.sqrt(model.variances(judged.numbers))


def test_a_day_that_is_unlike_the_others_has_an_error_of_its_own() -> None:
    days, many = 7, 2_000
    day = np.tile(np.arange(days), many)
    judged, truth = judged_of((0, 0, days * many), 5, (0.0, 0.0, 0.0))
    off = 9.0 * dice(6).standard_normal(day.size) * (day == days - 1)
    numbers = replace(judged.numbers, estimates=judged.numbers.estimates + off, days=day)
    judged = replace(judged, numbers=numbers)
    held = held_of(judged, truth, calibrated(judged, CLASSES, ALWAYS))
    assert all(0.86 <= held[day == n].mean() <= 0.95 for n in range(days))
    # The negative control: of one factor for all days the last has too little of it.
    alike = replace(judged, numbers=replace(numbers, days=np.zeros_like(day)))
    assert held_of(alike, truth, calibrated(alike, CLASSES, ALWAYS))[day == days - 1].mean() < 0.85


def test_the_least_numbers_of_a_class_have_errors_of_their_own() -> None:
    many = 40_000
    coins = dice(8)
    rates = np.exp(coins.uniform(np.log(2.0), np.log(200.0), many))
    classes = 1 + np.searchsorted([6.0, 60.0], rates)  # none is published as 0
    truth = rates + 2 * rates**0.25 * coins.standard_normal(many)  # less than counts, if large
    unbiased = truth + NOISE_SD * coins.standard_normal(many)
    slope = 4 * rates**0.5 / (4 * rates**0.5 + NOISE_SD**2)
    estimates = rates + slope * (unbiased - rates)
    slopes = slope * NOISE_SD**2 * (1 + coins.standard_normal(many))
    zeros = np.zeros(many, dtype=np.int64)
    judged = Judged(
        numbers_of(estimates, rates, classes.astype(np.float64), zeros), unbiased, slopes
    )
    model = calibrated(judged, CLASSES + 1, ALWAYS)
    least = (rates > 6.0) & (rates < 9.0)  # of the middle class
    assert 0.88 <= held_of(judged, truth, model)[least].mean() <= 0.95
    # The negative control: one ratio for the whole of the middle class.
    middles, logs = model.shares.middles[1:2], model.shares.logs[1:2]
    same = replace(model, shares=replace(model.shares, middles=middles, logs=logs))
    assert held_of(judged, truth, same)[least].mean() < 0.86
