"""The designs that are compared on an Opal partition, drawn by the product's own mechanisms.

Scales and thresholds come from the plans of the Opal programmes. Errors are those of the noise:
trips beyond a card-day's bound are not simulated (`turnstile report` measures those).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray
from opal_partitions import INCLUDE, WEEK, Days, Floats, Ints, Tables, exact_tables

from turnstile.estimates.fitting.reconciliation import Measured, Partition, reconcile
from turnstile.privacy.accounts import losses
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.guarantees import rho_for
from turnstile.privacy.mechanisms import dense, stability_histogram
from turnstile.privacy.mechanisms.calibration import gaussian_scale, laplace_scale
from turnstile.privacy.mechanisms.thresholds import source_parameters
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import packed, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan

TABLE_OF = {"cells": "on_time_location", "time": "on_time", "location": "on_location"}
DELTA = Fraction(75, 10**8)  # 7.5e-7, the source's for one release
TABLE_DELTA = Fraction(1, 8_000_000)
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
SPLIT = "source's split, full domain, as drawn"
OPAL = "opal: Gaussian, once in finest cells, least squares"
Shape = tuple[int, int]  # slots, places


@cache
def planned(programme: str) -> dict[str, DrawEvent]:
    """Return the draws of one day of a programme, by table."""
    spec = load_programme(programme, INCLUDE)
    events = make_plan(spec, load_domain(spec, INCLUDE), WEEK).events
    return {draw_event.table: draw_event for draw_event in events}


def side_events(programme: str) -> list[DrawEvent]:
    """Return the tap-on draws of a programme under the names of this benchmark."""
    pairs = [(name, planned(programme)[table]) for name, table in TABLE_OF.items()]
    unit = records_at_most(1)
    return [
        event(name, draw_event.noise, draw_event.scale, unit, draw_event.threshold)
        for name, draw_event in pairs
    ]


def event(
    table: str, noise: NoiseFamily, scale: Fraction, unit: Sensitivity, threshold: int | None = None
) -> DrawEvent:
    """Describe a draw of one table of the side."""
    blocks = (Block(date(2016, 7, 25), "bus"),)
    units = ((ProtectionUnit.TRIP, unit),)
    return DrawEvent(table, "count", noise, scale, blocks, units, threshold=threshold)


def loss_text(events: list[DrawEvent]) -> str:
    """State what a design costs its unit, replace-one, from its events."""
    (loss,) = losses(events).values()
    return f"({float(2 * (loss.epsilon or 0)):.3f}, {float(loss.delta):.1e})"


def source(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """The source: three thresholded histograms, as `opal_2017` plans them."""
    events = side_events("opal_2017")
    drawn = {
        draw_event.table: stability_histogram.draw(
            draw_event, whole(getattr(exact, draw_event.table))
        ).astype(float)
        for draw_event in events
    }
    return Tables(**drawn), events


def derived(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """The assessment's advice: one thresholded table of budget 4, the coarser ones from it."""
    parameters = source_parameters(Fraction(4), 3 * TABLE_DELTA)
    draw_event = event("cells", LAPLACE, parameters.scale, records_at_most(1), parameters.threshold)
    cells = stability_histogram.draw(draw_event, whole(exact.cells)).astype(float)
    return Tables(cells, cells.sum(axis=1), cells.sum(axis=0)), [draw_event]


def ours(exact: Tables) -> tuple[Tables, list[DrawEvent]]:
    """Full public domain and least squares, as `opal_trip` plans them."""
    events = side_events("opal_trip")
    return reconciled(exact, events), events


def partition(exact: Tables, events: list[DrawEvent]) -> Partition:
    """Draw every event on its exact table."""
    measured = {
        draw_event.table: Measured(
            dense.draw(draw_event, whole(getattr(exact, draw_event.table))),
            noise_variance(draw_event.noise, draw_event.scale),
        )
        for draw_event in events
    }
    return Partition(exact.shape, measured["cells"], measured["time"], measured["location"])


def reconciled(exact: Tables, events: list[DrawEvent]) -> Tables:
    """Draw and reconcile."""
    estimates = reconcile(partition(exact, events))
    tables = (estimates.cells, estimates.rows, estimates.columns)
    return Tables(*(np.asarray(table) for table in tables))


def whole(table: Floats) -> Ints:
    """Counts as int64."""
    return table.astype(np.int64)


def mean_and_variance_above(
    counts: NDArray[np.generic], draw_event: DrawEvent
) -> tuple[float, float]:
    """Expected mean square of a thresholded table, and the share of its records left out."""
    if draw_event.threshold is None:
        raise ValueError(f"{draw_event.table} has no threshold")
    noise, chance = noise_pmf(draw_event.noise, draw_event.scale, reach=200)
    values, times = np.unique(counts.astype(np.int64), return_counts=True)
    shown = (values[:, None] > 0) & (values[:, None] + noise >= draw_event.threshold)
    squares = np.where(shown, noise**2, values[:, None] ** 2) @ chance
    kept = (np.where(shown, values[:, None] + noise, 0) @ chance * times).sum()
    return float((squares * times).sum() / times.sum()), float(1 - kept / counts.sum())


def expected_of_source(days: Days) -> dict[str, float]:
    """Expected RMSE of each table of the thresholded design, and the mass lost from cells."""
    moments: dict[str, list[tuple[float, float]]] = {name: [] for name in TABLE_OF}
    for exact in map(exact_tables, days):
        for draw_event in side_events("opal_2017"):
            moments[draw_event.table].append(
                mean_and_variance_above(getattr(exact, draw_event.table), draw_event)
            )
    means = {name: np.mean(pairs, axis=0) for name, pairs in moments.items()}
    return {
        **{name: float(mean[0]) ** 0.5 for name, mean in means.items()},
        "lost": float(means["cells"][1]),
    }


def expected_of_ours(days: Days) -> dict[str, float]:
    """Expected RMSE of each table of the reconciled design: its noise, whatever the counts are."""
    slots, places = days[0].shape
    return expected_reconciled((slots, places), side_events("opal_trip"))


def expected_reconciled(shape: Shape, events: list[DrawEvent]) -> dict[str, float]:
    """Expected RMSE of each table of a dense design after least squares."""
    zeros = exact_tables(np.zeros(shape, dtype=np.int64))
    tables = (
        Measured(
            whole(getattr(zeros, draw_event.table)),
            noise_variance(draw_event.noise, draw_event.scale),
        )
        for draw_event in events
    )
    estimates = reconcile(Partition(shape, *tables))
    squares = (estimates.cell_variance, estimates.row_variance, estimates.column_variance)
    return {name: square**0.5 for name, square in zip(TABLE_OF, squares, strict=True)}


def expected_as_drawn(events: list[DrawEvent]) -> dict[str, float]:
    """Expected RMSE of each table of a dense design as it was drawn."""
    return {
        draw_event.table: noise_variance(draw_event.noise, draw_event.scale) ** 0.5
        for draw_event in events
    }


DESIGNS: tuple[tuple[str, Callable[[Tables], tuple[Tables, list[DrawEvent]]]], ...] = (
    ("opal_2017: thresholded", source),
    ("thresholded, then derive", derived),
    ("opal_trip: full domain, least squares", ours),
)


def card_errors(shape: Shape, bound: int) -> dict[str, dict[str, float]]:
    """Expected errors for a card-day of at most k trips, both sides (8, 7.5e-7) replace-one."""
    any_cells, once = records_at_most(bound), packed(bound, 1)
    budgets = {"cells": Fraction(1), "time": Fraction(1, 2), "location": Fraction(1, 2)}
    split = [
        event(name, LAPLACE, laplace_scale(budget, bound), any_cells)
        for name, budget in budgets.items()
    ]
    # Both sides together meet epsilon 8 at 7.5e-7; a side has half of rho (replace: 2 rho).
    rho = rho_for(Fraction(8), DELTA) / 2 / 6

    def gaussian(finest: Sensitivity, coarser: Sensitivity) -> list[DrawEvent]:
        units = zip(TABLE_OF, (finest, coarser, coarser), strict=True)
        return [
            event(name, GAUSSIAN, gaussian_scale(rho, unit.l2_squared), unit)
            for name, unit in units
        ]

    return {
        SPLIT: expected_as_drawn(split),
        "same, least squares": expected_reconciled(shape, split),
        OPAL: expected_reconciled(shape, gaussian(once, any_cells)),
        "Gaussian, once in every table, least squares": expected_reconciled(
            shape, gaussian(once, once)
        ),
    }
