"""`turnstile new`: a first programme for a delivered file, with the decisions that it asks for."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from turnstile.commands.check import print_usable_grains
from turnstile.errors import InputError
from turnstile.programme.key import UNDECIDED
from turnstile.programme.source_spec import DateForm, Feed, SpeedUnit
from turnstile.settings import Settings

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("new", help="write a first programme for a delivered file")
    parser.add_argument("name", help="of the programme: small letters, digits and _")
    parser.add_argument(
        "--from", dest="delivered", type=Path, required=True, nargs="+", help="delivered files"
    )
    parser.add_argument("--gtfs", type=Path, help="public GTFS feed (zip or folder), or stops.txt")
    parser.add_argument("--area", type=Path, help="vehicles: public GeoJSON polygon")
    parser.add_argument("--mode", help="the one mode of the rows, where they name none")
    parser.add_argument("--zone", help="IANA time zone (default: that of the feed's agency)")
    parser.add_argument("--feed", type=Feed, choices=list(Feed), help="layout of the files")
    parser.add_argument(
        "--column", action="append", default=[], metavar="FIELD=NAME", help="your name of a field"
    )
    parser.add_argument("--curator", default="Example Transport Authority", help="who publishes")
    parser.add_argument("--contact", default="open-data@transport.example", help="for questions")
    parser.add_argument("--trips", type=int, help="tap-ons a week: say which grain can be used")
    parser.add_argument(
        "--speed-unit", type=SpeedUnit, choices=list(SpeedUnit), help="of a column of speeds"
    )
    parser.add_argument(
        "--date-form", type=DateForm, choices=list(DateForm), help="of a column of dates"
    )
    parser.add_argument(
        "--all-tap-on", action="store_true", help="no column says whether a tap enters or leaves"
    )
    parser.set_defaults(command=_new)


def _new(args: argparse.Namespace) -> int:
    """Write the files of a programme that does not exist yet, and say what comes next."""
    from turnstile_design.delivered_columns import look_at
    from turnstile_design.new_programme import Answers, PublicSources, new_programme

    include = Settings.from_environment().include
    if not _NAME.fullmatch(args.name):
        rule = f"{args.name!r} is no name; write small letters, digits and _"
        raise InputError(where="new", field="name", rule=rule)
    renamed = _renamed(args.column)
    found = [look_at(path, renamed, args.feed) for path in args.delivered]
    if any(one.feed is not found[0].feed for one in found):
        rule = "the files are of different feeds; write a programme for each"
        raise InputError(where="new", field="--from", rule=rule)
    sources = PublicSources(args.gtfs, args.area, args.mode, args.zone)
    answers = Answers(args.speed_unit, args.date_form, args.all_tap_on, args.trips)
    new = new_programme(
        args.name, found[0], sources, answers, curator=args.curator, contact=args.contact
    )
    for name, _ in new.files:
        if (include / name).exists():
            rule = "is there already; choose another name, or remove it first"
            raise InputError(where=name, field="file", rule=rule)
    for name, content in new.files:
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_bytes(content)
    print(f"{args.name}: feed {found[0].feed}")
    print("\n".join(f"wrote {include / name}" for name, _ in new.files))
    if args.trips:
        print_usable_grains([args.name], include, args.trips)
    for key in (one for one, value in answers.keys_of(found[0]).items() if value == UNDECIDED):
        print(f"to decide: source.{'columns.' if key == 'action' else ''}{key}")
    print(f"next: take the decisions, then `turnstile check {args.name}`")
    return 0


def _renamed(pairs: list[str]) -> dict[str, str]:
    """Read FIELD=NAME.

    Raises:
        InputError: one is no such pair.
    """
    found = dict(pair.partition("=")[::2] for pair in pairs)
    if not all(found.values()):
        rule = "write FIELD=NAME, for example card_id=id_tarjeta"
        raise InputError(where="new", field="--column", rule=rule)
    return found
