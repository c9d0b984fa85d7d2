"""What a look is asked of: a programme, its files, and what nobody has decided yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.gtfs.scheduled_calls import ScheduledCalls
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.ingest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked at.

    Args:
        programme: as its file says, mended where nobody has decided yet.
        undecided: keys that stand as `decide` in it.
        week: whose files; None to take the one of most records.
        landing: landing zone, or a folder that stands in its place.
        private: private zone; scratch files are made there.
        domain: public cells and lists, if they are known.
        timetable: where the programme names one.
        memory: the most that the engine takes.
        snapshot: what a release has read of these files; None to read them for the look.
    """

    programme: Programme
    undecided: frozenset[str]
    week: ServicePeriod | None
    landing: Path
    private: Path
    domain: PublicDomain | None = None
    timetable: ScheduledCalls | None = None
    memory: str | None = None
    snapshot: Snapshot | None = None
