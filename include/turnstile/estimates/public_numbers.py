"""What the estimates of a week are made from: public numbers of this week and of earlier ones.

The same records come from a sealed release before it is published and from a package by anybody
afterwards, so that both make the same estimates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.trip_marginals import shares_total
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.noise import noise_variance
from turnstile.programme.domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec
from turnstile.release.drawn import Drawn

Statistic = tuple[str, str]  # table, statistic
Vectors = Mapping[date | None, NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class PublicNumbers:
    """The noisy numbers of one week.

    Args:
        key: release key.
        domain_digest: of its public cells; only weeks with equal cells are compared.
        days: service days in order.
        gaps: service days without input, which hold noise alone.
        vectors: as drawn, by table and statistic and by service day (None: all days in one).
        deviations: standard deviation of the noise of each statistic.
    """

    key: str
    domain_digest: str
    days: tuple[date, ...]
    gaps: tuple[date, ...]
    vectors: Mapping[Statistic, Vectors]
    deviations: Mapping[Statistic, float]


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
    """

    shape: RowShape
    tables: tuple[TableSpec, ...]
    slot_minutes: int
    shares_total: bool
    is_dense: bool = True
    flows: tuple[TableSpec, ...] = ()


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
    numbers: PublicNumbers
    seed: str
    earlier: tuple[PublicNumbers, ...]


def deviations_of(events: tuple[DrawEvent, ...]) -> dict[Statistic, float]:
    """Return the standard deviation of each statistic's noise."""
    return {
        (event.table, event.statistic): math.sqrt(noise_variance(event.noise, event.scale))
        for event in one_of_each_label(events)
    }


def numbers_of(drawn: Drawn) -> PublicNumbers:
    """Return the public numbers of a sealed release."""
    return PublicNumbers(
        key=str(drawn.attempt.key),
        domain_digest=drawn.domain.digest,
        days=tuple(drawn.plan.week.days),
        gaps=tuple(drawn.artefact.gaps),
        vectors={
            (table.name, statistic): drawn.vectors(table, statistic)
            for table in drawn.programme.tables
            for statistic in table.statistics
        },
        deviations=deviations_of(drawn.events),
    )


def promise_of(drawn: Drawn) -> Promise:
    """Return what the estimates of a sealed release depend on of its programme."""
    programme = drawn.programme
    return Promise(
        shape=programme.source.feed.shape,
        tables=programme.shared_tables,
        slot_minutes=programme.time.slot_minutes,
        shares_total=shares_total(programme),
        is_dense=not programme.mechanism.kind.is_thresholded,
        flows=tuple(table for table in programme.tables if table.is_flow),
    )


def is_comparable(domain_digest: str, days: Sequence[date], now: PublicNumbers) -> bool:
    """Whether another week has the same cells and the same weekdays in the same order."""
    weekdays = [[day.weekday() for day in one] for one in (days, now.days)]
    return domain_digest == now.domain_digest and weekdays[0] == weekdays[1]
