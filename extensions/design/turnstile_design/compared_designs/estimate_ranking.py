"""Designs at one loss, ranked by the errors of their estimates for what a programme is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, fsum, log
from pathlib import Path

from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme, Query
from turnstile_design.compared_designs.designs import (
    Label,
    alternatives,
    deviations_of_design,
    tables_of_estimates,
)
from turnstile_design.compared_designs.generated_bias import left_out
from turnstile_design.compared_designs.predicted_errors import (
    CELLS,
    Design,
    answers_of,
    draws_cells,
    error_of_totals,
    errors_by_query,
    relative_error,
)
from turnstile_design.compared_designs.public_city import PublicCity

_EXACT = 1e-6


@dataclass(frozen=True, slots=True)
class Ranked:
    """One design and the errors of its estimates.

    Args:
        varied: what differs from the programme.
        design: how.
        by_query: error of each query that the programme is meant for.
        cells: of the programme's own slots and locations.
        totals: of a day's total.
        left_out: share of generated trips that the bound leaves out.
        against: error against the programme as written: geometric mean over its queries.
    """

    varied: str
    design: str
    by_query: Mapping[Query, float]
    cells: float
    totals: float
    left_out: float
    against: float = 1.0


def ranked(
    programme: Programme, domain: PublicDomain, include: Path, city: PublicCity
) -> tuple[Ranked, ...]:
    """Return the programme and other designs at its loss, the least error first.

    Those of another unit promise something else, and those without cells have no estimates.
    """
    unit, minutes = programme.mechanism.unit, programme.time.slot_minutes
    city_slots = city.weeks[0].shape[2]
    judged = []
    for other in alternatives(programme, city.stops):
        slots, rest = divmod(other.programme.time.slot_minutes, minutes)
        is_read = slots and not rest and not city_slots % slots and has_cells(other.programme)
        if is_read and other.programme.mechanism.unit is unit:
            design = design_of(other.programme, domain, include, label=other.label, slots=slots)
            judged.append(_judged(other.varied, other.design, design, programme, city))
    against = [replace(row, against=_against(row, judged[0])) for row in judged]
    return tuple(sorted(against, key=lambda row: row.against))


def design_of(
    programme: Programme, domain: PublicDomain, include: Path, *, label: Label, slots: int
) -> Design:
    """Return what the estimates of a programme depend on, at a grain of locations and slots."""
    deviations = deviations_of_design(programme, domain)
    tables = tables_of_estimates(programme)
    table_deviations = {
        by: deviations[table.name, "count"] for by, table in tables.items() if set(by) <= set(CELLS)
    }
    totals = tables.get(())
    return Design(
        table_deviations,
        label,
        slots,
        left_out(programme, programme.shared_tables[0], include) or 0.0,
        left_out(programme, totals, include) or 0.0 if totals else 0.0,
    )


def has_cells(programme: Programme) -> bool:
    """Whether the cells of tap-ons are drawn, without a threshold: what estimates are made of."""
    return draws_cells(programme) and not programme.mechanism.kind.is_thresholded


def _judged(
    varied: str, named: str, design: Design, programme: Programme, city: PublicCity
) -> Ranked:
    """Return the errors of the estimates of a design, not yet held against others."""
    read, truth = answers_of(design, city)
    errors = errors_by_query(read, truth)
    return Ranked(
        varied,
        named,
        {query: errors[query] for query in programme.meant_for or tuple(errors)},
        relative_error(read.by_location(), truth.by_location()),
        error_of_totals(design, read, truth),
        design.left_out,
    )


def _against(design: Ranked, written: Ranked) -> float:
    """Return the geometric mean of the errors' ratios."""
    pairs = [(design.by_query[query], error) for query, error in written.by_query.items()]
    ratios = [log(max(design_error, _EXACT) / max(error, _EXACT)) for design_error, error in pairs]
    return exp(fsum(ratios) / len(ratios))
