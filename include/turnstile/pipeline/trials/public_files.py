"""Public files beside the cells, which later steps read: tried before anything is held.

Nothing about them depends on sealed bytes, so nothing about them may stop a week that is charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from turnstile.assessment.attacks.timetable_feed import Timetable, read_timetable
from turnstile.programme.domain.public_file import open_public_file
from turnstile.programme.spec import Programme
from turnstile.publishing.explore.lines_of_map import public_lines
from turnstile.publishing.series.days import holidays_of


def timetable_of(programme: Programme, include: Path, days: Sequence[date]) -> Timetable | None:
    """Return the timetable that a programme names, of some days; None where it names none.

    Raises:
        TurnstileError: no such file, or none that can be read.
    """
    named = programme.domain.timetable
    if named is None:
        return None
    open_public_file(programme, "domain.timetable", named, include)
    return read_timetable(include / named, days)


def require_public_files(programme: Programme, include: Path, days: Sequence[date]) -> None:
    """Refuse a programme whose holidays, timetable or lines of the map cannot be read.

    Raises:
        TurnstileError: which file, field and rule.
    """
    holidays_of(programme, include)
    timetable_of(programme, include, days)
    public_lines(programme, include)
