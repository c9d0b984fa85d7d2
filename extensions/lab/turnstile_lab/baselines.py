"""The known-bad mechanisms of the sources, on made-up counts. They exist to be broken.

Nothing here takes rows, a plan or a ledger, and nothing outside the lab imports it. The noise is
deterministic (an extendable hash of a label), which alone would make it unfit to protect anybody.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_MANTISSA_BITS = 53
_BYTES = 8
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def uniforms(label: str, number: int) -> Floats:
    """Return numbers in (0, 1) that depend on a label alone, shape (number,)."""
    raw = np.frombuffer(hashlib.shake_256(label.encode()).digest(_BYTES * number), dtype="<u8")
    return np.asarray(((raw >> np.uint64(64 - _MANTISSA_BITS)) + 0.5) * 2.0**-_MANTISSA_BITS)


def naive_laplace(label: str, number: int, scale: float) -> Floats:
    """Return textbook floating-point Laplace noise: the logarithm of a uniform number.

    The logarithm is made with more digits and rounded once: its last bits, which give counts away,
    are the same on every platform that has such numbers.
    """
    centered = uniforms(label, number) - 0.5
    logarithms = np.log1p(-2 * np.abs(centered), dtype=np.longdouble).astype(np.float64)
    return np.asarray(-scale * np.sign(centered) * logarithms)


def discrete_laplace(label: str, number: int, scale: float) -> Counts:
    """Return discrete Laplace noise as a difference of two geometric numbers."""
    first, second = np.split(np.floor(-scale * np.log(uniforms(label, 2 * number))), 2)
    return np.asarray(first - second, dtype=np.int64)


def second_algorithm(counts: Counts, *, scale: float, threshold: float, label: str) -> Floats:
    """Return what the "second algorithm" releases before rounding: 0 for empty cells, no noise.

    Data61's addendum as the 2017 assessment describes it (appendix B).
    """
    noisy = counts + naive_laplace(label, counts.size, scale).reshape(counts.shape)
    return np.asarray(np.where((counts > 0) & (noisy > threshold), noisy, 0.0))


def noised_everywhere(counts: Counts, *, scale: float, label: str) -> Floats:
    """Return floating-point noise on every cell: no threshold, but the grid shows."""
    return np.asarray(counts + naive_laplace(label, counts.size, scale).reshape(counts.shape))


def city(slots: int = 96, stops: int = 40, trips: int = 20_000) -> Counts:
    """Return made-up counts of a day: two peaks, few busy stops and many quiet ones.

    Args:
        slots: quarters of an hour.
        stops: locations.
        trips: about so many in all.
    """
    hours = np.arange(slots) * 24 / slots
    peaks = np.exp(-((hours - 8) ** 2) / 3) + np.exp(-((hours - 17.5) ** 2) / 5) + 0.05
    sizes = np.exp(np.linspace(2.5, -2.5, stops))
    rates = np.outer(peaks / peaks.sum(), sizes / sizes.sum()) * trips
    return np.floor(rates + uniforms("city", rates.size).reshape(rates.shape)).astype(np.int64)
