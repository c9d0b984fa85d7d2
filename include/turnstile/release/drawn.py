"""A sealed release as everything after the draw sees it: promise, ledger, noisy integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from turnstile.ledger.records import Attempt
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_variance
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme, TableSpec
from turnstile.release.plan import ReleasePlan
from turnstile.release.sealed import Artefact


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sealed release: what was promised, what the ledger says of it, and the noisy numbers.

    `earlier` holds, by key, the artefacts of all releases that its draws carry along, and of those
    that theirs do; none where no table carries its year along.
    """

    programme: Programme
    domain: PublicDomain
    plan: ReleasePlan
    attempt: Attempt
    artefact: Artefact
    earlier: Mapping[str, Artefact] = field(default_factory=dict)

    @property
    def events(self) -> tuple[DrawEvent, ...]:
        """Every draw, in order."""
        return self.plan.events

    def vectors(self, table: TableSpec, statistic: str) -> dict[date | None, NDArray[np.int64]]:
        """Return the noisy vectors of one statistic by service day."""
        return {
            noisy.service_date: noisy.values
            for noisy in self.artefact.tables
            if (noisy.table, noisy.statistic) == (table.name, statistic)
        }

    def variance(self, table: TableSpec, statistic: str) -> float:
        """Return the variance of the noise of one statistic; it is the same on every day."""
        event = self.draw(table, statistic)
        return noise_variance(event.noise, event.scale)

    def draw(self, table: TableSpec, statistic: str) -> DrawEvent:
        """Return the first draw of a statistic; its noise is that of every day."""
        label = f"{table.name}/{statistic}"
        return next(event for event in self.events if event.label == label)
