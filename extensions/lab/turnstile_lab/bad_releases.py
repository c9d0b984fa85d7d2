"""Five ways to release counts that look safe, and the attack that defeats each."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from turnstile.assessment.attacks.presence import guess_after, proof_continuous
from turnstile.assessment.report.pictures import Axis, axis, bars, lines
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import NoiseDistribution, Term, half_width
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import (
    city,
    discrete_laplace,
    naive_laplace,
    noised_everywhere,
    second_algorithm,
)
from turnstile_lab.historical import theorem_1_density, theorem_5_printed
from turnstile_lab.lesson import Figure, Lesson

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
SHARES: Axis = axis([0.0, 1.0])
Points = list[Mapping[str, float | str]]


def zeros_left_alone() -> Lesson:
    """Empty cells get no noise: a released number proves that somebody was there."""
    figures: dict[str, float] = {}
    for group in _GROUPS:
        counts = np.full(_NIGHTS, group, dtype=np.int64)
        label = f"night {group}"
        released = second_algorithm(counts, scale=_SCALE, threshold=_THRESHOLD, label=label)
        figures[f"seen_{group}"] = float(np.mean(released > 0))
        figures[f"exact_{group}"] = proof_continuous(group, threshold=_THRESHOLD, scale=_SCALE)
        figures[f"printed_{group}"] = theorem_1_density(group, _SCALE)
    empty = np.zeros(_NIGHTS, dtype=np.int64)
    released = second_algorithm(empty, scale=_SCALE, threshold=_THRESHOLD, label="empty")
    false = figures["false_alarms"] = int((released > 0).sum())
    return Lesson(
        "zeros_left_alone",
        "Laplace noise on occupied cells, empty ones left at 0, threshold 18",
        "P(released | g people) = 1/2 e^(-(t - g)/b) below the threshold t; P(released | nobody) = "
        "0 (Culnane, Rubinstein & Teague 2017, Theorem 1, corrected)",
        f"A released number is proof: {false} of {_NIGHTS} empty cells were released, while a "
        f"group of 12 was proven with probability {figures['seen_12']:.4f} (exactly "
        f"{figures['exact_12']:.4f}; the printed {figures['printed_12']:.4f} is a density).",
        "Noise on every cell of a public domain, empty ones too: no number proves anything.",
        figures,
        Figure(
            "threshold",
            tuple((str(t), _proof_picture(t, figures)) for t in _THRESHOLDS),
            _THRESHOLDS.index(_THRESHOLD),
        ),
    )


def _proof_picture(threshold: int, figures: Mapping[str, float]) -> str:
    """Draw how surely a group is proven; simulated where it was."""
    points: Points = [
        {
            "people": group,
            "probability": proof_continuous(group, threshold=float(threshold), scale=_SCALE),
            "series": "exact",
        }
        for group in range(_GROUPS[0], _THRESHOLDS[-1] + 3)
    ]
    if threshold == _THRESHOLD:
        points += [
            {"people": group, "probability": figures[f"{name}_{group}"], "series": words}
            for name, words in (("seen", "simulated"), ("printed", "as printed"))
            for group in _GROUPS
        ]
    title = "Proof of presence"
    return lines(points, x="people", y="probability", title=title, y_axis=SHARES)


def floating_point() -> Lesson:
    """Textbook floating-point noise: the last bits reveal which count it was added to."""
    number = 20_000
    shares = {
        (scale, count): _off_grid(number, scale, count) for scale in _SCALES for count in (0, 1)
    }
    figures = {f"off_grid_{count}": shares[1.0, count] for count in (0, 1)}
    frames = tuple(
        (
            f"{scale:g}",
            bars(
                [
                    {"count": str(count), "share": shares[scale, count], "series": "off the grid"}
                    for count in (0, 1)
                ],
                x="count",
                y="share",
                title="Numbers that give the count away",
                y_axis=axis([0.0, 0.5]),
            ),
        )
        for scale in _SCALES
    )
    return Lesson(
        "floating_point",
        "Floating-point Laplace noise of scale 1 on every cell",
        "fl(0 + z) = z keeps every bit of a small z; fl(1 + z) is a multiple of 2^-53 (Mironov "
        "2012)",
        f"{figures['off_grid_0']:.1%} of the numbers made from a count of 0 lie off the grid of "
        f"2^-53, and {figures['off_grid_1']:.1%} of those made from 1: whoever sees such a number "
        "knows that nobody was there, at a claimed epsilon of 1 (Mironov 2012).",
        "Exact integer samplers (discrete Laplace and Gaussian), int64 from count to file.",
        figures,
        Figure("scale of the noise", frames, _SCALES.index(1.0)),
    )


def _off_grid(number: int, scale: float, count: int) -> float:
    """Return the share of noised counts that lie off the grid of 2^-53."""
    counts = np.full(number, count, dtype=np.int64)
    values = noised_everywhere(counts, scale=scale, label=f"grid {count}")
    scaled = np.ldexp(values, 53)
    return float(((np.abs(values) < _BELOW_ONE) & (scaled != np.rint(scaled))).mean())


def derived_from_thresholded() -> Lesson:
    """Totals beside, or made from, a table whose small cells were suppressed."""
    outcomes = {threshold: _suppressed(threshold) for threshold in _THRESHOLDS}
    figures = outcomes[_THRESHOLD]
    frames = tuple(
        (
            str(threshold),
            bars(
                [
                    {"what": words, "share": outcome[name], "series": f"threshold {threshold}"}
                    for name, words in (
                        ("mass_lost", "trips that totals lack"),
                        ("covered", "hidden sums in the exact interval"),
                        ("covered_printed", "in the printed one"),
                    )
                ],
                x="what",
                y="share",
                title="What a threshold hides, and does not",
                y_axis=SHARES,
            ),
        )
        for threshold, outcome in outcomes.items()
    )
    return Lesson(
        "derived_from_thresholded",
        "A thresholded table, with totals beside it or made from it",
        "total - parts = hidden sum + Z_0 + ... + Z_n; three Laplace noises: "
        "P(|Z| > u b) = e^(-u)(8 + 5u + u^2)/8 (Theorem 5, corrected)",
        f"Totals made from the thresholded table lack {figures['mass_lost']:.0%} of all trips. "
        "Totals published beside it say what was suppressed: total minus parts holds the hidden "
        f"sum in {figures['covered']:.0%} of {figures['slots']:.0f} slots within the exact 95 % "
        f"interval (within the printed one in {figures['covered_printed']:.0%}).",
        "No threshold: three dense tables, reconciled by least squares; hidden cells do not exist.",
        figures,
        Figure("threshold", frames, _THRESHOLDS.index(_THRESHOLD)),
    )


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
    frames = []
    for epsilon in _EPSILONS:
        event = DrawEvent("rerun", "count", NoiseFamily.DISCRETE_LAPLACE, 1 / epsilon, (), ())
        points: Points = []
        for draws in _RERUNS:
            right, exact = (
                _right_after(draws, float(1 / epsilon)),
                guess_after([event], weeks=draws),
            )
            if epsilon == 1:
                figures[f"right_{draws}"], figures[f"exact_{draws}"] = right, exact
            points += [
                {"draws": draws, "right": right, "series": "simulated"},
                {"draws": draws, "right": exact, "series": "exact"},
            ]
        title = "Best guess after so many reruns"
        picture = lines(points, x="draws", y="right", title=title, y_axis=axis([0.5, 1.0]))
        frames.append((f"{float(epsilon):g}", picture))
    return Lesson(
        "fresh_noise",
        "Fresh noise on every rerun of the same week, epsilon 1 each",
        "guess by the sign of the summed ln p(x - 1)/p(x): right with (1 + TV)/2 after n draws, "
        "whose epsilons add up to n epsilon (Neyman & Pearson 1933)",
        f"Whether one person was there is guessed right in {figures['right_1']:.0%} of cells from "
        f"one draw, {figures['right_5']:.0%} from five and {figures['right_10']:.0%} from ten.",
        "One sealed byte string for a release key, for ever; a rerun re-issues it at no cost.",
        figures,
        Figure("epsilon of each draw", tuple(frames), _EPSILONS.index(Fraction(1))),
    )


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
    frames = []
    for scale in (0.7, _SCALE, 2.8):
        noisy = np.rint(counts + naive_laplace("beside", counts.size, scale)).astype(np.int64)
        noise = noisy - counts
        if scale == _SCALE:
            figures = {
                "mean_noise": float(np.mean(np.abs(noise))),
                "recovered": float(np.mean(noisy - noise == counts)),
            }
        values, times = np.unique(np.clip(noise, -_CUT, _CUT), return_counts=True)
        points: Points = [
            {"noise": int(value), "cells": int(number), "series": "recovered exactly"}
            for value, number in zip(values, times, strict=True)
        ]
        picture = bars(
            points, x="noise", y="cells", title="Noise alone", y_axis=axis([0, counts.size / 2])
        )
        frames.append((f"{scale:g}", picture))
    return Lesson(
        "true_values_beside",
        "Noisy counts with the true ones, or their errors, in the next column",
        "noisy - noise = count",
        f"Subtracting gives all {counts.size} true counts and every noise value; mean size "
        f"{figures['mean_noise']:.2f}, so the scale too. The noise protects nobody.",
        "Exact counts cannot leave the private zone; error bars come from the declared noise.",
        figures,
        Figure("scale of the noise", tuple(frames), 1),
    )
