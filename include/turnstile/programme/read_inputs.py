"""Read the half of a programme file that says what goes in: source, clock, public domain."""

from __future__ import annotations

from datetime import time

from turnstile.errors import InputError
from turnstile.programme.spec import (
    DomainSpec,
    Feed,
    MissingDay,
    Outside,
    RowShape,
    SourceSpec,
    SpeedUnit,
    TimeSpec,
)
from turnstile.programme.yaml_section import Section
from turnstile.service_calendar import MINUTES_PER_DAY, zone_named

_H3_FINEST = 15


def read_source(section: Section) -> SourceSpec:
    """Read where the rows come from."""
    spec = SourceSpec(
        feed=section.choice("feed", Feed),
        landing=section.text("landing"),
        modes=section.texts("modes"),
        missing_day=section.choice("missing_day", MissingDay, MissingDay.REFUSE),
        columns=_pairs(section.section("columns", optional=True)),
        mode_names=_pairs(section.section("mode_names", optional=True)),
        speed_unit=section.choice("speed_unit", SpeedUnit, SpeedUnit.KMH),
        speed_at_most_kmh=section.integer("speed_at_most_kmh", 130, least=1),
        rows_per_day_at_least=section.integer("rows_per_day_at_least", 1),
    )
    if spec.landing.startswith("/") or ".." in spec.landing:
        section.fail("landing", "must stay below the landing zone; write it without / or ..")
    for _, mode in spec.mode_names:
        if mode not in spec.modes:
            section.fail("mode_names", f"{mode!r} is none of the modes; add it to modes")
    section.finish()
    return spec


def _pairs(section: Section) -> tuple[tuple[str, str], ...]:
    """Read a mapping of free names."""
    return tuple((key, section.text(key)) for key in section.free_keys())


def read_time(section: Section) -> TimeSpec:
    """Read the agency's clock."""
    name = section.text("zone")
    try:
        zone = zone_named(name, where="zone")
    except InputError as error:
        section.fail("zone", error.rule)
    slot_minutes = section.integer("slot_minutes", least=1)
    if MINUTES_PER_DAY % slot_minutes:
        section.fail("slot_minutes", f"{slot_minutes} does not divide a day; write 15, 30 or 60")
    if section.text("week_starts", "monday") != "monday":
        section.fail("week_starts", "must be monday: a service week is an ISO week")
    section.finish()
    return TimeSpec(zone=zone, slot_minutes=slot_minutes)


def read_domain(section: Section, shape: RowShape) -> DomainSpec:
    """Read where the public cells come from."""
    first, last = _slots(section)
    trips = shape is RowShape.TRIPS
    spec = DomainSpec(
        locations=section.text("locations") if trips else None,
        service_area=None if trips else section.text("service_area"),
        h3_resolution=None if trips else section.integer("h3_resolution"),
        ring_cells=0 if trips else section.integer("ring_cells", 0),
        first_minute=first,
        last_minute=last,
        outside=section.choice("outside", Outside, Outside.UNKNOWN if trips else Outside.DROP),
    )
    if spec.h3_resolution is not None and spec.h3_resolution > _H3_FINEST:
        section.fail("h3_resolution", f"{spec.h3_resolution} is too fine; write 0 to {_H3_FINEST}")
    section.finish()
    return spec


def _slots(section: Section) -> tuple[int, int]:
    """Read `all_day` or `"09:00-21:00"` as minutes after midnight."""
    text = section.text("slots")
    if text == "all_day":
        return 0, MINUTES_PER_DAY
    first, _, last = text.partition("-")
    try:
        minutes = (_minute(first), MINUTES_PER_DAY if last == "24:00" else _minute(last))
    except ValueError:
        minutes = (0, 0)
    if minutes[0] >= minutes[1]:
        section.fail("slots", f'{text!r} is no stretch of a day; write all_day or "09:00-21:00"')
    return minutes


def _minute(text: str) -> int:
    """Return minutes after midnight of `HH:MM`."""
    clock = time.fromisoformat(text)
    return clock.hour * 60 + clock.minute
