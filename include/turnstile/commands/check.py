"""`turnstile check`: what is wrong with programme files, before anything runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from turnstile.errors import InputError, ProgrammeError, TurnstileError
from turnstile.programme.domain_files import load_domain
from turnstile.programme.keys import reference
from turnstile.programme.loading import ProgrammeFile, programme_file, programme_files
from turnstile.programme.problems import Checked, problems_of
from turnstile.programme.release_schedule import period_containing
from turnstile.programme.scheduled_calls import read_calls
from turnstile.programme.spec import Programme
from turnstile.publishing.portals.addresses import portal_address
from turnstile.publishing.series.days import holidays_of
from turnstile.release.plan import make_plan
from turnstile.settings import Settings, system_clock
from turnstile.sources.feeds import layout_of
from turnstile.sources.layout import names_in_source

_DECIDE_THE_CELLS = frozenset({"source", "time", "domain", "tables"})


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("check", help="check programme files; exit 2 if one is wrong")
    parser.add_argument("programme", nargs="?", help="one programme; all of them without a name")
    parser.add_argument("--keys", action="store_true", help="print every key of a programme file")
    parser.set_defaults(command=_check)


def _check(args: argparse.Namespace) -> int:
    """Print what is wrong with each file, or that nothing is."""
    if args.keys:
        print(reference(), end="")
        return 0
    include = Settings.from_environment().include
    files = programme_files(include)
    if args.programme is not None:
        files = (programme_file(args.programme, include),)
    if not files:
        rule = "holds no programme; set TURNSTILE_INCLUDE, or make one (turnstile new)"
        raise InputError(where=str(include / "programmes"), field="programmes", rule=rule)
    checked = [(file, problems_of(file.text, file.path.name)) for file in files]
    problems = [problem for _, one in checked for problem in _problems(one, include)]
    for warning in (_warning(file, one.programme) for file, one in checked):
        if warning:
            print(f"turnstile: warning: {warning}", file=sys.stderr)
    for problem in problems:
        print(f"turnstile: {problem}", file=sys.stderr)
    if not problems:
        print(f"{', '.join(file.name for file in files)}: in order")
    return InputError.exit_code if problems else 0


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
    from turnstile.pipeline.small_worlds import moved_too_far

    too_far = moved_too_far(programme, Settings.from_environment().small_worlds)
    if too_far is not None:
        raise ProgrammeError(where=f"{programme.name}.yaml", field="tables", rule=too_far)


def _problem_of_cells(
    programme: Programme, include: Path, *, is_complete: bool
) -> TurnstileError | None:
    """Return what is wrong with columns, public files, portals or, if complete, the plan."""
    try:
        names_in_source(layout_of(programme.source.feed), programme)
        domain = load_domain(programme, include)
        read_calls(programme, include)
        holidays_of(programme, include)
        for address in programme.publish.to:
            portal_address(address)
        if is_complete:
            make_plan(
                programme, domain, period_containing(system_clock().date(), programme.schedule)
            )
            _check_small_worlds(programme)
    except TurnstileError as error:
        return error
    return None
