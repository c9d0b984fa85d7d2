"""Public files beside the cells, which later steps read: tried before anything is held.

Nothing about them depends on sealed bytes, so nothing about them may stop a week that is charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from turnstile.assessment.attacks.timetable_feed import Timetable, read_timetable
from turnstile.errors import ProgrammeError
from turnstile.programme.domain.files import AreaKind, kind_of_area
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


def unheeded(programme: Programme, include: Path) -> ProgrammeError | None:
    """Return which key its service area does not go by; None if it goes by all that are stated.

    What was sealed under it was counted without, so this stops no week that can be read.

    Raises:
        TurnstileError: there is no such file, or none that can be read.
    """
    domain = programme.domain
    if domain.service_area is None:
        return None
    file = open_public_file(programme, "domain.service_area", domain.service_area, include)
    kind = kind_of_area(file)
    stated = (
        ("ring_cells", domain.ring_cells > 0, AreaKind.STOPS),
        ("h3_coarsest", domain.h3_coarsest is not None, AreaKind.CELLS),
    )
    for key in (key for key, is_stated, of in stated if is_stated and kind is not of):
        rule = f"is not for an area as {file.name} states it; remove it"
        return ProgrammeError(where=f"{programme.name}.yaml", field=f"domain.{key}", rule=rule)
    return None


def require_public_files(programme: Programme, include: Path, days: Sequence[date]) -> None:
    """Refuse a programme whose holidays, timetable or lines of the map cannot be read.

    Raises:
        TurnstileError: which file, field and rule.
    """
    holidays_of(programme, include)
    timetable_of(programme, include, days)
    public_lines(programme, include)
