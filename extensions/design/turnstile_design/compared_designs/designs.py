"""A design is a programme that is looked at and not released: its caps do not matter yet."""

from __future__ import annotations

from dataclasses import replace

from turnstile.privacy.events import DrawEvent
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.release.numbers import Statistic, deviations_of
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

ANY_WEEK = ServiceWeek(2016, 30)  # errors are the same in every week


def events_of_design(programme: Programme, domain: PublicDomain) -> tuple[DrawEvent, ...]:
    """Return the draws of a week."""
    return make_plan(replace(programme, caps=()), domain, ANY_WEEK).events


def deviations_of_design(programme: Programme, domain: PublicDomain) -> dict[Statistic, float]:
    """Return the standard deviation of the noise of each statistic."""
    return deviations_of(events_of_design(programme, domain))
