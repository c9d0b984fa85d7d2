"""`turnstile domain build`: a public domain of trips from a GTFS feed and a lookup of postcodes."""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from turnstile.errors import InputError

if TYPE_CHECKING:
    from turnstile.programme.domain.building import BuiltDomain

_Choice = TypeVar("_Choice", bound=StrEnum)
_SHOWN = 5
_H3_FINEST = 15
_HOURS_SUFFIX = ".hours.csv"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("domain", help="make the public cells of a programme")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    build = actions.add_parser("build", help="from a GTFS feed and a lookup of postcodes")
    build.add_argument("feed", type=Path, help="GTFS feed (zip or folder), or a stops.txt alone")
    build.add_argument("--out", type=Path, required=True, help="domain file, .csv")
    build.add_argument("--postcodes", type=Path, help="CSV: postcode, latitude, longitude")
    build.add_argument("--mode", help="mode of every stop, where the feed does not say")
    build.add_argument(
        "--postcode-modes", default="bus", help="modes published by postcode, with commas"
    )
    build.add_argument("--within-km", type=float, default=25.0, help="farthest postcode of a stop")
    build.add_argument(
        "--location", default="stop_id", choices=("stop_id", "stop_name"), help="as rows have it"
    )
    build.add_argument(
        "--margin-minutes", type=int, default=30, help="taps before the first and after the last"
    )
    build.set_defaults(command=_build)
    regions = actions.add_parser("regions", help="regions and zones of published locations")
    regions.add_argument("locations", type=Path, help="domain file with coordinates, .csv")
    regions.add_argument(
        "--h3", default="5:6", help="H3 resolutions of regions and zones, as COARSE:FINE"
    )
    regions.add_argument("--out", type=Path, required=True, help="file of regions, .csv")
    regions.set_defaults(command=_regions)
    lists = actions.add_parser("lists", help="routes, directions or vehicle trips of a timetable")
    lists.add_argument("feed", type=Path, help="GTFS feed (zip or folder)")
    lists.add_argument(
        "--of", required=True, help="route, direction, vehicle_trip, stop or stop_visit"
    )
    lists.add_argument(
        "--by", default="trip_id", help="what rows name: trip_id (of the timetable), or itself"
    )
    lists.add_argument("--out", type=Path, required=True, help="the list, .csv")
    lists.set_defaults(command=_lists)


def _build(args: argparse.Namespace) -> int:
    """Write the domain and, beside it, hours of service, its sources and what did not join."""
    from turnstile.programme.domain.building import BuildRules, LocationName, build_domain
    from turnstile.programme.domain.mode_slots import hours_csv
    from turnstile.programme.domain.public_sources import read_postcodes, read_stops

    if args.out.suffix != ".csv" or not args.within_km > 0 or args.margin_minutes < 0:
        rule = "write --out as a .csv file, --within-km above 0, --margin-minutes 0 or more"
        raise InputError(where="domain build", field="options", rule=rule)
    postcode_modes = tuple(mode for mode in args.postcode_modes.split(",") if mode)
    rules = BuildRules(LocationName(args.location), postcode_modes, args.within_km)
    listed = read_stops(args.feed, args.mode)
    needs = {mode for stop in listed.stops for mode in stop.modes} & set(postcode_modes)
    if needs and args.postcodes is None:
        rule = f"{', '.join(sorted(needs))} is published by postcode; give --postcodes"
        raise InputError(where="domain build", field="--postcodes", rule=rule)
    postcodes = read_postcodes(args.postcodes) if args.postcodes else ()
    built = build_domain(listed.stops, postcodes, rules)
    if not built.places:
        rule = "no stop became a location; check feed, modes and postcodes"
        raise InputError(where=args.feed.name, field="stops", rule=rule)
    served = {m: h for m, h in listed.service_hours.items() if m in built.areas_by_mode}
    hours = hours_csv(served, margin_minutes=args.margin_minutes)
    record = {
        "sha256": hashlib.sha256(built.csv().encode()).hexdigest(),
        "feed_version": listed.feed_version,
        "sources": _sources([args.feed, *([args.postcodes] if args.postcodes else [])]),
        "rules": asdict(rules) | {"margin_minutes": args.margin_minutes},
        "locations": built.locations_by_mode,
        "areas": built.areas_by_mode,
        "service_hours": served,
        "left_out": dict(built.left_out),
    }
    _write(args.out, built, hours, record)
    _print(args.out, record)
    return 0


def _regions(args: argparse.Namespace) -> int:
    """Write which region and zone each published location lies in."""
    from turnstile.programme.domain.regions import read_areas, regions_csv

    coarse, _, fine = args.h3.partition(":")
    is_pair = coarse.isdecimal() and fine.isdecimal() and int(coarse) < int(fine) <= _H3_FINEST
    if not is_pair or args.out.suffix != ".csv":
        rule = f"write --h3 as COARSE:FINE, at most {_H3_FINEST}, and --out as a .csv file"
        raise InputError(where="domain regions", field="options", rule=rule)
    text = regions_csv(read_areas(args.locations), int(coarse), int(fine))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text, encoding="utf-8")
    print(f"{args.out}: {len(text.splitlines()) - 1} locations; name it in domain.regions")
    return 0


def _lists(args: argparse.Namespace) -> int:
    """Write the public list of a category."""
    from turnstile.programme.domain.gtfs_lists import ListOf, NamedBy, list_csv

    of, by = _chosen("--of", ListOf, args.of), _chosen("--by", NamedBy, args.by)
    text = list_csv(args.feed, of, by)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text, encoding="utf-8")
    ends = of is ListOf.STOP_VISIT
    named = " as boarding_visit, alighting_visit or both" if ends else f".{of}"
    print(f"{args.out}: {len(text.splitlines()) - 1} values; name it in domain.lists{named}")
    return 0


def _chosen(option: str, choices: type[_Choice], name: str) -> _Choice:
    """Return one of the names of an option.

    Raises:
        InputError: there is no such name.
    """
    try:
        return choices(name)
    except ValueError:
        rule = f"{name!r} is unknown; write one of {', '.join(choices)}"
        raise InputError(where="domain lists", field=option, rule=rule) from None


def _sources(paths: list[Path]) -> dict[str, str]:
    """Return name and digest of each source."""
    from turnstile.programme.gtfs.feed import sha256_of

    return {path.name: sha256_of(path) for path in paths}


def _write(out: Path, built: BuiltDomain, hours: str, record: dict[str, Any]) -> None:
    """Write the domain, the hours if the feed has them, and the record."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(built.csv(), encoding="utf-8")
    if record["service_hours"]:
        out.with_suffix(_HOURS_SUFFIX).write_text(hours, encoding="utf-8")
    out.with_suffix(".sources.json").write_text(json.dumps(record, indent=1) + "\n")


def _print(out: Path, record: dict[str, Any]) -> None:
    lines = [f"{out}: sha256 {record['sha256']}"]
    for mode, locations in record["locations"].items():
        hours = record["service_hours"].get(mode)
        service = f", served {hours[0]} to {hours[1]}" if hours else ""
        lines.append(f"{mode}: {locations} locations in {record['areas'][mode]} areas{service}")
    for reason, ids in record["left_out"].items():
        shown = ", ".join(ids[:_SHOWN]) + (", ..." if len(ids) > _SHOWN else "")
        lines.append(f"left out, {reason.replace('_', ' ')}: {len(ids)} stops ({shown})")
    if record["service_hours"]:
        lines.append(f"hours by mode, for domain.slots: {out.with_suffix(_HOURS_SUFFIX)}")
    print("\n".join(lines))
