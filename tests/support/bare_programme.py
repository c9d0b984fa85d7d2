"""A programme that protects one trip and publishes nothing yet: tests say what is different."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from fractions import Fraction
from zoneinfo import ZoneInfo

from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.source_spec import Feed, SourceSpec
from turnstile.programme.spec import (
    ApprovalSpec,
    DomainSpec,
    Outside,
    Programme,
    PublishSpec,
    ScheduleSpec,
    TimeSpec,
    UnitBound,
)


def bare_programme(**changes: object) -> Programme:
    """Return a programme over taps of buses in hours of Sydney, without tables or caps."""
    programme = Programme(
        name="small",
        title="Small",
        description="Small.",
        family="small",
        source=SourceSpec(feed=Feed.OPAL_TRIPS, landing="small/{week}/*", modes=("bus",)),
        time=TimeSpec(ZoneInfo("Australia/Sydney"), slot_minutes=60),
        domain=DomainSpec("domains/stops.csv", None, None, 0, 0, 1440, Outside.UNKNOWN),
        units=(UnitBound(ProtectionUnit.TRIP, 1),),
        tables=(),
        mechanism=MechanismSpec(MechanismKind.DENSE_LAPLACE, ProtectionUnit.TRIP, Fraction(1), ()),
        caps=(),
        schedule=ScheduleSpec(0, time(10)),
        approval=ApprovalSpec(required=False),
        publish=PublishSpec("CC-BY-4.0", "An authority", "mail@example.org"),
        digest="0" * 64,
    )
    return replace(programme, **changes)
