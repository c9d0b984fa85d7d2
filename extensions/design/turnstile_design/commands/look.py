"""`turnstile look`: what delivered files are, and what mends them; private, and charges nothing."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed
from turnstile.settings import Settings

if TYPE_CHECKING:
    from turnstile.look.looking import Look


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "look at delivered files before a release; writes a private page, charges nothing"
    parser = subparsers.add_parser("look", help=text)
    parser.add_argument("programme", nargs="?", help="whose files in the landing zone")
    parser.add_argument(
        "--week",
        help="ISO week, or days FIRST..LAST (default: the last that came); with --from an ISO week "
        "alone (default: none)",
    )
    parser.add_argument("--from", dest="delivered", type=Path, nargs="+", help="or any files")
    parser.add_argument(
        "--feed", choices=[str(feed) for feed in Feed], help="with --from: layout of the files"
    )
    parser.add_argument(
        "--column", action="append", default=[], metavar="FIELD=NAME", help="with --from, as of new"
    )
    parser.add_argument("--zone", help="with --from: the agency's time zone")
    parser.set_defaults(command=_look)


def _look(args: argparse.Namespace) -> int:
    """Write the page; print its place, and ready or the keys to decide."""
    from turnstile.look.looking import look_at
    from turnstile.look.page import write_page
    from turnstile_design.first_programme.asked_looks import asked_of_files, asked_of_programme

    settings = Settings.from_environment()
    if bool(args.programme) == bool(args.delivered):
        rule = "name a programme, or files with --from"
        raise InputError(where="turnstile look", field="programme", rule=rule)
    opened = (
        asked_of_programme(args.programme, args.week, settings)
        if args.programme
        else asked_of_files(args.delivered, args.feed, args.column, args.zone, args.week, settings)
    )
    with opened as (asked, title, folder):
        look = look_at(asked)
        if args.programme:
            look = _with_refusals_of_check(look, args.programme, settings)
        page = write_page(look, title, folder)
    print(f"look at {title}: {page}")
    for key in dict.fromkeys(decision.key for decision in look.decisions):
        said = [decision for decision in look.decisions if decision.key == key]
        must = "to decide" if any(decision.must for decision in said) else "may be decided"
        print(f"{must}: {key}: {'; '.join(dict.fromkeys(decision.why for decision in said))}")
    print("ready" if look.is_ready else f"not ready: {look.offers} stand in {page}")
    return 0 if look.is_ready else InputError.exit_code


def _with_refusals_of_check(look: Look, name: str, settings: Settings) -> Look:
    """Add what `turnstile check` refuses and the files do not show."""
    from turnstile.commands.check import judged
    from turnstile.look.decisions import Decision
    from turnstile.programme.examples import broken_beside
    from turnstile.programme.loading import programme_file

    told = {decision.key for decision in look.decisions if decision.must}
    problems = judged(programme_file(name, settings.include), settings).problems
    beside = (error for _, error in broken_beside(settings.include))
    refusals = [
        Decision(getattr(problem, "field", "ledger"), "", f"check refuses: {problem}", must=True)
        for problem in (*problems, *beside)
    ]
    further = tuple(refusal for refusal in refusals if refusal.key not in told)
    return replace(look, decisions=(*look.decisions, *further))
