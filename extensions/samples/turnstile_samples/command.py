"""`turnstile sample`: write made-up landing files, because nobody can download trips."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.durable_files import delete_for_good, sha256_of
from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed
from turnstile.service_calendar import ServiceWeek
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
    parser.add_argument("--rows", type=int, default=_ROWS, help="a week; of buses 5,000 or more")
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
    parser.add_argument(
        "--replace", action="store_true", help="delete what else lies where a week goes"
    )
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Write the files and name their folders; exit code 0.

    Raises:
        InputError: weeks, rows or corruptions that cannot be, or the landing zone is a store.
    """
    from turnstile_samples import apc, tides

    weeks = parse_weeks(args.weeks)
    if args.rows < 1 or args.seed < 0:
        rule = "rows are at least 1 and a seed at least 0"
        raise InputError(where="sample", field="--rows, --seed", rule=rule)
    settings = Settings.from_environment()
    if args.out is None and settings.store_of("landing"):
        rule = "is a store, and this writes a folder: say --out FOLDER, and copy it there"
        raise InputError(where="sample", field="the landing zone", rule=rule)
    landing = args.out or settings.landing
    domains = settings.include / "domains"
    maker = _MAKERS[args.programme](args, domains)
    for week in weeks:
        _write(maker, args, landing / args.programme / str(week), week)
    if args.programme in _PUBLIC_FEEDS:
        feed = (args.out or settings.home) / f"{args.programme}_gtfs.zip"
        (apc.write_apc_gtfs if args.programme == "apc" else tides.write_gtfs)(feed)
        print(f"{args.programme}: the public feed of its stops in {feed}")
    return 0


def _write(maker: Maker, args: argparse.Namespace, folder: Path, week: ServiceWeek) -> None:
    """Write one week; other files that lie there, perhaps delivered, go only if a person says so.

    Raises:
        InputError: there are other files, and nobody says so.
    """
    from turnstile_samples.writing import LandingWeek, SampleForm

    there, form = sorted(folder.glob("*")), SampleForm(args.format)
    if there and not args.replace:
        with tempfile.TemporaryDirectory(prefix="turnstile-sample-") as scratch:
            files = maker(LandingWeek(Path(scratch), week, form))
            if _contents(files) != _contents(there):
                rule = "holds other files of this week: say --replace to delete them, or use --out"
                raise InputError(where=str(folder), field="sample", rule=rule)
    else:
        for old in there:
            delete_for_good(old)
        files = maker(LandingWeek(folder, week, form))
    print(f"{args.programme} {week}: {len(files)} files in {folder}")


def _contents(files: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each file by its name."""
    return {file.name: sha256_of(file) for file in files}


def _trips_maker(args: argparse.Namespace, domains: Path) -> Maker:
    """Return what writes one week of trips: taps, transactions, events, or without cards."""
    from turnstile_samples import apc, opal, tides, without_cards, writing
    from turnstile_samples.corruption import parse_corruptions

    legal = opal.CORRUPTIONS if args.programme == "opal" else tides.CORRUPTIONS
    corruptions = parse_corruptions(args.corruption, legal=legal)
    places = opal.read_places(domains / "opal_locations.csv")

    def write(to: LandingWeek) -> tuple[Path, ...]:
        """Write one week."""
        rows = opal.opal_rows(to.week, args.rows, args.seed, places=places, corruptions=corruptions)
        match args.programme:
            case "opal":
                return writing.write_opal(rows, places, to)
            case "tides":
                return tides.write_tides(rows, to)
            case "apc":
                return apc.write_apc(rows, to)
            case feed:
                return without_cards.write_without_cards(Feed(feed), rows, to)

    return write


def _vehicles_maker(args: argparse.Namespace, domains: Path) -> Maker:
    """Return what writes one week of observations of vehicles; those of `itms` may be spoiled."""
    from turnstile.programme.loading import load_programme
    from turnstile_samples import by_feed, itms, writing
    from turnstile_samples.corruption import parse_corruptions

    is_itms = args.programme == "itms"
    legal = itms.CORRUPTIONS if is_itms else ()
    corruptions = parse_corruptions(args.corruption, legal=legal)
    area = itms.read_area(domains / "surat_area.geojson")
    if is_itms:
        write_rows = partial(writing.write_itms, shape=writing.ItmsShape(args.shape))
    else:
        programme = load_programme("itms", domains.parent)
        write_rows = partial(by_feed.write_vehicles, Feed(args.programme), programme=programme)

    def write(to: LandingWeek) -> tuple[Path, ...]:
        """Write one week."""
        rows = itms.itms_rows(to.week, args.rows, args.seed, area=area, corruptions=corruptions)
        return write_rows(rows=rows, to=to)

    return write


_CALLS = (Feed.GTFS_TRIP_UPDATES, Feed.IST_DATEN)
_VEHICLES = (
    *(Feed.GTFS_VEHICLE_POSITIONS, Feed.HFP, Feed.SIRI_VM, Feed.TIDES_VEHICLE_LOCATIONS),
    *_CALLS,
)
_WITHOUT_CARDS = tuple(map(str, (Feed.HIRED_TRIPS, Feed.GATE_COUNTS, Feed.GATE_COUNTERS)))
_MAKERS = {
    "opal": _trips_maker,
    "itms": _vehicles_maker,
    "tides": _trips_maker,
    "apc": _trips_maker,
    **dict.fromkeys(map(str, _VEHICLES), _vehicles_maker),
    **dict.fromkeys(_WITHOUT_CARDS, _trips_maker),
}
_PUBLIC_FEEDS = ("tides", "apc", *_WITHOUT_CARDS, *map(str, _CALLS))


def parse_weeks(text: str) -> tuple[ServiceWeek, ...]:
    """Read one week, or a range `2016-W30:2016-W32` with both ends included.

    Raises:
        InputError: not a week, or the range runs backwards.
    """
    first_text, _, last_text = text.partition(":")
    first = ServiceWeek.parse(first_text, where="--weeks")
    last = ServiceWeek.parse(last_text, where="--weeks") if last_text else first
    if last < first:
        rule = f"{text} runs backwards; swap the two weeks"
        raise InputError(where="--weeks", field="weeks", rule=rule)
    weeks = [first]
    while weeks[-1] < last:
        weeks.append(weeks[-1].plus(1))
    return tuple(weeks)
