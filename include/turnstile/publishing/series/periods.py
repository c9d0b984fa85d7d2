"""What became of every period of a programme, from the ledger's facts: pure.

A period without a release is as public as one with: a gap that nobody explains looks like a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from turnstile.ledger.weeks import PublishedRevision, Week
from turnstile.service_calendar import ServicePeriod, ServiceWeek, parse_period


class PeriodState(StrEnum):
    """What a reader finds of a period."""

    PUBLISHED = "published"
    WITHDRAWN = "withdrawn"  # every published revision was
    NO_RELEASE = "no release"  # a person said so
    MISSING = "missing"  # between two others, and nobody said why


@dataclass(frozen=True, slots=True)
class Period:
    """A period, and what the ledger knows of it."""

    period: ServicePeriod
    week: Week

    @property
    def revisions(self) -> tuple[PublishedRevision, ...]:
        """Its published revisions, oldest first."""
        return self.week.published

    @property
    def in_force(self) -> PublishedRevision | None:
        """The newest revision that was not withdrawn."""
        return self.week.in_force

    @property
    def state(self) -> PeriodState:
        """What a reader finds of it."""
        if self.in_force is not None:
            return PeriodState.PUBLISHED
        if self.revisions:
            return PeriodState.WITHDRAWN
        return PeriodState.NO_RELEASE if self.week.no_release else PeriodState.MISSING


def periods_of(weeks: Mapping[str, Week]) -> tuple[Period, ...]:
    """Return every period from the first that is public to the last, in order.

    Args:
        weeks: of a programme, by name.
    """
    known = {
        (period := parse_period(name)): Period(period, week)
        for name, week in weeks.items()
        if week.published or week.no_release
    }
    return tuple(sorted(_with_gaps(known), key=lambda known_period: known_period.period.first_day))


def _with_gaps(known: Mapping[ServicePeriod, Period]) -> Iterable[Period]:
    """Yield periods, and a missing one for each week between two that has none."""
    yield from known.values()
    weeks = sorted(period for period in known if isinstance(period, ServiceWeek))
    for before, after in pairwise(weeks):
        week = before.plus(1)
        while week < after:
            yield Period(week, Week(str(week)))
            week = week.plus(1)
