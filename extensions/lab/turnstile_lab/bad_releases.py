"""Five ways to release counts that look safe, and the attack that defeats each."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from turnstile.assessment.attacks.presence import guess_after
from turnstile.assessment.report.pictures import axis, bars, lines
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import NoiseDistribution, Term, half_width
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import (
    Floats,
    city,
    discrete_laplace,
    naive_laplace,
    noised_everywhere,
    second_algorithm,
)
from turnstile_lab.historical import theorem_1_density, theorem_5_printed
from turnstile_lab.lesson import SHARES, Lesson, chart, histogram, lesson
from turnstile_lab.proof_of_presence import proof_continuous

_SCALE = 1.4  # the estimate of the 2017 assessment
_THRESHOLD = 18
_THRESHOLDS = (12, 15, 18, 21)
_GROUPS = (5, 8, 10, 12, 14)
_NIGHTS = 200_000
_BELOW_ONE = 0.5
_SCALES = (0.5, 1.0, 2.0, 4.0)
_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
_RERUNS = (1, 2, 3, 5, 7, 10)
_CUT = 8  # noise beyond is drawn here


def zeros_left_alone() -> Lesson:
    """Empty cells get no noise: a released number proves that somebody was there."""
    figures: dict[str, float] = {"nights": _NIGHTS}
    for group in _GROUPS:
        figures[f"seen_{group}"] = float(np.mean(_released(group, f"night {group}") > 0))
        figures[f"exact_{group}"] = proof_continuous(group, threshold=_THRESHOLD, scale=_SCALE)
        figures[f"printed_{group}"] = theorem_1_density(group, _SCALE)
    figures["false_alarms"] = int((_released(0, "empty") > 0).sum())
    pictures = {threshold: _proof_picture(threshold, figures) for threshold in _THRESHOLDS}
    return lesson("zeros_left_alone", figures, pictures, _THRESHOLD)


def _released(people: int, label: str) -> Floats:
    """Return what is released of a cell with so many people, night after night."""
    counts = np.full(_NIGHTS, people, dtype=np.int64)
    return second_algorithm(counts, scale=_SCALE, threshold=_THRESHOLD, label=label)


def _proof_picture(threshold: int, figures: Mapping[str, float]) -> str:
    """Draw how surely a group is proven; simulated where it was."""
    series = {
        "exact": [
            (group, proof_continuous(group, threshold=float(threshold), scale=_SCALE))
            for group in range(_GROUPS[0], _THRESHOLDS[-1] + 3)
        ]
    }
    if threshold == _THRESHOLD:
        for name, words in (("seen", "simulated"), ("printed", "as printed")):
            series[words] = [(group, figures[f"{name}_{group}"]) for group in _GROUPS]
    return chart(lines, ("people", "probability"), "Proof of presence", SHARES, series)


def floating_point() -> Lesson:
    """Textbook floating-point noise: the last bits reveal which count it was added to."""
    shares = {
        scale: {count: _off_grid(20_000, scale, count) for count in (0, 1)} for scale in _SCALES
    }
    figures = {f"off_grid_{count}": share for count, share in shares[1.0].items()}
    axes, title, up = ("count", "share"), "Numbers that give the count away", axis([0.0, 0.5])
    pictures = {
        scale: chart(bars, axes, title, up, {"off the grid": by_count.items()})
        for scale, by_count in shares.items()
    }
    return lesson("floating_point", figures, pictures, 1.0)


def _off_grid(number: int, scale: float, count: int) -> float:
    """Return the share of noised counts that lie off the grid of 2^-53."""
    counts = np.full(number, count, dtype=np.int64)
    values = noised_everywhere(counts, scale=scale, label=f"grid {count}")
    scaled = np.ldexp(values, 53)
    return float(((np.abs(values) < _BELOW_ONE) & (scaled != np.rint(scaled))).mean())


def derived_from_thresholded() -> Lesson:
    """Totals beside, or made from, a table whose small cells were suppressed."""
    figures = {threshold: _suppressed(threshold) for threshold in _THRESHOLDS}
    shown = {
        "mass_lost": "trips that totals lack",
        "covered": "hidden sums in the exact interval",
        "covered_printed": "in the printed one",
    }
    pictures = {
        threshold: chart(
            bars,
            ("what", "share"),
            "What a threshold hides, and does not",
            SHARES,
            {f"threshold {threshold}": [(words, of[name]) for name, words in shown.items()]},
        )
        for threshold, of in figures.items()
    }
    return lesson("derived_from_thresholded", figures[_THRESHOLD], pictures, _THRESHOLD)


def _suppressed(threshold: int) -> dict[str, float]:
    """Return what is lost by a threshold, and how often an interval holds what was hidden."""
    counts = city()
    cells = second_algorithm(counts, scale=_SCALE, threshold=threshold, label="cells")
    totals = counts.sum(axis=1) + naive_laplace("totals", counts.shape[0], _SCALE)
    tried = covered = printed = 0
    for slot in range(counts.shape[0]):
        hidden = np.flatnonzero((cells[slot] == 0) & (counts[slot] > 0))
        if hidden.size == 0:
            continue
        parts = int((cells[slot] > 0).sum())
        error = totals[slot] - cells[slot].sum() - counts[slot, hidden].sum()
        noise = [Term(NoiseDistribution.LAPLACE, _SCALE, parts + 1)]
        tried += 1
        covered += abs(error) <= half_width(noise, 0.95)
        printed += abs(error) <= theorem_5_printed(_SCALE, 0.05)
    return {
        "mass_lost": 1 - float(cells.sum() / counts.sum()),
        "covered": covered / tried,
        "covered_printed": printed / tried,
        "slots": tried,
    }


def fresh_noise() -> Lesson:
    """Every rerun draws anew: averages of reruns undo the noise."""
    figures: dict[str, float] = {}
    pictures = {}
    for epsilon in _EPSILONS:
        event = DrawEvent("rerun", "count", NoiseFamily.DISCRETE_LAPLACE, 1 / epsilon, (), ())
        right = {draws: _right_after(draws, float(1 / epsilon)) for draws in _RERUNS}
        exact = {draws: guess_after([event], weeks=draws) for draws in _RERUNS}
        if epsilon == 1:
            figures |= {f"right_{draws}": share for draws, share in right.items()}
            figures |= {f"exact_{draws}": share for draws, share in exact.items()}
        series = {"simulated": right.items(), "exact": exact.items()}
        title = "Best guess after so many reruns"
        pictures[float(epsilon)] = chart(lines, ("draws", "right"), title, axis([0.5, 1.0]), series)
    return lesson("fresh_noise", figures, pictures, 1.0)


def _right_after(draws: int, scale: float) -> float:
    """Return the share of right guesses whether one person was there, simulated."""
    number = 20_000
    present = np.arange(number) % 2
    ratio = np.zeros(number)
    for rerun in range(draws):
        value = present + discrete_laplace(f"rerun {draws} {rerun}", number, scale)
        ratio += np.abs(value) - np.abs(value - 1)
    coin = np.arange(number) // 2 % 2
    return float(np.mean(np.where(ratio == 0, coin, ratio > 0) == present))


def true_values_beside() -> Lesson:
    """True values published beside noisy ones, for instance as an error report."""
    counts = city().ravel()
    figures: dict[str, float] = {"cells": counts.size}
    pictures = {}
    for scale in (0.7, _SCALE, 2.8):
        noisy = np.rint(counts + naive_laplace("beside", counts.size, scale)).astype(np.int64)
        noise = noisy - counts
        if scale == _SCALE:
            figures["mean_noise"] = float(np.mean(np.abs(noise)))
            figures["recovered"] = float(np.mean(noisy - noise == counts))
        series = {"recovered exactly": histogram(noise, _CUT)}
        up = axis([0, counts.size / 2])
        pictures[scale] = chart(bars, ("noise", "cells"), "Noise alone", up, series)
    return lesson("true_values_beside", figures, pictures, _SCALE)
