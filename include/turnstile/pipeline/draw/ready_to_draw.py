"""What a draw is of, read and checked once before its charge: counts, gaps, what it carries along.

Nothing of the release is fetched again after it, so the way from charge to seal reads no file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from turnstile.errors import IntegrityError
from turnstile.ledger.records import Bindings, ReleaseKey
from turnstile.pipeline.draw.current_snapshot import gaps_of
from turnstile.pipeline.draw.planned_release import PlannedRelease
from turnstile.pipeline.draw.year_state import Counts, carried_keys, multiplied
from turnstile.privacy.events import DrawEvent
from turnstile.release.sealed import day_of_draw


@dataclass(frozen=True, slots=True)
class ReadyDraw:
    """All that noise is added to, and what is said of it in the sealed bytes.

    Args:
        key: of the release.
        bindings: digests of what was read.
        events: planned draws.
        counts: one vector of cells a draw, in the order of `events`.
        gaps: service days that are stated as gaps.
        carried: names of earlier releases that the draws carry along.
        embargoed: folder that the sealed bytes go to.
        say: logs one sentence.
    """

    key: ReleaseKey
    bindings: Bindings
    events: tuple[DrawEvent, ...]
    counts: list[Counts]
    gaps: tuple[date, ...]
    carried: tuple[str, ...]
    embargoed: Path
    say: Callable[[str], None]


def ready_to_draw(release: PlannedRelease) -> ReadyDraw:
    """Read what a release draws, and refuse what its mechanisms or its plan do not agree with.

    Its exact tables are looked at again as they are read: a count that another process ended since
    the reservation is of another promise.

    Raises:
        IntegrityError: plan and mechanism disagree on the loss, or the exact tables are others.
        RefusedError: they were counted of something else, or the exact counts of a week that it
            carries along are gone.
    """
    from turnstile.counting.exact_store import load_exact
    from turnstile.privacy.mechanisms.dense import agree

    events = release.plan.events
    for event in {_shape(event): event for event in events}.values():
        agree(event)
    exact = load_exact(release.folders.private, release.require_counted_so())
    if [table.label for table in exact] != [_exact_label(event) for event in events]:
        raise IntegrityError(f"{release.key}: exact tables are not the planned ones; count again")
    carried = carried_keys(release)
    counts, names = multiplied(release, carried, exact), tuple(map(str, carried))
    folder = release.folders.embargoed
    return ReadyDraw(
        release.key, release.bindings, events, counts, gaps_of(release), names, folder, release.say
    )


def _shape(event: DrawEvent) -> tuple[object, ...]:
    """Return what a mechanism is made from, to check each kind of draw once."""
    return (event.noise, event.scale, event.sensitivities, event.threshold)


def _exact_label(event: DrawEvent) -> tuple[str, str, date | None]:
    """Name the exact table that a draw reads."""
    return event.table, event.statistic, day_of_draw(event)
