"""`turnstile new`: a first programme for a delivered file, with the decisions that it asks for."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from turnstile.commands.plan import TRIPS, positive
from turnstile.errors import InputError
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
    parser.add_argument(
        "--zone", help="IANA time zone (default: the feed agency's, if times state offsets)"
    )
    parser.add_argument(
        "--feed", type=Feed, choices=list(Feed), help="what a row is: the layout of the files"
    )
    parser.add_argument(
        "--protect",
        choices=["day"],
        help="who is protected: the day of a card or vehicle; other units are written by hand",
    )
    parser.add_argument(
        "--column", action="append", default=[], metavar="FIELD=NAME", help="your name of a field"
    )
    parser.add_argument("--curator", default="Example Transport Authority", help="who publishes")
    parser.add_argument("--contact", default="open-data@transport.example", help="for questions")
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("--trips", type=positive, help=f"{TRIPS}: begins at what tells more")
    volume.add_argument("--buses", type=positive, help="vehicles a day: begins at what tells more")
    parser.add_argument(
        "--accept-no-gain", default="", metavar="REASON", help="why to release it at any volume"
    )
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
    from turnstile_design.compared_designs.estimate_tables import usable_grains
    from turnstile_design.first_programme.delivered_columns import look_at, renamed_columns
    from turnstile_design.first_programme.new_programme import (
        Answers,
        PublicSources,
        new_programme,
        written_programme,
    )

    settings = Settings.from_environment()
    include, private = settings.include, settings.private
    if not _NAME.fullmatch(args.name):
        rule = f"{args.name!r} is no name; write small letters, digits and _"
        raise InputError(where="new", field="name", rule=rule)
    renamed = renamed_columns(args.column)
    deliveries = [look_at(path, renamed, args.feed, private=private) for path in args.delivered]
    if any(delivery.feed is not deliveries[0].feed for delivery in deliveries):
        rule = "the files are of different feeds; write a programme for each"
        raise InputError(where="new", field="--from", rule=rule)
    sources = PublicSources(args.gtfs, args.area, args.mode, args.zone)
    answers = Answers(
        args.feed,
        args.protect is not None,
        args.speed_unit,
        args.date_form,
        args.all_tap_on,
        args.trips or args.buses,
        args.accept_no_gain,
    )
    new = new_programme(
        args.name, deliveries[0], sources, answers, curator=args.curator, contact=args.contact
    )
    for name, _ in new.files:
        if (include / name).exists():
            rule = "is there already; choose another name, or remove it first"
            raise InputError(where=name, field="file", rule=rule)
    for name, content in new.files:
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_bytes(content)
    print(f"{args.name}: feed {deliveries[0].feed}")
    print("\n".join(f"wrote {include / name}" for name, _ in new.files))
    if new.grain is not None:
        print(f"begins with {new.grain.in_words(deliveries[0].feed)}")
    if args.trips and (written := written_programme(args.name, include)):
        for line in usable_grains(*written, include, args.trips):
            print(line)
    landing = settings.landing / args.name
    for key in new.open:
        print(f"to decide: {key}")
    print(f"put the files of a week into {landing}/WEEK/, for example {landing}/2026-W01/")
    print(f"then `turnstile look {args.name}`: it says from the files what is left to decide")
    print(f"next: take the decisions, then `turnstile check {args.name}`")
    return 0
