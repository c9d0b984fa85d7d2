"""The threshold of a thresholded table, found again from the table alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from turnstile_lab.baselines import naive_laplace, uniforms
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.threshold import recover_threshold


def raw_counts(label: str, cells: int) -> np.ndarray:
    """Made-up raw counts, heavy-tailed as those of stations: exp of a Gaussian-like number."""
    bell = sum(uniforms(f"{label} {n}", cells) for n in range(4)) - 2
    return np.floor(np.exp(3 + 2.2 * bell)).astype(np.int64)


def released(label: str, *, cells: int, scale: float, threshold: float) -> np.ndarray:
    """Laplace noise, threshold, rounded afterwards."""
    noisy = raw_counts(label, cells) + naive_laplace(f"noise {label}", cells, scale)
    return np.rint(noisy[noisy > threshold]).astype(np.int64)


@pytest.mark.parametrize("cells", [3_000, 60_000])
@pytest.mark.parametrize(
    ("scale", "threshold"), [(1.0, 17.588), (2.0, 34.178), (1.4, 18.0), (2.0, 9.31)]
)
def test_the_stated_interval_holds_the_true_threshold(
    cells: int, scale: float, threshold: float
) -> None:
    for seed in range(4):
        estimate = recover_threshold(
            released(f"{cells} {seed}", cells=cells, scale=scale, threshold=threshold)
        )
        assert estimate is not None
        assert estimate.low <= threshold <= estimate.high
        if cells > 50_000:
            assert abs(estimate.threshold - threshold) <= 0.15
            assert estimate.high - estimate.low < 0.7


def test_the_interval_does_not_hold_every_threshold() -> None:
    counts = released("control", cells=200_000, scale=1.0, threshold=17.588)
    estimate = recover_threshold(counts)
    assert estimate is not None
    assert not estimate.low <= 17.9 <= estimate.high
    assert not estimate.allows_integer or estimate.threshold < 17.6


def test_a_threshold_after_rounding_leaves_the_smallest_number_full() -> None:
    noisy = raw_counts("whole", 100_000) + naive_laplace("whole", 100_000, 1.0)
    whole = np.rint(noisy).astype(np.int64)
    estimate = recover_threshold(whole[whole >= 18])
    assert estimate is not None
    assert estimate.allows_integer
    assert estimate.is_sharp


def test_an_end_that_was_blurred_after_the_cut_is_not_sharp() -> None:
    raw = raw_counts("moved", 60_000)
    kept = raw[raw >= 18]
    moved = kept + np.rint(naive_laplace("moved", kept.size, 1.5)).astype(np.int64)
    blurred, sharp = recover_threshold(moved), recover_threshold(kept)
    assert blurred is not None
    assert sharp is not None
    assert not blurred.is_sharp
    assert sharp.is_sharp


def test_few_numbers_far_above_the_threshold_leave_a_wide_interval() -> None:
    counts = np.array([60, 75, 90, 110, 140, 200, 260, 400])
    estimate = recover_threshold(counts)
    assert estimate is not None
    assert estimate.low < 17.588
    assert not estimate.is_located
    assert estimate.samples < 30
    assert 60.4 < estimate.high <= 60.5


def test_a_table_without_a_threshold_shows_none() -> None:
    assert recover_threshold(np.array([-3, 0, 1, 5, 7])) is None
    assert recover_threshold(np.array([], dtype=np.int64)) is None
    assert recover_threshold(np.array([1, 2, 3])) is None


def test_the_real_train_table_gives_its_declared_threshold(shared_data: Path) -> None:
    folder = shared_data / "opal_2016_release"
    table = read_external_tables([folder / "time-loc_train_on_20160725-31.csv"])
    estimate = recover_threshold(np.rint(table.counts).astype(np.int64))
    assert estimate is not None
    assert abs(estimate.threshold - 17.588) <= 0.1
    assert estimate.low <= 17.588 <= estimate.high
    assert not estimate.low <= 18.0 <= estimate.high
