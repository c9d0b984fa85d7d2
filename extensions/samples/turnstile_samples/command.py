"""`turnstile sample`: write made-up landing files, because nobody can download trips."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.durable_files import delete_for_good
from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed
from turnstile.service_calendar import ServiceWeek, parse_weeks
from turnstile.settings import Settings

if TYPE_CHECKING:
    from turnstile_samples.writing import LandingWeek

_ROWS = 100_000
Maker = Callable[["LandingWeek"], tuple[Path, ...]]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sample` to the command line."""
    parser = subparsers.add_parser("sample", help="write made-up landing files of some weeks")
    parser.add_argument("programme", choices=tuple(_MAKERS))
    parser.add_argument("--weeks", required=True, help="2016-W30 or 2016-W30:2016-W32")
    parser.add_argument("--rows", type=int, default=_ROWS, help="rows of each week")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", default="csv", choices=("csv", "csv.gz", "parquet", "json"))
    parser.add_argument(
        "--shape",
        default="mixed",
        choices=("string", "split", "nested", "mixed"),
        help="shape of an ITMS record; nested is JSON",
    )
    parser.add_argument(
        "--corruption", default="", help="duplicates,nulls,outliers,late,missing-day,..."
    )
    parser.add_argument("--out", type=Path, help="landing zone (default: the one of the zones)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Write the files and name their folders; exit code 0.

    Raises:
        InputError: weeks, rows or corruptions that cannot be.
    """
    weeks = parse_weeks(args.weeks)
    if args.rows < 1 or args.seed < 0:
        rule = "rows are at least 1 and a seed at least 0"
        raise InputError(where="sample", field="--rows, --seed", rule=rule)
    settings = Settings.from_environment()
    landing = args.out or settings.landing
    domains = settings.include / "domains"
    maker = _MAKERS[args.programme](args, domains)
    for week in weeks:
        _write(maker, args, landing / args.programme / str(week), week)
    if args.programme in _PUBLIC_FEEDS:
        feed = (args.out or settings.home) / f"{args.programme}_gtfs.zip"
        _write_feed(args.programme, feed)
        print(f"{args.programme}: the public feed of its stops in {feed}")
    return 0


def _write(maker: Maker, args: argparse.Namespace, folder: Path, week: ServiceWeek) -> None:
    """Write one week; files of an earlier sample of that week do not stay beside the new ones."""
    from turnstile_samples.writing import LandingWeek, SampleForm

    for old in folder.glob(f"{args.programme}-*"):
        delete_for_good(old)
    files = maker(LandingWeek(folder, week, SampleForm(args.format)))
    print(f"{args.programme} {week}: {len(files)} files in {folder}")


def _opal_maker(args: argparse.Namespace, domains: Path) -> Maker:
    """Return what writes one week of trips."""
    from turnstile_samples import opal, writing
    from turnstile_samples.corruption import parse_corruptions

    corruptions = parse_corruptions(args.corruption, legal=opal.CORRUPTIONS)
    places = opal.read_places(domains / "opal_locations.csv")

    def write(to: LandingWeek) -> tuple[Path, ...]:
        """Write one week."""
        rows = opal.opal_rows(to.week, args.rows, args.seed, places=places, corruptions=corruptions)
        return writing.write_opal(rows, places, to)

    return write


def _itms_maker(args: argparse.Namespace, domains: Path) -> Maker:
    """Return what writes one week of observations."""
    from turnstile_samples import itms, writing
    from turnstile_samples.corruption import parse_corruptions

    corruptions = parse_corruptions(args.corruption, legal=itms.CORRUPTIONS)
    area = itms.read_area(domains / "surat_area.geojson")
    shape = writing.ItmsShape(args.shape)

    def write(to: LandingWeek) -> tuple[Path, ...]:
        """Write one week."""
        rows = itms.itms_rows(to.week, args.rows, args.seed, area=area, corruptions=corruptions)
        return writing.write_itms(rows, shape, to)

    return write


def _tides_maker(args: argparse.Namespace, domains: Path) -> Maker:
    """Return what writes one week of fare transactions, passenger events, or without cards."""
    from turnstile_samples import apc, opal, tides, without_cards
    from turnstile_samples.corruption import parse_corruptions

    corruptions = parse_corruptions(args.corruption, legal=tides.CORRUPTIONS)
    places = opal.read_places(domains / "opal_locations.csv")

    def write(to: LandingWeek) -> tuple[Path, ...]:
        """Write one week."""
        rows = opal.opal_rows(to.week, args.rows, args.seed, places=places, corruptions=corruptions)
        if args.programme in _WITHOUT_CARDS:
            return without_cards.write_without_cards(Feed(args.programme), rows, to)
        return tides.write_tides(rows, to) if args.programme == "tides" else apc.write_apc(rows, to)

    return write


def _vehicle_maker(args: argparse.Namespace, domains: Path) -> Maker:
    """Return what writes one week of another feed of vehicles."""
    from turnstile.programme.loading import load_programme
    from turnstile_samples import by_feed, itms

    feed = Feed(args.programme)
    area = itms.read_area(domains / "surat_area.geojson")
    programme = load_programme("itms", domains.parent)

    def write(to: LandingWeek) -> tuple[Path, ...]:
        """Write one week."""
        rows = itms.itms_rows(to.week, args.rows, args.seed, area=area, corruptions=frozenset())
        return by_feed.write_vehicles(feed, rows, to, programme)

    return write


def _write_feed(name: str, path: Path) -> None:
    """Write the public feed that a sample goes with."""
    from turnstile_samples import apc, tides

    (apc.write_apc_gtfs if name == "apc" else tides.write_gtfs)(path)


_CALLS = (Feed.GTFS_TRIP_UPDATES, Feed.IST_DATEN)
_VEHICLES = (
    *(Feed.GTFS_VEHICLE_POSITIONS, Feed.HFP, Feed.SIRI_VM, Feed.TIDES_VEHICLE_LOCATIONS),
    *_CALLS,
)
_WITHOUT_CARDS = tuple(map(str, (Feed.HIRED_TRIPS, Feed.GATE_COUNTS, Feed.GATE_COUNTERS)))
_MAKERS = {
    "opal": _opal_maker,
    "itms": _itms_maker,
    "tides": _tides_maker,
    "apc": _tides_maker,
    **{str(feed): _vehicle_maker for feed in _VEHICLES},
    **dict.fromkeys(_WITHOUT_CARDS, _tides_maker),
}
_PUBLIC_FEEDS = ("tides", "apc", *_WITHOUT_CARDS, *map(str, _CALLS))
