"""What the estimates of a week are made from: a promise, its numbers and those of earlier weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from turnstile.estimates.roll_ups import regions_of
from turnstile.estimates.trips.trip_marginals import shares_total
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec
from turnstile.release.numbers import Numbers


@dataclass(frozen=True, slots=True)
class Promise:
    """What of the programme the estimates depend on; it stands in the release card.

    Args:
        shape: of the source's rows.
        tables: drawn tables that count the same records, so that they can be reconciled.
        slot_minutes: length of a slot.
        shares_total: True if every counted trip counts once at its tap-on and once at its tap-off.
        is_dense: False if cells below a threshold are left out.
        flows: drawn tables of origins and destinations.
        regions: of each published location, if estimates are added up to regions.
        totals: drawn tables of totals by mode and day, whose bound is their own and no tighter.
    """

    shape: RowShape
    tables: tuple[TableSpec, ...]
    slot_minutes: int
    shares_total: bool
    is_dense: bool = True
    flows: tuple[TableSpec, ...] = ()
    regions: Mapping[str, str] = field(default_factory=dict)
    totals: tuple[TableSpec, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class WeekToEstimate:
    """Everything that goes into the estimates of one week.

    Args:
        promise: what they depend on of the programme.
        domain: public cells.
        numbers: of this week.
        seed: digest of the sealed bytes; public randomness comes from it.
        earlier: weeks that were public when the estimates were first made, latest first.
    """

    promise: Promise
    domain: PublicDomain
    numbers: Numbers
    seed: str
    earlier: tuple[Numbers, ...]


def promise_of(programme: Programme, domain: PublicDomain) -> Promise:
    """Return what the estimates of a release depend on of its programme."""
    bound = bound_in_force(programme)
    trips = bound.contributions_max if bound else 0  # a tighter bound leaves out other trips
    return Promise(
        shape=programme.source.feed.shape,
        tables=programme.shared_tables,
        slot_minutes=programme.time.slot_minutes,
        shares_total=shares_total(programme),
        is_dense=not programme.mechanism.kind.is_thresholded,
        flows=tuple(table for table in programme.tables if table.is_flow),
        regions=regions_of(programme.shared_tables, domain),
        totals=tuple(
            table
            for table in programme.tables
            if table.is_total and (table.trips_max or 0) >= trips
        ),
    )


def is_comparable(domain_digest: str, days: Sequence[date], now: Numbers) -> bool:
    """Whether another week has the same cells and the same weekdays in the same order."""
    weekdays = [[day.weekday() for day in dates] for dates in (days, now.days)]
    return domain_digest == now.domain_digest and weekdays[0] == weekdays[1]
