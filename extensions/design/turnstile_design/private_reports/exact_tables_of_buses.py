"""The planning tables of the ITMS report, for any input: exact, hence private.

Resolutions side by side (its section III A), hours (III B), cells that meet the base condition
(III C), HATs of a bus-day (III E), and the choice of K with its bias and its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import h3
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from turnstile.estimates.vehicles.mean_intervals import RatioNoise
from turnstile_design.private_reports.bus_pairs import BusPairs

LEAST_BUSES_A_DAY = 10
_STEPS_PER_KMH = 10
_HOURS_PER_DAY = 24


def resolution_row(pairs: BusPairs, resolution: int) -> dict[str, float]:
    """Return one column of the report's comparison of resolutions."""
    hats, of_hat = pairs.hats()
    cells = np.unique(hats[1])
    hat_days = np.unique(np.stack([of_hat, pairs.day]), axis=1, return_counts=True)[1]
    meeting = cells_meeting(pairs)
    return {
        "resolution": resolution,
        "cell_km2": h3.average_hexagon_area(resolution, unit="km^2"),
        "cells": cells.size,
        "hats": hats.shape[1],
        "mean_buses_per_hat_and_day": _mean(hat_days),
        "median_buses_per_hat_and_day": float(np.median(hat_days)) if hat_days.size else 0.0,
        "max_buses_per_hat_and_day": int(hat_days.max(initial=0)),
        "cells_meeting_condition": len(meeting),
        "share_meeting_condition": len(meeting) / max(1, cells.size),
        "largest_hats_of_a_bus_day": int(pairs.hats_per_bus_day().max(initial=0)),
    }


def cells_meeting(pairs: BusPairs) -> tuple[str, ...]:
    """Return the cells with an average of at least so many distinct buses a day in every slot.

    The source's base condition, exactly: in each slot, the buses of all days add up to at least
    `LEAST_BUSES_A_DAY` times the days.
    """
    (slots, cells), of_hat = pairs.hats()
    buses = np.bincount(of_hat, minlength=slots.size)
    dense = buses >= LEAST_BUSES_A_DAY * pairs.days
    dense_cells, slots_met = np.unique(cells[dense], return_counts=True)
    return tuple(sorted(h3.int_to_str(int(cell)) for cell in dense_cells[slots_met == pairs.slots]))


def hats_histogram(pairs: BusPairs) -> pd.DataFrame:
    """Return how many bus-days have so many HATs."""
    counted = np.bincount(pairs.hats_per_bus_day())
    hats = np.arange(counted.size)
    return pd.DataFrame({"hats": hats[1:], "bus_days": counted[1:]})


def records_by_window(hours: NDArray[np.int64], first_hour: int, last_hour: int) -> pd.DataFrame:
    """Return records by hour, and whether the programme's slots hold them.

    Args:
        hours: records of each hour, shape (24,).
        first_hour: first hour of the slots.
        last_hour: end of the slots, exclusive.
    """
    number = np.arange(_HOURS_PER_DAY)
    is_selected = (number >= first_hour) & (number < last_hour)
    share = hours / max(1, hours.sum())
    return pd.DataFrame(
        {"hour": number, "records": hours, "share": share, "is_selected": is_selected}
    )


@dataclass(frozen=True, slots=True)
class NoiseOfMean:
    """Noise of mean speeds: of sum and count, and the clamp."""

    ratio: RatioNoise
    clamp_kmh: int


@dataclass(frozen=True, slots=True)
class NoiseOfOver:
    """Standard deviation of the noise of buses above a limit, bus-days."""

    sd: float
    limit_kmh: int


@dataclass(frozen=True, slots=True)
class NoiseOfK:
    """Noise that a bound of K pairs of slot and cell leaves.

    Args:
        bound: K.
        mean: of mean speeds; None where none are measured.
        over: of buses above a limit; None where none are measured.
    """

    bound: int
    mean: NoiseOfMean | None
    over: NoiseOfOver | None


def choice_of_k(pairs: BusPairs, noises: Sequence[NoiseOfK]) -> pd.DataFrame:
    """Return, for each bound, what it drops (bias) and what its noise costs (deviation).

    Of a bus-day with h pairs every pair is kept with probability min(1, K/h), so a HAT's expected
    count, sum and buses above the limit are weighted sums. HATs without enough buses for a mean
    under a bound do not count for its mean; every HAT counts for buses above the limit.
    """
    rows = []
    of_hat = pairs.hats()[1]
    hats = pairs.hats_per_bus_day()
    for noise in noises:
        kept = np.minimum(1.0, noise.bound / np.maximum(hats[pairs.bus_day], 1))
        row = {
            "k": noise.bound,
            "share_of_pairs_kept": _mean(kept),
            "share_of_bus_days_above_k": _mean(hats > noise.bound),
        }
        if noise.mean is not None:
            row |= _of_mean(pairs, of_hat, kept, noise.mean)
        if noise.over is not None:
            row |= _of_over(pairs, of_hat, kept, noise.over)
        rows.append(row)
    return pd.DataFrame(rows)


def _of_mean(
    pairs: BusPairs, of_hat: NDArray[np.int64], kept: NDArray[np.float64], noise: NoiseOfMean
) -> dict[str, float]:
    """Return the figures of mean speeds under one bound."""
    speed = np.clip(pairs.mean_kmh, 0, noise.clamp_kmh)
    all_buses, buses = np.bincount(of_hat), np.bincount(of_hat, kept)
    mean = np.bincount(of_hat, speed) / np.maximum(all_buses, 1)
    bounded = np.bincount(of_hat, kept * speed) / np.maximum(buses, 1e-9)
    shown = buses >= noise.ratio.least_count
    offset = _STEPS_PER_KMH * (bounded - noise.clamp_kmh / 2)
    deviation = np.hypot(noise.ratio.sum_sd, offset * noise.ratio.count_sd)
    deviation = deviation / _STEPS_PER_KMH / np.maximum(buses, 1e-9)
    bias = bounded - mean
    return {
        "hats_with_a_mean": int(shown.sum()),
        "mean_speed_bias_kmh": _rms(bias[shown]),
        "mean_speed_noise_kmh": _rms(deviation[shown]),
        "mean_speed_error_kmh": _rms(np.hypot(bias, deviation)[shown]),
    }


def _of_over(
    pairs: BusPairs, of_hat: NDArray[np.int64], kept: NDArray[np.float64], noise: NoiseOfOver
) -> dict[str, float]:
    """Return the figures of buses above a limit under one bound."""
    lost = np.bincount(of_hat, (1 - kept) * (pairs.top_kmh > noise.limit_kmh))
    return {
        "speeding_bias_buses_a_day": _rms(lost / pairs.days),
        "speeding_noise_buses_a_day": noise.sd / pairs.days,
        "speeding_error_buses_a_day": _rms(np.hypot(lost, noise.sd) / pairs.days),
    }


def _mean(values: NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]) -> float:
    """Return a mean; 0 of nothing."""
    return float(np.mean(values)) if values.size else 0.0


def _rms(values: NDArray[np.float64]) -> float:
    """Return a root mean square; not a number of nothing."""
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")
