"""Noise that shows in numbers of the same thing: totals and parts, both ends of a trip, reruns.

Differences are no noise by themselves: parts may be hidden, people may get off elsewhere, a file
may be a later state, or a column that tells rows apart may lack. Noise of one scale is told where
it is likelier than all of these.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln
from scipy.stats import chi2, norm

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.odds import CONFIDENCE, Floats, is_sure, log_mean, log_odds, told
from turnstile_lab.external.paired_counts import GROUPS_LEAST, Residuals, point_to_point
from turnstile_lab.external.table import Cell, ExternalTable
from turnstile_lab.scale_of_pairs import from_residuals, masses_of_sums

_WIDTHS = np.geomspace(0.15, 6, 33)  # of a scale, to the usual size of a difference
_SHARES = (0.0, 0.02, 0.1)  # of differences that are of nothing alike
_TERMS_MOST = 400
_NOISES = ("Laplace", "normal")
_NOISE_PRIOR, _OTHER_PRIOR = 0.2, 0.1
_OFFSETS = (-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0)  # in usual differences


def noise_of_differences(table: ExternalTable, totals: list[Residuals]) -> list[Disclosure]:
    """Return the noise that every source of differences shows, in a fixed order.

    Args:
        table: published counts.
        totals: its residuals.
    """
    disclosures = []
    services = point_to_point(table)
    if services:
        pairs = np.concatenate([service.differences for service in services])
        levels = np.concatenate([service.levels for service in services])
        names = ", ".join(f"{s.start} to {s.end} ({s.lag} slots later)" for s in services[:4])
        words = f"{pairs.size} pairs of on and off counts of {len(services)} services ({names})"
        disclosures.append(_disclosure("pairs", words, pairs, np.full(pairs.size, 2), levels))
    for sums in totals:
        complete = sums.is_complete
        values = np.rint(sums.values[complete]).astype(np.int64)
        if values.size >= GROUPS_LEAST and values.any():
            words = f"{values.size} totals with all their parts (over {sums.dimension})"
            terms, levels = sums.parts[complete] + 1, sums.levels[complete]
            disclosures.append(_disclosure("totals", words, values, terms, levels))
    return [*disclosures, *_repeated(table)]


def explanations(
    values: NDArray[np.int64], terms: NDArray[np.int64], levels: Floats
) -> dict[str, float]:
    """Return the log probability of differences under each explanation, with its prior.

    Args:
        values: shape (differences,), whole numbers.
        terms: shape (differences,), numbers in each that would have noise of their own.
        levels: shape (differences,), size of the counts in each, >= 0.

    Returns:
        Of `Laplace` and `normal` noise of one scale; of `rounding` of each number; of `hidden`
        counts, which are never below zero; of `scatter` that grows with the counts; of an `offset`;
        of `several` scales; of `corrections`, where most differences are 0.
    """
    usual = float(np.sqrt(np.mean(values.astype(np.float64) ** 2 / terms))) + 0.05
    spread = usual * np.sqrt(terms)
    anything = -math.log(2 * int(np.abs(values).max()) + 3)
    center, mean = float(np.median(spread)), max(float(values.mean()), 0.1)
    relative = (levels + 1) / float(np.mean(levels) + 1)

    def mixed(
        logs: list[Floats],
        others: Iterable[Floats | float] = repeat(anything),
        shares: tuple[float, ...] = _SHARES,
    ) -> float:
        """Return the mean probability over scales, and over shares that are of the others."""
        return log_mean(
            [
                np.logaddexp(log + math.log1p(-share), other + math.log(share or 1e-300)).sum()
                for log, other in zip(logs, others, strict=False)
                for share in shares
            ]
        )

    zeros = int((values == 0).sum())
    others = values.size - zeros
    weights = {
        "Laplace": mixed([_laplace(values, terms, w * usual / math.sqrt(2)) for w in _WIDTHS]),
        "normal": mixed([_normal(values, w * spread) for w in _WIDTHS]),
        "rounding": mixed([_normal(values, np.sqrt(terms * s / 12 + 0.05)) for s in (0.25, 1.0)]),
        "hidden": mixed([_waiting(values, w * mean) for w in _WIDTHS]),
        "scatter": mixed(
            [_normal(values, w * spread * relative**p + 0.3) for w in _WIDTHS for p in (0.5, 1.0)]
        ),
        "offset": mixed(
            [_normal(values, w * spread, m * center) for w in _WIDTHS for m in _OFFSETS]
        ),
        "several": mixed(
            [_normal(values, w * spread * 0.3) for w in _WIDTHS],
            [_normal(values, w * spread * 3) for w in _WIDTHS],
            (0.05, 0.2, 0.5),
        ),
        "corrections": float(betaln(zeros + 1, others + 1)) + anything * others,
    }
    return {
        name: weight + math.log(_NOISE_PRIOR if name in _NOISES else _OTHER_PRIOR)
        for name, weight in weights.items()
    }


def _weighed(
    values: NDArray[np.int64], terms: NDArray[np.int64], levels: Floats
) -> tuple[float, float, str]:
    """Return the log odds of noise, those of Laplace over normal noise, and what else is likely."""
    weights = explanations(values, terms, levels)
    laplace, normal = (weights.pop(name) for name in _NOISES)
    others = [*weights.values()]
    either = float(np.logaddexp(laplace, normal))
    return (
        log_odds(either, others),
        laplace - normal,
        max(weights, key=lambda explanation: weights[explanation]),
    )


def _normal(values: NDArray[np.int64], deviations: Floats, middle: float = 0.0) -> Floats:
    """Return the log probability of each whole difference under normal ones."""
    away = -np.abs(values - middle)
    mass = norm.cdf((away + 0.5) / deviations) - norm.cdf((away - 0.5) / deviations)
    return np.asarray(np.log(np.maximum(mass, 1e-300)))


def _waiting(values: NDArray[np.int64], mean: float) -> Floats:
    """Return the log probability of each difference that is geometric, and never below zero."""
    logs = values * math.log(mean / (1 + mean)) - math.log1p(mean)
    return np.where(values >= 0, logs, -math.inf)


def _laplace(values: NDArray[np.int64], terms: NDArray[np.int64], scale: float) -> Floats:
    """Return the log probability of each difference as a sum of Laplace noises."""
    logs = np.full(values.size, -math.inf)
    for number in np.unique(terms):
        mask = terms == number
        if number > _TERMS_MOST:  # a sum of so many is normal
            spread = scale * math.sqrt(2 * int(number))
            logs[mask] = norm.logpdf(values[mask], 0, spread)
            continue
        logs[mask] = np.log(masses_of_sums(values[mask], scale, int(number)))
    return logs


def _disclosure(
    source: str,
    words: str,
    values: NDArray[np.int64],
    terms: NDArray[np.int64],
    levels: NDArray[np.float64],
) -> Disclosure:
    """Return the noise that differences show, or what else they may be."""
    weight, family, likely = _weighed(values, terms, levels)
    figures = {"claim": "noise", "identified": False, "source": source, "samples": int(values.size)}
    if not is_sure(weight):
        text = f"that {words} differ by noise of one scale, and not by {likely}"
        return told("scale", text, weight, figures)
    square = values.astype(np.float64) ** 2 / terms
    ends = [chi2.ppf(p, values.size) for p in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2)]
    # Laplace noise has heavier tails, so its sum of squares scatters more: by 5/2 at two terms.
    stretch = math.sqrt(2.5)
    mean = float(square.mean())
    low, high = (math.sqrt(mean * max(0.05, 1 + stretch * (values.size / end - 1))) for end in ends)
    text = (
        f"{words} differ by noise; if each number has the same, its deviation is between {low:.2f} "
        f"and {high:.2f}"
    )
    figures |= {"deviation_low": round(low, 4), "deviation_high": round(high, 4)}
    if is_sure(family):
        estimate = from_residuals(values, terms, confidence=CONFIDENCE)
        between = f"between {estimate.low:.2f} and {estimate.high:.2f}"
        text += f", as Laplace noise of scale {estimate.scale:.2f}, {between}"
        figures |= {
            "family": "Laplace",
            "scale": round(estimate.scale, 4),
            "low": round(estimate.low, 4),
        }
        figures |= {"high": round(estimate.high, 4), "identified": True}
    elif is_sure(-family):
        text += ", as normal noise"
        figures |= {"family": "normal", "scale": round(math.sqrt(mean), 4), "identified": True}
        figures |= {"low": round(low, 4), "high": round(high, 4)}
    else:
        text += f" (Laplace or normal cannot be told: scale {low / math.sqrt(2):.2f} to "
        text += f"{high / math.sqrt(2):.2f}, or sigma {low:.2f} to {high:.2f})"
        figures |= {"family": None}
    return told("scale", text, weight, figures)


def _repeated(table: ExternalTable) -> list[Disclosure]:
    """Return whether cells that were published more than once show fresh noise."""
    seen: defaultdict[Cell, list[float]] = defaultdict(list)
    for cell, count in zip(table.cells, table.counts.tolist(), strict=True):
        seen[cell].append(count)
    several = [counts for counts in seen.values() if len(counts) > 1]
    if not table.is_labelled or not any(len(set(counts)) > 1 for counts in several):
        return []
    first = np.array([counts[0] for counts in several])
    values = np.rint(np.array([counts[1] for counts in several]) - first).astype(np.int64)
    levels = np.abs(first)
    figures = {
        "claim": "fresh_noise",
        "cells": len(several),
        "draws_max": max(len(counts) for counts in several),
    }
    text = (
        f"{len(several):,} cells were published up to {figures['draws_max']} times, differently: "
    )
    if values.size < GROUPS_LEAST or not values.any():
        return [told("fresh_noise", f"{text}by fresh noise", 0.0, figures)]
    weight, _, likely = _weighed(values, np.full(values.size, 2), levels)
    spread = float(np.sqrt(np.mean(values.astype(np.float64) ** 2) / 2))
    figures |= {"noise_standard_deviation": round(spread, 4)}
    text += (
        f"by fresh noise (deviation {spread:.2f}), of which an average has less, and not by "
        f"{likely}, as a later state or a column that is missing leaves"
    )
    return [told("fresh_noise", text, weight, figures, is_flaw=True)]
