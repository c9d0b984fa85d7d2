"""`turnstile check`: what is wrong with programme files, before anything runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from turnstile.errors import InputError, TurnstileError
from turnstile.programme.domain_files import load_domain
from turnstile.programme.keys import reference
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.release_schedule import period_containing
from turnstile.release.plan import make_plan
from turnstile.settings import Settings, system_clock


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
    names = [args.programme] if args.programme else [f.name for f in programme_files(include)]
    problems = [problem for name in names if (problem := _problem(name, include))]
    for problem in problems:
        print(f"turnstile: {problem}", file=sys.stderr)
    if not problems:
        print(f"{', '.join(names)}: in order")
    return InputError.exit_code if problems else 0


def _problem(name: str, include: Path) -> TurnstileError | None:
    """Return why a programme could not be released, as far as its files tell."""
    try:
        programme = load_programme(name, include)
        period = period_containing(system_clock().date(), programme.schedule)
        make_plan(programme, load_domain(programme, include), period)
    except TurnstileError as error:
        return error
    return None
