"""Size classes of few numbers: their error is read together with that of the next one below."""

from __future__ import annotations

import numpy as np
from estimate_weeks import Floats, dice

from turnstile.estimates.error_model import (
    OF_CELLS,
    UNCERTAIN,
    ErrorModel,
    Judged,
    Numbers,
    calibrated,
)
from turnstile.estimates.fission import FITTED_TIMES, JUDGED_TIMES

NOISE_SD, LOOKS, CLASSES = 10.0, 8, 3
SIZES = (20.0, 100.0, 400.0)
Z_90 = 1.645


def numbers_of(counts: tuple[int, ...]) -> tuple[Numbers, Floats]:
    """Return numbers of three sizes, so many of each, and which class each is in."""
    classes = np.repeat(np.arange(CLASSES), counts)
    rates = np.array(SIZES)[classes]
    zeros = np.zeros(classes.size, dtype=np.int64)
    variance = np.full(classes.size, NOISE_SD**2)
    return Numbers(rates, rates, variance, classes, zeros, zeros), rates


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

    model = calibrated(
        [judged() for _ in range(LOOKS)], OF_CELLS, classes=CLASSES, days=1, places=1
    )
    errors = np.sqrt(variance) * coins.standard_normal(rates.size)
    held = np.abs(errors) <= Z_90 * np.sqrt(model.variances(numbers))
    return model, held


def test_few_large_numbers_have_an_error_that_holds() -> None:
    few, many = 12, 2_000
    found = [model_of((many, many, few), seed) for seed in range(20)]
    assert all((model.class_uncertainty <= UNCERTAIN).all() for model, _ in found)
    assert all(model.of_class[2] == model.of_class[1] for model, _ in found)
    held = np.concatenate([held[-few:] for _, held in found])
    assert 0.85 <= held.mean() <= 0.97


def test_many_numbers_have_an_error_of_their_own() -> None:
    model, _ = model_of((2_000, 2_000, 2_000), 1)
    assert model.of_class[2] != model.of_class[1] != model.of_class[0]


def test_a_table_of_few_numbers_alone_is_not_known() -> None:
    model, _ = model_of((5, 5, 5), 1)
    assert (model.class_uncertainty > UNCERTAIN).all()


def test_a_size_that_no_look_saw_is_that_of_the_next_one_below() -> None:
    model, _ = model_of((2_000, 2_000, 0), 1)
    assert model.of_class[2] == model.of_class[1]
    assert model.class_uncertainty[2] <= UNCERTAIN
