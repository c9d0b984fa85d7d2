"""The noisy numbers of one release, whoever reads them: from sealed bytes, or from a package.

The same records come from a sealed release before it is published and from a package by anybody
afterwards, so that both make the same estimates and the same gates judge both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.noise import noise_variance
from turnstile.release.drawn import Drawn

Statistic = tuple[str, str]  # table, statistic
Vectors = Mapping[date | None, NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """The numbers of one draw.

    Args:
        event: that declares their noise.
        service_date: day; None where the draw covers the period.
        values: shape (cells,), int64.
    """

    event: DrawEvent
    service_date: date | None
    values: NDArray[np.int64]

    @property
    def where(self) -> str:
        """Name and day, in words."""
        return self.event.label + (f" on {self.service_date}" if self.service_date else "")


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
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


def vectors_of_sealed(drawn: Drawn) -> tuple[Vector, ...]:
    """Return every draw of a sealed release, whose draws are those that were planned."""
    return tuple(
        Vector(event, noisy.service_date, noisy.values)
        for event, noisy in zip(drawn.events, drawn.artefact.tables, strict=False)
    )


def of_sealed(drawn: Drawn) -> Numbers:
    """Return the numbers of a sealed release."""
    return Numbers(
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


def deviations_of(events: Sequence[DrawEvent]) -> dict[Statistic, float]:
    """Return the standard deviation of each statistic's noise."""
    return {
        (event.table, event.statistic): math.sqrt(noise_variance(event.noise, event.scale))
        for event in one_of_each_label(events)
    }
