"""Five lessons: a way to release counts that looks safe, and the attack that defeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from turnstile.assessment.attacks.historical import theorem_1_density, theorem_5_printed
from turnstile.assessment.attacks.presence import guess_after, proof_continuous
from turnstile.assessment.lab.baselines import (
    city,
    discrete_laplace,
    naive_laplace,
    noised_everywhere,
    second_algorithm,
)
from turnstile.assessment.report.pictures import bars, lines
from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise_sums import half_width
from turnstile.privacy.noise_terms import NoiseDistribution, Term

_SCALE = 1.4  # the estimate of the 2017 assessment
_THRESHOLD = 18.0
_NIGHTS = 200_000
_BELOW_ONE = 0.5
_RERUNS = (1, 2, 3, 5, 7, 10)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A defeated baseline.

    Args:
        name: short.
        title: what was released.
        attack: what the attacker does, and what it yields, with numbers.
        remedy: what this product does instead.
        figures: numbers behind the attack.
        picture: SVG.
    """

    name: str
    title: str
    attack: str
    remedy: str
    figures: Mapping[str, float]
    picture: str


def zeros_left_alone() -> Lesson:
    """Empty cells get no noise: a released number proves that somebody was there."""
    groups = (5, 8, 10, 12, 14)
    points: list[Mapping[str, float | str]] = []
    figures: dict[str, float] = {}
    for group in groups:
        counts = np.full(_NIGHTS, group, dtype=np.int64)
        released = second_algorithm(
            counts, scale=_SCALE, threshold=_THRESHOLD, label=f"night {group}"
        )
        seen = float(np.mean(released > 0))
        exact = proof_continuous(group, threshold=_THRESHOLD, scale=_SCALE)
        figures[f"seen_{group}"], figures[f"exact_{group}"] = seen, exact
        printed = figures[f"printed_{group}"] = theorem_1_density(group, _SCALE)
        for name, value in (("simulated", seen), ("exact", exact), ("printed density", printed)):
            points.append({"people": group, "probability": value, "distribution": name})
    empty = np.zeros(_NIGHTS, dtype=np.int64)
    false = int(
        (second_algorithm(empty, scale=_SCALE, threshold=_THRESHOLD, label="empty") > 0).sum()
    )
    figures["false_alarms"] = false
    return Lesson(
        "zeros_left_alone",
        "Laplace noise on occupied cells, empty ones left at 0, threshold 18",
        f"A released number is proof: {false} of {_NIGHTS} empty cells were released, while a "
        f"group of 12 was proven with probability {figures['seen_12']:.4f} (exactly "
        f"{figures['exact_12']:.4f}; the printed {figures['printed_12']:.4f} is a density).",
        "Noise on every cell of a public domain, empty ones too: no number proves anything.",
        figures,
        lines(
            points, x="people", y="probability", series="distribution", title="Proof of presence"
        ),
    )


def floating_point() -> Lesson:
    """Textbook floating-point noise: the last bits reveal which count it was added to."""
    number = 20_000
    points: list[Mapping[str, float | str]] = []
    figures: dict[str, float] = {}
    for count in (0, 1):
        counts = np.full(number, count, dtype=np.int64)
        values = noised_everywhere(counts, scale=1.0, label=f"grid {count}")
        scaled = np.ldexp(values, 53)
        off_grid = (np.abs(values) < _BELOW_ONE) & (scaled != np.rint(scaled))
        figures[f"off_grid_{count}"] = float(off_grid.mean())
        points.append(
            {"count": str(count), "share": float(off_grid.mean()), "what": "off the grid"}
        )
    return Lesson(
        "floating_point",
        "Floating-point Laplace noise of scale 1 on every cell",
        f"{figures['off_grid_0']:.1%} of the numbers made from a count of 0 lie off the grid of "
        f"2^-53, and {figures['off_grid_1']:.1%} of those made from 1: whoever sees such a number "
        "knows that nobody was there, at a claimed epsilon of 1 (Mironov 2012).",
        "Exact integer samplers (discrete Laplace and Gaussian), int64 from count to file.",
        figures,
        bars(points, x="count", y="share", series="what", title="Numbers that give the count away"),
    )


def derived_from_thresholded() -> Lesson:
    """Totals beside, or made from, a table whose small cells were suppressed."""
    counts = city()
    cells = second_algorithm(counts, scale=_SCALE, threshold=_THRESHOLD, label="cells")
    totals = counts.sum(axis=1) + naive_laplace("totals", counts.shape[0], _SCALE)
    lost = 1 - float(cells.sum() / counts.sum())
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
    points: list[Mapping[str, float | str]] = [
        {"interval": "exact", "share": covered / tried, "what": "covers the hidden sum"},
        {
            "interval": "Theorem 5 as printed",
            "share": printed / tried,
            "what": "covers the hidden sum",
        },
    ]
    figures = {"mass_lost": lost, "covered": covered / tried, "covered_printed": printed / tried}
    return Lesson(
        "derived_from_thresholded",
        "A thresholded table, with totals beside it or made from it",
        f"Totals made from the thresholded table lack {lost:.0%} of all trips. Totals published "
        "beside it say what was suppressed: total minus parts holds the hidden sum in "
        f"{covered / tried:.0%} of "
        f"{tried} slots within the exact 95 % interval (within the printed one in "
        f"{printed / tried:.0%}).",
        "No threshold: three dense tables, reconciled by least squares; hidden cells do not exist.",
        figures,
        bars(points, x="interval", y="share", series="what", title="Hidden sums, 95 % intervals"),
    )


def fresh_noise() -> Lesson:
    """Every rerun draws anew: averages of reruns undo the noise."""
    number = 20_000
    event = DrawEvent("rerun", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(1), (), ())
    points: list[Mapping[str, float | str]] = []
    figures: dict[str, float] = {}
    present = np.arange(number) % 2
    for draws in _RERUNS:
        ratio = np.zeros(number)
        for rerun in range(draws):
            value = present + discrete_laplace(f"rerun {draws} {rerun}", number, 1.0)
            ratio += np.abs(value) - np.abs(value - 1)
        coin = np.arange(number) // 2 % 2
        right = float(np.mean(np.where(ratio == 0, coin, ratio > 0) == present))
        exact = guess_after([event], weeks=draws)
        figures[f"right_{draws}"], figures[f"exact_{draws}"] = right, exact
        points += [
            {"draws": draws, "right": right, "what": "simulated"},
            {"draws": draws, "right": exact, "what": "exact"},
        ]
    return Lesson(
        "fresh_noise",
        "Fresh noise on every rerun of the same week, epsilon 1 each",
        f"Whether one person was there is guessed right in {figures['right_1']:.0%} of cells from "
        f"one draw, {figures['right_5']:.0%} from five and {figures['right_10']:.0%} from ten.",
        "One sealed byte string for a release key, for ever; a rerun re-issues it at no cost.",
        figures,
        lines(points, x="draws", y="right", series="what", title="Best guess after so many reruns"),
    )


def true_values_beside() -> Lesson:
    """True values published beside noisy ones, for instance as an error report."""
    counts = city().ravel()
    noisy = np.rint(counts + naive_laplace("beside", counts.size, _SCALE)).astype(np.int64)
    noise = noisy - counts
    scale = float(np.mean(np.abs(noise)))
    values, times = np.unique(np.clip(noise, -8, 8), return_counts=True)
    points: list[Mapping[str, float | str]] = [
        {"noise": int(value), "cells": int(number), "what": "recovered exactly"}
        for value, number in zip(values, times, strict=True)
    ]
    return Lesson(
        "true_values_beside",
        "Noisy counts with the true ones, or their errors, in the next column",
        f"Subtracting gives all {counts.size} true counts and every noise value; mean size "
        f"{scale:.2f}, so the scale too. The noise protects nobody.",
        "Exact counts cannot leave the private zone; error bars come from the declared noise.",
        {"mean_noise": scale, "recovered": float(np.mean(noisy - noise == counts))},
        bars(points, x="noise", y="cells", series="what", title="Noise alone"),
    )


LESSONS: tuple[Callable[[], Lesson], ...] = (
    zeros_left_alone,
    floating_point,
    derived_from_thresholded,
    fresh_noise,
    true_values_beside,
)
