"""The slots of each mode: one stretch of the day for all modes, or the hours of a public file.

A slot is a time on the clock of a service day. Where that begins at midnight, service that runs
past it, until 26:00 as GTFS writes it, opens the slots from 00:00 to 02:00 of every day: for the
tap-ons of that date's first hours, and for the tap-offs of its last trips. Where it begins at 04:00
(`time.day_starts`), the slots from 24:00 to 26:00 are the end of the same service day. Hours are
widened to full slots. The labels stand in the order of the service day.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from turnstile.programme.domain.public_file import PublicFile, open_public_file, refuse
from turnstile.programme.spec import Programme, TimeSpec
from turnstile.service_calendar import MINUTES_PER_DAY, minute_of

HOURS_HEADER = ("mode", "first", "last")
_MINUTES_PER_HOUR = 60
Labels = tuple[str, ...]


def slots_by_mode(programme: Programme, include: Path) -> tuple[dict[str, Labels], str | None]:
    """Return the labels of each mode's slots, "HH:MM" of their start, and the file's version.

    Args:
        programme: names the stretch of the day, or the file.
        include: folder of `domains/`.

    Raises:
        ProgrammeError: the stretch or the file breaks a rule; the message names file and field.
    """
    domain, time = programme.domain, programme.time
    if domain.service_hours is None:
        every = _labels_between(*_stretch(programme), time)
        return dict.fromkeys(programme.source.modes, every), None
    file = open_public_file(programme, "domain.slots", domain.service_hours, include)
    hours = _read_hours(file)
    for mode in programme.source.modes:
        if mode not in hours:
            refuse(file.name, "mode", f"no hours of mode {mode!r}; add its line")
    labels = {mode: _labels_between(*hours[mode], time) for mode in programme.source.modes}
    return labels, file.version


def hours_csv(hours: Mapping[str, tuple[str, str]], *, margin_minutes: int) -> str:
    """Return the text of a file of hours, of what a timetable says.

    Args:
        hours: mode to first departure and last arrival, "HH:MM" as in GTFS.
        margin_minutes: people tap on so long before the first, and off so long after the last.

    Examples:
        >>> print(hours_csv({"ferry": ("05:40", "24:10")}, margin_minutes=30), end="")
        mode,first,last
        ferry,05:10,24:41
    """
    lines = [",".join(HOURS_HEADER)]
    for mode, (departs, arrives) in sorted(hours.items()):
        first, last = minute_of(departs) - margin_minutes, minute_of(arrives) + 1 + margin_minutes
        # earlier than midnight is late on the clock; more than a day is a day
        start = first % MINUTES_PER_DAY
        end = start + min(last - first, MINUTES_PER_DAY)
        lines.append(",".join((mode, clock(start), clock(end))))
    return "\n".join(lines) + "\n"


def clock(minute: int) -> str:
    """Return "HH:MM"; hours beyond 24 are after midnight, as in GTFS."""
    return f"{minute // _MINUTES_PER_HOUR:02d}:{minute % _MINUTES_PER_HOUR:02d}"


def is_all_day(labels: Labels, slot_minutes: int) -> bool:
    """Return whether every minute of the day has a slot."""
    return len(labels) * slot_minutes == MINUTES_PER_DAY


def _stretch(programme: Programme) -> tuple[int, int]:
    """Return the minutes of the one stretch, which must be full slots of one day."""
    length, where = programme.time.slot_minutes, f"{programme.name}.yaml"
    first, last = programme.domain.first_minute, programme.domain.last_minute
    starts, ends = programme.time.day_starts, programme.time.day_ends
    if not starts <= first < last <= ends:
        rule = f"must run forwards within one service day, {clock(starts)} to {clock(ends)}"
        refuse(where, "domain.slots", rule)
    if length < 1 or MINUTES_PER_DAY % length or first % length or last % length:
        rule = f"{length} minutes must divide the day and both ends of the slots; write 15 or 60"
        refuse(where, "time.slot_minutes", rule)
    return first, last


def _read_hours(file: PublicFile) -> dict[str, tuple[int, int]]:
    """Read first and last minute of service of each mode; the last may be after midnight."""
    hours: dict[str, tuple[int, int]] = {}
    for where, (mode, first, last) in file.rows(*HOURS_HEADER):
        if mode in hours:
            refuse(where, "mode", f"mode {mode!r} is listed twice; delete one of the two lines")
        hours[mode] = _minutes(where, "first", first), _minutes(where, "last", last)
        if hours[mode][0] >= hours[mode][1]:
            rule = f"{last} is not after {first}; write hours after midnight as 24:00 and more"
            refuse(where, "last", rule)
    return hours


def _minutes(where: str, field: str, text: str) -> int:
    """Return minutes after midnight of `HH:MM`, hours of the next day included."""
    try:
        minutes = minute_of(text)
    except ValueError:
        minutes = -1
    if not 0 <= minutes <= 2 * MINUTES_PER_DAY:
        refuse(
            where, field, f"{text!r} is no time of service; write 05:30, or 25:30 after midnight"
        )
    return minutes


def _labels_between(first: int, last: int, time: TimeSpec) -> Labels:
    """Return the slots that hold any minute from the first until before the last one."""
    starts = range(first - first % time.slot_minutes, last, time.slot_minutes)
    of_day = {time.day_starts + (s - time.day_starts) % MINUTES_PER_DAY for s in starts}
    return tuple(clock(minute) for minute in sorted(of_day))
