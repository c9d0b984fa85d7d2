"""Read the half of a programme file that says what goes in: source, clock, public domain."""

from __future__ import annotations

from datetime import date, time
from fnmatch import fnmatch
from fractions import Fraction

from turnstile.errors import InputError
from turnstile.programme.id_form import IdForm, IdKind, LetterCase
from turnstile.programme.read_lists import read_lists, read_periods
from turnstile.programme.source_spec import (
    DateForm,
    Extent,
    Feed,
    MissingDay,
    RowShape,
    SourceSpec,
    SpeedUnit,
    TapAction,
    WithoutCard,
)
from turnstile.programme.spec import DomainSpec, Outside, TimeSpec
from turnstile.programme.yaml_section import Section
from turnstile.service_calendar import MINUTES_PER_DAY, zone_named

_H3_FINEST = 15
_DAY_STARTS_AT_MOST = 720  # minutes; a later begin would be another day's
_HOURS_PER_DAY = 24
_DIGITS_MOST = 64  # of an id
_GRID_FINEST = 3  # decimals of a degree, about 100 m


def read_source(section: Section) -> SourceSpec:
    """Read where the rows come from."""
    feed = section.choice("feed", Feed)
    timetable, stop_within_m = _timetable(section, feed)
    spec = SourceSpec(
        feed=feed,
        landing=section.text("landing"),
        modes=section.texts("modes"),
        missing_day=section.choice("missing_day", MissingDay, MissingDay.REFUSE),
        columns=_pairs(section.section("columns", optional=True)),
        mode_names=_pairs(section.section("mode_names", optional=True)),
        speed_unit=section.choice("speed_unit", SpeedUnit, feed.speed_unit),
        speed_at_most_kmh=section.integer("speed_at_most_kmh", 130, least=1),
        rows_per_day_at_least=section.integer("rows_per_day_at_least", 1),
        action_names=_actions(section.section("action_names", optional=True)),
        date_form=section.choice("date_form", DateForm, DateForm.ISO),
        grid_decimals=section.integer("grid_decimals", 1),
        extent=_extent(section.section("extent")) if section.has("extent") else None,
        without_card=section.choice("without_card", WithoutCard, WithoutCard.DROP),
        files_at_least=section.integer("files_at_least", 1, least=1),
        marker=section.text("marker", ""),
        absent_days=_absent_days(section),
        timetable=timetable,
        stop_within_m=stop_within_m,
        card_form=_id_form(section, "card_form"),
        vehicle_form=_id_form(section, "vehicle_form"),
    )
    _check_form(section, feed)
    if spec.grid_decimals > _GRID_FINEST:
        section.fail("grid_decimals", f"is too fine; write 0 to {_GRID_FINEST}")
    if spec.landing.startswith("/") or ".." in spec.landing:
        section.fail("landing", "must stay below the landing zone; write it without / or ..")
    if "{week}" not in spec.landing:
        section.fail("landing", "names no week; write {week} where the week's name stands")
    if feed.shape is RowShape.TELEMETRY and len(spec.modes) > 1:
        section.fail("modes", f"{feed} tells no modes apart; write one")
    marker = spec.marker
    if marker and fnmatch(marker, spec.landing) and not marker.rpartition("/")[2].startswith("."):
        section.fail(
            "marker", "would be read as data; narrow landing, or begin its name with a dot"
        )
    if section.has("without_card") and feed.shape is not RowShape.TRIPS:
        section.fail("without_card", "is for trips; remove it")
    for _, mode in spec.mode_names:
        if mode not in spec.modes:
            section.fail("mode_names", f"{mode!r} is none of the modes; add it to modes")
    section.finish()
    return spec


def _timetable(section: Section, feed: Feed) -> tuple[str | None, int | None]:
    """Read by which feed delays are worked out, and how near to a stop a call is, meters."""
    has_timetable, is_near = section.has("timetable"), section.has("stop_within_m")
    within_m = section.integer("stop_within_m", 100, least=1)
    if not has_timetable:
        if is_near and not section.misspelt("timetable"):
            section.fail("stop_within_m", "goes with timetable; add it")
        return None, None
    if feed.shape is not RowShape.TELEMETRY:
        section.fail("timetable", "is for vehicles; remove it")
    return section.text("timetable"), within_m


def _id_form(section: Section, key: str) -> IdForm | None:
    """Read the one spelling of ids."""
    if not section.has(key):
        return None
    own = section.section(key)
    kind = own.choice("kind", IdKind)
    if kind is IdKind.DIGITS:
        form = IdForm(kind, length=own.integer("length", least=2))
        if (form.length or 0) > _DIGITS_MOST:
            own.fail("length", f"is too long for an id; write {_DIGITS_MOST} or less")
    else:
        form = IdForm(kind, case=own.choice("case", LetterCase, LetterCase.KEEP))
    own.finish()
    return form


def _check_form(section: Section, feed: Feed) -> None:
    """Check that a form is of ids that the feed has."""
    if section.has("card_form") and (feed.shape is not RowShape.TRIPS or feed.names_nobody):
        section.fail("card_form", f"{feed} has no cards; remove it")
    if section.has("vehicle_form") and feed.shape is not RowShape.TELEMETRY:
        section.fail("vehicle_form", "is for vehicles; remove it")


def _pairs(section: Section) -> tuple[tuple[str, str], ...]:
    """Read a mapping of free names."""
    return tuple((key, section.text(key)) for key in section.free_keys())


def _actions(section: Section) -> tuple[tuple[str, TapAction], ...]:
    """Read what the source's own actions mean."""
    return tuple((key, section.choice(key, TapAction)) for key in section.free_keys())


def _absent_days(section: Section) -> tuple[date, ...]:
    """Read the service days without service."""
    days = section.texts("absent_days", optional=True)
    try:
        return tuple(sorted(map(date.fromisoformat, days)))
    except ValueError:
        section.fail("absent_days", "must be service days; write for example 2016-12-25")


def _extent(section: Section) -> Extent:
    """Read a box in degrees; texts, as amounts are, because YAML's numbers are not exact."""
    sides = {"south": 90, "west": 180, "north": 90, "east": 180}
    found = {side: _degrees(section, side, most) for side, most in sides.items()}
    if found["south"] >= found["north"]:
        section.fail("south", "must be below north")
    section.finish()
    return Extent(**found)


def _degrees(section: Section, side: str, most: int) -> Fraction:
    """Read one side of a box."""
    text = section.text(side)
    try:
        degrees = Fraction(text)
    except (ValueError, ZeroDivisionError):
        section.fail(side, "must be degrees; write for example 72.6")
    if abs(degrees) > most:
        section.fail(side, f"must lie between -{most} and {most} degrees")
    return degrees


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
    day_starts = _day_starts(section, slot_minutes)
    section.finish()
    return TimeSpec(zone=zone, slot_minutes=slot_minutes, day_starts=day_starts)


def _day_starts(section: Section, slot_minutes: int) -> int:
    """Read the hour at which a service day begins, in minutes after midnight."""
    text = section.text("day_starts", "00:00")
    try:
        minute = _minute(text)
    except ValueError:
        minute = -1
    if not 0 <= minute <= _DAY_STARTS_AT_MOST or minute % slot_minutes:
        rule = f'{text!r} is no begin of a slot from 00:00 to 12:00; write "04:00"'
        section.fail("day_starts", rule)
    return minute


def read_domain(section: Section, shape: RowShape, time: TimeSpec) -> DomainSpec:
    """Read where the public cells come from."""
    trips = shape is RowShape.TRIPS
    slots = section.text("slots")
    hours = slots if slots.endswith(".csv") else None
    whole_day = time.day_starts, time.day_ends
    first, last = whole_day if hours else _slots(section, slots, whole_day)
    spec = DomainSpec(
        locations=section.text("locations") if trips else None,
        service_area=None if trips else section.text("service_area"),
        h3_resolution=None if trips else section.integer("h3_resolution"),
        ring_cells=0 if trips else section.integer("ring_cells", 0),
        first_minute=first,
        last_minute=last,
        outside=section.choice("outside", Outside, Outside.UNKNOWN if trips else Outside.DROP),
        h3_coarsest=section.integer("h3_coarsest") if section.has("h3_coarsest") else None,
        service_hours=hours,
        timetable=section.text("timetable") if section.has("timetable") else None,
        lists=read_lists(section.section("lists"), shape) if section.has("lists") else (),
        regions=section.text("regions") if trips and section.has("regions") else None,
        periods=read_periods(section.section("periods"), time)
        if trips and section.has("periods")
        else (),
    )
    if hours and not trips:
        section.fail(
            "slots", 'a file of hours by mode is for trips; write all_day or "09:00-21:00"'
        )
    if spec.h3_coarsest is not None and spec.h3_coarsest > (spec.h3_resolution or 0):
        section.fail("h3_coarsest", "must not be finer than h3_resolution")
    if spec.h3_resolution is not None and spec.h3_resolution > _H3_FINEST:
        section.fail("h3_resolution", f"{spec.h3_resolution} is too fine; write 0 to {_H3_FINEST}")
    section.finish()
    return spec


def _slots(section: Section, text: str, whole_day: tuple[int, int]) -> tuple[int, int]:
    """Read `all_day` or `"09:00-21:00"` as minutes after the service day's midnight."""
    if text == "all_day":
        return whole_day
    first, _, last = text.partition("-")
    try:
        minutes = (_minute(first), _minute(last))
    except ValueError:
        minutes = (0, 0)
    if minutes[0] >= minutes[1]:
        rule = (
            'write all_day, "09:00-21:00", or the file of hours by mode, for example domains/x.csv'
        )
        section.fail("slots", f"{text!r} is no stretch of a day; {rule}")
    return minutes


def _minute(text: str) -> int:
    """Return minutes after midnight of `HH:MM`; hours of the next day go on from 24.

    Raises:
        ValueError: no such time.
    """
    hours = text[:2]
    if hours.isdecimal() and _HOURS_PER_DAY <= int(hours) < 2 * _HOURS_PER_DAY:
        clock = time.fromisoformat(f"{int(hours) - _HOURS_PER_DAY:02d}{text[2:]}")
        return MINUTES_PER_DAY + clock.hour * 60 + clock.minute
    clock = time.fromisoformat(text)
    return clock.hour * 60 + clock.minute
