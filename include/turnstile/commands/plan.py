"""`turnstile plan`: what a week would draw and cost, before any data is touched."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from turnstile.commands.printed_json import print_json
from turnstile.errors import InputError
from turnstile.estimates.error_bars import error_bar
from turnstile.extensions import PLANNING, brought, installed
from turnstile.ledger.of_deployment import open_ledger_to_look
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.ledger_preview import refusal_before_reading
from turnstile.pipeline.trials.gain import no_gain
from turnstile.pipeline.trials.room import crash_sentence, tightest_room
from turnstile.pipeline.trials.small_worlds import beside_each_other, small_worlds
from turnstile.pipeline.week_plan import (
    left_under_caps,
    losses,
    source_thresholds,
    week_plan,
)
from turnstile.privacy.events import one_of_each_label
from turnstile.programme.source_spec import RowShape
from turnstile.publishing.card import day_above_week
from turnstile.publishing.package_size import large_package, package_size

_ANY_WEEK = "2016-W30"  # planning tables are the same in every week
_looked_at = partial(open_release, opened=open_ledger_to_look)
TRIPS = "tap-ons a week of the mode with the most places"
_TRIPS, _BUSES = 2_000_000, 150


def positive(text: str) -> int:
    """Read a number of something.

    Raises:
        ArgumentTypeError: it is none, or below 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("plan", help="show a week's draws and losses; touches no data")
    parser.add_argument("programme")
    parser.add_argument("--week", help="ISO week, for example 2016-W30; or days FIRST..LAST")
    parser.add_argument(
        "--compare", action="store_true", help="errors of other designs at the same loss"
    )
    parser.add_argument(
        "--grains", action="store_true", help="the finest grain that beats naive tables"
    )
    parser.add_argument(
        "--trips",
        type=positive,
        help=f"{TRIPS}, a made city (the programme's typical_volume, else {_TRIPS:,})",
    )
    parser.add_argument(
        "--buses",
        type=positive,
        help=f"buses a day of the made city (the programme's typical_volume, else {_BUSES})",
    )
    parser.add_argument(
        "--published", type=Path, help="package whose estimates stand in for the made city"
    )
    parser.add_argument("--weeks", type=positive, help="the loss of so many weekly releases")
    parser.add_argument(
        "--year-to-date",
        action="store_true",
        help="errors of 13-week and yearly sums if each week carried the year along, and the price",
    )
    parser.add_argument("--json", action="store_true", help="write everything as JSON")
    parser.set_defaults(command=_plan)


def _plan(args: argparse.Namespace) -> int:
    if args.compare or args.grains or args.year_to_date or args.weeks is not None:
        return _tables(_looked_at(args.programme, args.week or _ANY_WEEK), args)
    if args.week is None:
        rule = "is missing; write an ISO week, for example 2016-W30"
        raise InputError(where="plan", field="--week", rule=rule)
    release = _looked_at(args.programme, args.week)
    if args.json:
        print_json(week_plan(release), sort_keys=True)
        return 0
    print(f"{release.key}: {release.programme.title}")
    print(f"\n{'draw':32} {'noise':18} {'scale':>10} {'sd':>10} {'95 % within':>12}")
    for event in one_of_each_label(release.plan.events):
        bar = error_bar(event)
        print(
            f"{event.label:32} {event.noise:18} {float(event.scale):>10.4g} "
            f"{bar.standard_deviation:>10.4g} {bar.half_width_95:>12}"
        )
    for label, threshold, integer in source_thresholds(release):
        print(f"{label}: the source's threshold {threshold:.3f} is {integer} for integers")
    heads = ("epsilon", "at 1e-6", "replace", "rho")
    print(f"\n{'loss of one':16} " + " ".join(f"{head:>12}" for head in heads))
    for unit, figures in losses(release).items():
        names = ("epsilon", "epsilon_at_delta_1e-6", "epsilon_replace", "rho")
        values = [figures[name] or "infinite" for name in names]
        print(f"{unit:16} " + " ".join(f"{value:>12}" for value in values))
    if why := day_above_week(losses(release)):
        print(why)
    source = release.programme.source
    if source.feed.shape is RowShape.TRIPS:
        print(source.without_card_sentence)
    _print_room(release)
    worlds = small_worlds(release.programme, release.settings.small_worlds)
    print("", *beside_each_other(worlds), sep="\n")
    if source.feed.shape is RowShape.TELEMETRY:
        print(*_of_grain(release), sep="\n")
    return 0


def _print_room(release: Release) -> None:
    """Print what a draw that dies costs, what caps leave, the package's size and what refuses."""
    room = tightest_room(release.programme, release.domain, release.week)
    if room is not None:
        print(crash_sentence(room))
    for line in left_under_caps(release):
        print(f"cap on {line['unit']}, {line['scope']}: {line['left']} left")
    size = package_size(release.programme, release.domain, release.plan)
    print(size.sentence)
    if nothing := no_gain(release.programme, release.domain, release.settings.include):
        print(f"refused by check and run: {nothing}")
    asked = release.ledger, release.programme, release.plan, release.settings
    if refusal := refusal_before_reading(*asked):
        print(f"refused by run: {refusal}")
    if warning := large_package(size, release.programme, release.settings.include, release.plan):
        print(f"warning: {warning}")


def _of_grain(release: Release) -> Sequence[str]:
    """Return what the estimates say at the grain that the programme states."""
    if "estimate_tables" not in installed(PLANNING):
        return ["", "what estimates say at this grain: install the extension design"]
    lines: Sequence[str] = _tables_of("estimate_tables", "plan").written_grain(release)
    return lines


def _tables_of(name: str, asked_by: str) -> Any:  # noqa: ANN401 - a module of an extension
    """Return a module of planning tables.

    Raises:
        InputError: the extension that brings it is not installed.
    """
    return brought(PLANNING, name, asked_by=asked_by)


def _tables(release: Release, args: argparse.Namespace) -> int:
    """Print the planning tables that were asked for, of a city as large as the programme plans."""
    typical = release.programme.typical_volume  # of what it counts
    trips, buses = args.trips or typical or _TRIPS, args.buses or typical or _BUSES
    if args.weeks is not None:
        print(*_tables_of("plan_tables", "--weeks").many_weeks(release, args.weeks), sep="\n")
    if args.compare:
        for line in _tables_of("plan_tables", "--compare").comparison(release):
            print(line)
        for line in _tables_of("estimate_tables", "--compare").ranking(
            release, trips, args.published
        ):
            print(line, flush=True)
    if args.grains:
        advice = _tables_of("estimate_tables", "--grains").grain_advice(
            release, trips=trips, buses=buses, published=args.published
        )
        for line in advice:
            print(line)
    if args.year_to_date:
        prices = _tables_of("price_of_year_to_date", "--year-to-date")
        for line in prices.year_to_date(release):  # what is known is printed before a refusal
            print(line)
    return 0
