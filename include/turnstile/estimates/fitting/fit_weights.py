"""Weights of several fits of one table, by size of number and day, from known errors. Pure.

The errors' Gram matrix is estimated on looks that no fit has seen (`fission`), by size class and
day, and shrunk towards that of the size class and of the table by its own noise. The weights are
those on the simplex with the least estimated squared error, so a table in which borrowing does
harm is left nearly as it was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ALMOST_SINGULAR = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One fission of a table: what was fitted to one look, and the other look to judge it by.

    Args:
        fits: shape (fits, places, days, slots); the most informed one last.
        judge: same shape but for the first axis.
        classes: size class of each number, known from the fits of this look alone.
    """

    fits: Floats
    judge: Floats
    classes: Ints


def size_classes(values: Floats, edges: tuple[float, ...]) -> Ints:
    """Return the size class of each number: how many edges it reaches."""
    return np.searchsorted(np.array(edges), values, side="right")


def class_weights(
    fissions: Sequence[Look], classes: int, judging_variance: float, *, least: float = 500.0
) -> Floats:
    """Return the weights of the fits, shape (days, classes, fits).

    Args:
        fissions: fissions of one table.
        classes: how many size classes there are.
        judging_variance: of the noise of what is judged on.
        least: smallest pseudo-count with which a group is shrunk to the next larger one.
    """
    if len(fissions[0].fits) == 1:
        return np.ones((fissions[0].judge.shape[1], classes, 1))
    sums, cells = _products(fissions, classes, judging_variance)
    apart = np.mean([np.mean((look.fits[-1] - look.fits[-2]) ** 2) for look in fissions])
    pseudo = max(least, 20 * judging_variance / max(float(apart), 1e-9))
    of_table = sums.sum(axis=(0, 1)) / cells.sum()
    of_class = cells.sum(axis=0)[:, None, None]
    by_class = (sums.sum(axis=0) + pseudo * of_table) / (of_class + pseudo)
    grams = (sums + pseudo * by_class) / (cells + pseudo)[:, :, None, None]
    return np.array([[least_on_simplex(gram) for gram in of_day] for of_day in grams])


def _products(
    fissions: Sequence[Look], classes: int, judging_variance: float
) -> tuple[Floats, Floats]:
    """Return, by day and class, summed products of the fits' errors, and numbers of cells.

    Both are means over the looks; products are without the bias that the judging noise gives them.
    """
    count, (_, days, _) = len(fissions[0].fits), fissions[0].judge.shape
    sums, cells = np.zeros((days, classes, count, count)), np.zeros((days, classes))
    for look in fissions:
        errors = look.fits - look.judge
        for day in range(days):
            by_class = look.classes[:, day].ravel()
            cells[day] += np.bincount(by_class, minlength=classes)
            for a in range(count):
                for b in range(a, count):
                    product = (errors[a, :, day] * errors[b, :, day]).ravel() - judging_variance
                    class_sums = np.bincount(by_class, product, classes)
                    sums[day, :, a, b] += class_sums
                    sums[day, :, b, a] += class_sums if a != b else 0
    return sums / len(fissions), cells / len(fissions)


def least_on_simplex(gram: Floats) -> Floats:
    """Return weights >= 0 that sum to 1 with the least w' G w, by looking at every face.

    A face whose stationary point is no minimum, or lies outside, is left to its own faces.

    Examples:
        >>> least_on_simplex(np.array([[1.0, 0.0], [0.0, 3.0]])).tolist()
        [0.75, 0.25]
    """
    count = len(gram)
    best: Floats = np.eye(count)[int(np.argmin(np.diag(gram)))]
    least = float(np.diag(gram).min())
    for size in range(2, count + 1):
        for face in combinations(range(count), size):
            inner = gram[np.ix_(face, face)]
            if np.linalg.eigvalsh(inner)[0] <= _ALMOST_SINGULAR * np.trace(inner):
                continue  # equal fits, or too noisy to be a distance: its own faces are looked at
            weights = np.linalg.solve(inner, np.ones(size))
            weights = weights / weights.sum()
            value = float(weights @ inner @ weights)
            if (weights >= 0).all() and value < least:
                best, least = np.zeros(count), value
                best[list(face)] = weights
    return best


def weighted(fits: Floats, classes: Ints, weights: Floats) -> Floats:
    """Return the fits' weighted mean, number by number."""
    days = np.arange(fits.shape[2])[None, :, None]
    mean: Floats = np.einsum("fpds,pdsf->pds", fits, weights[days, classes])
    return mean
