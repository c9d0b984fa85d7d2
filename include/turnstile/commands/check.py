"""`turnstile check`: what is wrong with programme files, before anything runs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from turnstile.commands.plan import TRIPS, positive
from turnstile.commands.printed_json import print_json
from turnstile.errors import InputError, ProgrammeError, RefusedError, TurnstileError
from turnstile.extensions import PLANNING, PORTALS, brought
from turnstile.ledger.of_deployment import open_ledger
from turnstile.pipeline.landing.first_look import action_unsaid
from turnstile.pipeline.ledger_preview import refusal_of_files
from turnstile.pipeline.trials.gain import no_gain
from turnstile.pipeline.trials.public_files import require_public_files, unheeded
from turnstile.pipeline.trials.room import open_ended, shortage, tightest_room, uncapped
from turnstile.programme.calendar.release_schedule import period_containing
from turnstile.programme.domain.files import load_domain
from turnstile.programme.examples import broken_beside
from turnstile.programme.gtfs.timetable import read_calls
from turnstile.programme.loading import (
    ProgrammeFile,
    programme_file,
    programme_files,
)
from turnstile.programme.people import require_people
from turnstile.programme.problems import Checked, problems_of
from turnstile.programme.reference import json_schema, reference
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.publishing.lost_tables import lost_tables
from turnstile.publishing.package_size import large_package, package_size
from turnstile.quality.rules import shares_at_most
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServicePeriod
from turnstile.settings import Settings, system_clock
from turnstile.sources.feeds.layout import names_in_source
from turnstile.sources.feeds.registry import layout_of

_DECIDE_THE_CELLS = frozenset({"source", "time", "domain", "tables"})


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("check", help="check programme files; exit 2 if one is wrong")
    parser.add_argument("programme", nargs="?", help="one programme; all of them without a name")
    parser.add_argument("--keys", action="store_true", help="print every key of a programme file")
    parser.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON Schema of programme files, for editors",
    )
    parser.add_argument("--trips", type=positive, help=f"{TRIPS}: say which grain serves")
    parser.set_defaults(command=_check)


def _check(args: argparse.Namespace) -> int:
    """Print what is wrong with each file, or that nothing is."""
    if args.keys:
        print(reference(), end="")
        return 0
    if args.schema:
        print_json(json_schema())
        return 0
    settings = Settings.from_environment()
    files = programme_files(settings.include)
    if args.programme is not None:
        files = (programme_file(args.programme, settings.include),)
    if not files:
        rule = "holds no programme; set TURNSTILE_INCLUDE, or make one (turnstile new)"
        raise InputError(where=str(settings.include / "programmes"), field="programmes", rule=rule)
    judgements = [judged(file, settings, args.trips) for file in files]
    for warning in (sentence for judgement in judgements for sentence in judgement.warnings):
        print(f"turnstile: warning: {warning}", file=sys.stderr)
    wrong = [problem for judgement in judgements for problem in judgement.problems]
    wrong += (error for _, error in broken_beside(settings.include))
    problems = dict.fromkeys(map(str, wrong))  # who needs a broken file says so too
    for problem in problems:
        print(f"turnstile: {problem}", file=sys.stderr)
    for sentence in (grain for judgement in judgements for grain in judgement.grains):
        print(sentence)
    if not problems:
        print(f"{', '.join(file.name for file in files)}: in order")
    return InputError.exit_code if problems else 0


@dataclass(frozen=True, slots=True)
class Judged:
    """What is wrong with a programme, and what it leaves open and may go on leaving open."""

    problems: tuple[TurnstileError, ...]
    warnings: tuple[str, ...]
    grains: tuple[str, ...] = ()


def judged(file: ProgrammeFile, settings: Settings, trips: int | None = None) -> Judged:
    """Judge one file, of trips at so many tap-ons a week if they are given."""
    checked = problems_of(file.text, file.path.name)
    problems, programme = _problems(checked, settings.include), checked.programme
    warnings = tuple(filter(None, [_warning(file, programme)]))
    if problems or programme is None:
        return Judged(problems, warnings)
    period = _next_with_service(programme)
    domain = load_domain(programme, settings.include)
    grains: tuple[str, ...] = ()
    if trips is not None and programme.source.feed.shape is RowShape.TRIPS:
        tables = brought(PLANNING, "estimate_tables", asked_by="--trips")
        grains = tuple(tables.usable_grains(programme, domain, settings.include, trips))
        programme = replace(programme, typical_volume=trips)
    plan = make_plan(programme, domain, period)
    lost = lost_tables(programme, domain, plan)
    large = ""
    if lost is None:  # of tables that would lie over each other nobody knows the size
        size = package_size(programme, domain, plan)
        large = large_package(size, programme, settings.include, plan)
    further = [large and f"{file.path.name}: {large}", open_ended(programme)]
    warnings = (*warnings, *filter(None, further))
    lacking = (
        lost,
        unheeded(programme, settings.include),
        uncapped(programme),
        shortage(programme, tightest_room(programme, domain, period)),
        no_gain(programme, domain, settings.include),
        action_unsaid(programme),
    )
    errors = tuple(error for error in lacking if error is not None)
    has_sealed, refusals = _in_ledger(programme, plan, settings)
    if has_sealed:  # its weeks are promised already
        return Judged(refusals, (*warnings, *map(str, errors)), grains)
    return Judged((*errors, *refusals), warnings, grains)


def _next_with_service(programme: Programme) -> ServicePeriod:
    """Return the first period, of today's on, that has a day of service: the one to plan."""
    period: ServicePeriod = period_containing(system_clock().date(), programme.schedule)
    while not programme.days_of(period):
        period = period.plus(1)
    return period


def _in_ledger(
    programme: Programme, plan: ReleasePlan, settings: Settings
) -> tuple[bool, tuple[RefusedError, ...]]:
    """Return whether a release is sealed, and how the ledger would refuse where the files lie."""
    try:
        ledger = open_ledger(settings, read_only=True)
        weeks = ledger.weeks(programme.name).values()
        refusal = refusal_of_files(ledger, programme, plan, settings)
    except TurnstileError:  # nothing was released here, or nobody can read it now: the steps ask
        return False, ()
    is_sealed = any(week.last_sealed is not None for week in weeks)
    return is_sealed, () if refusal is None else (refusal,)


def _warning(file: ProgrammeFile, programme: Programme | None) -> str:
    """Return what a programme leaves open and may go on leaving open; empty for nothing."""
    if programme is None or programme.source.feed.names_nobody:
        return ""
    source = programme.source
    if source.id_form is not None:
        return ""
    key = source.id_field.replace("_id", "_form")
    return (
        f"{file.path.name}: source.{key}: is not stated, so each spelling of an id is bounded by "
        "itself; state it (docs/FEEDS.md, One card, one id)"
    )


def _problems(checked: Checked, include: Path) -> tuple[TurnstileError, ...]:
    """Return every reason why a programme could not be released, as far as its files show."""
    further: TurnstileError | None = None
    if checked.programme is not None and not checked.mended & _DECIDE_THE_CELLS:
        further = _problem_of_cells(checked.programme, include, is_complete=not checked.problems)
    return checked.problems if further is None else (*checked.problems, further)


def _check_small_worlds(programme: Programme) -> None:
    """Refuse a programme of which one unit moves some vector farther than its steps compose to.

    Raises:
        ProgrammeError: a fault of the program that this programme shows.
    """
    from turnstile.pipeline.trials.small_worlds import moved_too_far

    too_far = moved_too_far(programme, Settings.from_environment().small_worlds)
    if too_far is not None:
        raise ProgrammeError(where=f"{programme.name}.yaml", field="tables", rule=too_far)


def _problem_of_cells(
    programme: Programme, include: Path, *, is_complete: bool
) -> TurnstileError | None:
    """Return what is wrong with columns, public files, portals or, if complete, the plan."""
    try:
        names_in_source(layout_of(programme.source.feed), programme)
        shares_at_most(programme)
        domain = load_domain(programme, include)
        read_calls(programme, include)
        period = _next_with_service(programme)
        require_public_files(programme, include, period.days)
        for address in programme.publish.to:
            brought(PORTALS, "address", asked_by="publish.to")(address)
        if is_complete:
            require_people(programme, include)
            make_plan(programme, domain, period)
            _check_small_worlds(programme)
    except TurnstileError as error:
        return error
    return None
