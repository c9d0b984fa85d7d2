"""Read which public lists a programme of trips names: categories, regions, periods of the day."""

from __future__ import annotations

from itertools import pairwise

from turnstile.programme.fields import categories
from turnstile.programme.mode_slots import minute_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Period, TimeSpec
from turnstile.programme.yaml_section import Section

_ENDS = 2


def read_lists(section: Section, shape: RowShape) -> tuple[tuple[str, str], ...]:
    """Read the file of each category."""
    known = [field.name for field in categories(shape) if field.is_listed]
    found = []
    for name in section.free_keys():
        if name not in known:
            section.fail(name, f"is no category of rows; use some of {', '.join(known)}")
        found.append((name, section.text(name)))
    section.finish()
    return tuple(found)


def read_periods(section: Section, time: TimeSpec) -> tuple[Period, ...]:
    """Read named stretches of the service day, in its order."""
    found = [_period(section, name, time) for name in section.free_keys()]
    found.sort(key=lambda one: one.first_minute)
    for one, after in pairwise(found):
        if after.first_minute < one.last_minute:
            section.fail(after.name, f"begins before {one.name} ends; let them not overlap")
    section.finish()
    return tuple(found)


def _period(section: Section, name: str, time: TimeSpec) -> Period:
    """Read one stretch of full slots."""
    text = section.text(name)
    ends = text.split("-")
    if len(ends) != _ENDS or not all(_is_clock(end) for end in ends):
        section.fail(name, f'{text!r} is no stretch of a day; write "07:00-09:30"')
    first, last = (minute_of(end) for end in ends)
    if not time.day_starts <= first < last <= time.day_ends:
        section.fail(name, "must run forwards within one service day")
    if first % time.slot_minutes or last % time.slot_minutes:
        section.fail(name, f"must begin and end with a slot of {time.slot_minutes} minutes")
    return Period(name, first, last)


def _is_clock(text: str) -> bool:
    """Whether a text is a time of a service day, as 07:30 or 25:00."""
    hours, _, minutes = text.partition(":")
    return (
        len(hours) == len(minutes) == _ENDS and (hours + minutes).isdecimal() and int(minutes) < 60  # noqa: PLR2004 - minutes of an hour
    )
