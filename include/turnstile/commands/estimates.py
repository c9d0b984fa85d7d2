"""`turnstile estimates`: made again and compared, sums of cells, a later series of all weeks."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnstile.commands.given_package import require_package
from turnstile.errors import IntegrityError
from turnstile.publishing.describe.manifest import differences
from turnstile.publishing.estimates_check import estimate_differences
from turnstile.publishing.series.estimate_series import series_files
from turnstile.publishing.week.sums import sum_of
from turnstile.release.zone_copies import zones
from turnstile.release.zones import write_once
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("estimates", help="estimates of a published package")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    verify = actions.add_parser("verify", help="make them again from packages alone and compare")
    verify.add_argument("folder", type=Path, help="package, such as var/public/opal/2016-W30/r0")
    verify.add_argument(
        "--packages",
        type=Path,
        help="folder of earlier packages by their keys; default: the zone that the package is in",
    )
    verify.set_defaults(command=_verify)
    total = actions.add_parser("sum", help="sum of any cells, with an interval of its own")
    total.add_argument("folder", type=Path, help="package")
    total.add_argument("--table", required=True, help="table, such as location_slot")
    total.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=LABEL[,LABEL...]",
        help="cells to add up, such as slot=08:00,08:15; once for each column",
    )
    total.set_defaults(command=_sum)
    series = actions.add_parser(
        "series", help="estimate all weeks again, each with the weeks before and after it"
    )
    series.add_argument("programme", help="such as opal")
    series.add_argument("--as-of", required=True, metavar="WEEK", help="last week that goes in")
    series.add_argument("--packages", type=Path, help="packages by key; default: the public zone")
    series.add_argument(
        "--into", type=Path, help="folder; default: series/PROGRAMME/as-of-WEEK beside the zones"
    )
    series.set_defaults(command=_series)


def _verify(args: argparse.Namespace) -> int:
    """Compare the published estimates with those that the published numbers give."""
    folder: Path = args.folder
    require_package(folder)
    problems = differences(folder)
    if not problems:
        packages = args.packages or folder.resolve().parents[2]
        problems = estimate_differences(folder, packages)
    if problems:
        raise IntegrityError(f"{folder}: {problems[0]}; restore the package")
    print(f"{folder}: the estimates are what the published numbers give, byte by byte")
    return 0


def _series(args: argparse.Namespace) -> int:
    """Write a series; files of one that was made before must be the same bytes."""
    settings = Settings.from_environment()
    zones(settings).refresh()
    as_of = parse_period(args.as_of, where="--as-of")
    folder: Path = args.into or settings.home / "series" / args.programme / f"as-of-{as_of}"
    packages: Path = args.packages or settings.public
    for name, content in series_files(packages, args.programme, as_of):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_once(folder / name, content)
    print(f"{folder}: {args.programme} as estimated in {as_of}; the packages are as they were")
    return 0


def _sum(args: argparse.Namespace) -> int:
    """Print the sum of some cells: estimate, and the sum as drawn with its intervals."""
    require_package(args.folder)
    cell_sum = sum_of(args.folder, args.table, args.where)
    if (estimate := cell_sum.estimate) is not None:
        print(f"estimate: {estimate.value:.1f} ({cell_sum.cells} cells)")
        if estimate.no_interval:
            print(f"estimate: no interval: {estimate.no_interval}")
        else:
            print(f"estimate: 90 % interval {estimate.low_90:.0f} to {estimate.high_90:.0f}")
            print(f"estimate: 95 % interval {estimate.low_95:.0f} to {estimate.high_95:.0f}")
    for level, width in ((90, cell_sum.error.half_width_90), (95, cell_sum.error.half_width_95)):
        low, high = cell_sum.measured - width, cell_sum.measured + width
        print(f"measured: {cell_sum.measured}, {level} % interval {low:.0f} to {high:.0f}")
    return 0
