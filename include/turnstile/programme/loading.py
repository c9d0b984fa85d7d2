"""Read a programme from its YAML file, strictly: unknown keys, floats and loose ends are errors.

Every complaint is one sentence with file, line and field. What the file alone shows is checked
here; that the caps hold the planned loss is checked by `release.plan`, which computes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date, time
from functools import lru_cache
from pathlib import Path

from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.fields import BY_NAME, STOP, TAPS, VISITS
from turnstile.programme.passenger_events import check_cells, check_events, check_units
from turnstile.programme.read_inputs import read_domain, read_source, read_time
from turnstile.programme.read_promises import (
    read_cap,
    read_mechanism,
    read_queries,
    read_tables,
    read_units,
)
from turnstile.programme.source_spec import Feed, RowShape, SourceSpec
from turnstile.programme.spec import (
    ApprovalSpec,
    DomainSpec,
    Measure,
    Programme,
    PublishSpec,
    RetentionSpec,
    ScheduleSpec,
    TableSpec,
)
from turnstile.programme.yaml_section import Section, canonical_text, open_section
from turnstile.service_calendar import DAYS_PER_WEEK

_DIGITS_OF_EARLIER = 12
_PARSED_AT_MOST = 16  # texts of programmes that a process keeps
ALARM_DAYS = 14
"""Data of a period without a release go this many days after somebody was told, at the earliest."""


@dataclass(frozen=True, slots=True)
class ProgrammeFile:
    """Names a programme's file."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the programme: the file's, without suffix."""
        return self.path.stem

    @property
    def text(self) -> str:
        """Text of the file.

        Raises:
            ProgrammeError: it is not UTF-8.
        """
        try:
            return self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            rule = "is not UTF-8; save it as UTF-8"
            raise ProgrammeError(where=self.path.name, field="encoding", rule=rule) from None


def programme_files(include: Path) -> tuple[ProgrammeFile, ...]:
    """List the programmes there are, by name."""
    return tuple(ProgrammeFile(path) for path in sorted((include / "programmes").glob("*.yaml")))


def programme_file(name: str, include: Path) -> ProgrammeFile:
    """Return the file of a programme.

    Raises:
        InputError: there is no such programme.
    """
    files = {file.name: file for file in programme_files(include)}
    if name not in files:
        known = ", ".join(files) or "none"
        rule = f"{name!r} is no programme; choose one of: {known}"
        raise InputError(where="include/programmes", field="programme", rule=rule)
    return files[name]


def load_programme(name: str, include: Path) -> Programme:
    """Read `include/programmes/<name>.yaml`.

    Raises:
        InputError: there is no such programme.
        ProgrammeError: the file breaks a rule.
    """
    file = programme_file(name, include)
    return parse_programme(file.text, file.path.name)


def bound_programme(name: str, digest: str, include: Path) -> Programme | None:
    """Return the programme of a digest that a sealed key is bound to; None where no text has it.

    It is the file as it is, or an earlier text of it that is kept as
    `include/programmes/earlier/<name>.<first twelve digits of its digest>.yaml`.

    Raises:
        InputError: there is no such programme.
        ProgrammeError: the file, or the earlier text, breaks a rule.
    """
    present = load_programme(name, include)
    if present.digest == digest:
        return present
    kept = include / f"programmes/earlier/{name}.{digest[:_DIGITS_OF_EARLIER]}.yaml"
    if not kept.is_file():
        return None
    earlier = parse_programme(ProgrammeFile(kept).text, f"{name}.yaml")
    return earlier if earlier.digest == digest else None


@lru_cache(_PARSED_AT_MOST)  # every step of a week opens its programme anew
def parse_programme(text: str, file: str) -> Programme:
    """Read a programme from the text of its file; the same text is parsed once.

    Raises:
        ProgrammeError: the text breaks a rule; the message names file, line and field.
    """
    return read_programme(open_section(text, file))


def read_programme(top: Section) -> Programme:
    """Read a programme from the top of its file.

    Raises:
        ProgrammeError: the file breaks a rule; the message names file, line and field.
    """
    name = top.text("name")
    if f"{name}.yaml" != top.file:
        top.fail("name", f"{name!r} must be the file's own name; rename one of the two")
    source = read_source(top.section("source"))
    shape = source.feed.shape
    tables = read_tables(top.section("tables"), shape)
    check_events(top, source, tables)
    _check_stated(top, source, tables)
    units = read_units(top.section("units"), shape)
    check_units(top, source, units)
    caps = tuple(read_cap(entry, units) for entry in top.sections("caps"))
    clock = read_time(top.section("time"))
    domain = read_domain(top.section("domain"), shape, clock)
    check_cells(top, source, domain)
    _check_listed(top, source, tables, domain)
    if shape is RowShape.TELEMETRY:
        _check_alike(top, tables)
    mechanism = read_mechanism(top.section("mechanism"), tables, units, caps)
    schedule = _schedule(top.section("schedule", optional=True))
    programme = Programme(
        name=name,
        title=top.text("title"),
        description=top.text("description"),
        family=top.text("family"),
        source=source,
        time=clock,
        domain=domain,
        units=units,
        tables=tables,
        mechanism=mechanism,
        caps=caps,
        schedule=schedule,
        approval=_approval(top.section("approval", optional=True)),
        publish=_publish(
            top.section("publish"), tables, is_thresholded=mechanism.kind.is_thresholded
        ),
        digest=hashlib.sha256(canonical_text(top).encode()).hexdigest(),
        meant_for=read_queries(top, shape),
        retention=_retention(top.section("retention"), schedule) if top.has("retention") else None,
        redraws=top.integer("redraws", 1),
    )
    top.finish()
    return programme


def _check_stated(top: Section, source: SourceSpec, tables: tuple[TableSpec, ...]) -> None:
    """Check that records say how late, or how full, a vehicle is, where a table asks."""
    states = {
        Measure.MEAN_DELAY: ("delays", [one for one in Feed if one.states_delays]),
        Measure.OCCUPANCY: ("occupancy", [one for one in Feed if one.states_occupancy]),
    }
    if source.timetable is not None:
        del states[Measure.MEAN_DELAY]
        if not any(one.measure is Measure.MEAN_DELAY or STOP in one.by for one in tables):
            rule = f"is used by no table; add one of mean_delay or by {STOP}, or remove it"
            top.section("source").fail("timetable", rule)
    for table in tables:
        what, feeds = states.get(table.measure, ("", [source.feed]))
        if source.feed not in feeds:
            rule = f"{source.feed} states no {what}; use {' or '.join(feeds)}"
            if table.measure is Measure.MEAN_DELAY:
                rule += ", or name a public GTFS feed as source.timetable"
            top.section("tables").section(table.name).fail("measure", rule)


def _check_listed(
    top: Section, source: SourceSpec, tables: tuple[TableSpec, ...], domain: DomainSpec
) -> None:
    """Check that a public list names the values of every category that a table counts."""
    listed = dict(domain.lists)
    for table in tables:
        for name in table.by:
            field = BY_NAME[name]
            if field.is_listed and name not in listed:
                rule = f"counts by {name}, and no public list says which there are; add it"
                rule += f", for example domain: {{lists: {{{name}: domains/{name}s.csv}}}}"
                top.section("tables").section(table.name).fail("by", rule)
            if name == STOP and source.timetable is None:
                rule = "counts by stop, which positions tell by a timetable alone"
                rule += "; name a public GTFS feed as source.timetable"
                top.section("tables").section(table.name).fail("by", rule)


def _check_alike(top: Section, tables: tuple[TableSpec, ...]) -> None:
    """Check that all tables of vehicles have the same cells, for which one bound holds."""
    first = tables[0]
    for table in tables:
        if table.by != first.by:
            rule = (
                f"must be [{', '.join(first.by)}], as in {first.name}: one bound chooses the cells"
            )
            rule += " that count, in all tables; write a second programme for others"
            top.section("tables").section(table.name).fail("by", rule)


def _schedule(section: Section) -> ScheduleSpec:
    """Read when a week is final."""
    days = section.integer("final_after_days", 0)
    text = section.text("weekly_at", "10:00")
    try:
        clock = time.fromisoformat(text)
    except ValueError:
        section.fail("weekly_at", f'{text!r} is no time of day; write "10:00"')
    period_days = section.integer("period_days", DAYS_PER_WEEK, least=1)
    first_day = _first_day(section, period_days)
    section.finish()
    return ScheduleSpec(days, clock, period_days, first_day)


def _first_day(section: Section, period_days: int) -> date | None:
    """Read from which day periods are counted; weeks need none."""
    if period_days == DAYS_PER_WEEK:
        return None  # a day that is given all the same is an unknown key
    text = section.text("first_day")
    try:
        return date.fromisoformat(text)
    except ValueError:
        section.fail("first_day", f"{text!r} is no date; write the first service day, 2021-11-15")


def _approval(section: Section) -> ApprovalSpec:
    """Read who must say yes."""
    persons = section.integer("persons", 1, least=1)
    spec = ApprovalSpec(
        required=section.flag("required", default=False),
        persons=persons,
        role=section.text("role", "release_officer"),
        not_the_starter=section.flag("not_the_starter", default=persons > 1),
    )
    section.finish()
    return spec


def _retention(section: Section, schedule: ScheduleSpec) -> RetentionSpec:
    """Read how long private data stay: past the window of backfills, and that past an alarm."""
    spec = RetentionSpec(
        backfill_days=section.integer("backfill_days", least=1),
        raw_days=section.integer("raw_days", least=1),
        exact_days=section.integer("exact_days", least=1),
    )
    least = schedule.final_after_days + ALARM_DAYS
    if spec.backfill_days < least:
        rule = f"leaves no time for an alarm: a period is final, then {ALARM_DAYS} days are needed"
        section.fail("backfill_days", f"{rule}; write {least} or more")
    for key, days in (("raw_days", spec.raw_days), ("exact_days", spec.exact_days)):
        if days < spec.backfill_days:
            rule = "ends before the window of backfills does"
            section.fail(key, f"{rule}; write {spec.backfill_days} or more")
    section.finish()
    return spec


def _publish(
    section: Section, tables: tuple[TableSpec, ...], *, is_thresholded: bool
) -> PublishSpec:
    """Read licence and people, and what the package holds beside its tables."""
    spec = PublishSpec(
        licence=section.text("licence"),
        curator=section.text("curator"),
        contact=section.text("contact"),
        synthetic_rows=section.flag("synthetic_rows", default=False),
        to=section.texts("to") if section.has("to") else (),
        holidays=section.text("holidays") if section.has("holidays") else None,
        tides_shapes=section.flag("tides_shapes", default=False),
    )
    shaped = (*TAPS, *((visit,) for visit in VISITS))
    found = [one for one in tables if one.by in shaped and one.trips_max is None]
    if spec.tides_shapes and (is_thresholded or not found):
        section.fail(
            "tides_shapes",
            "needs a dense table by slot and location of a tap, or of stop visits; add one",
        )
    section.finish()
    return spec
