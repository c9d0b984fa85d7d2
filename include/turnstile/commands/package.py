"""`turnstile package`: what anybody can check of packages, and sums of them by region."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from turnstile.commands.given_package import require_package
from turnstile.commands.ledger_opened import open_to_read
from turnstile.errors import InputError, IntegrityError
from turnstile.ledger.records import ReleaseKey
from turnstile.publishing.carried import verify_package
from turnstile.publishing.describe.manifest import MANIFEST
from turnstile.release.zone_copies import zones
from turnstile.release.zones import digest_of
from turnstile.settings import Settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("package", help="check a published package")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    verify = actions.add_parser("verify", help="digests, schema, signature, consistency, ledger")
    verify.add_argument("packages", nargs="+", metavar="DIR|URL")
    verify.add_argument("--key", help="the ledger's public key: a file, an address or the line")
    verify.add_argument("--log-key", help="the transparency log's public key, log.pub, as --key")
    verify.add_argument("--since", help="a checkpoint of that log which you kept: file or address")
    verify.add_argument("--series", action="store_true", help="add up what all packages cost")
    verify.set_defaults(command=_verify)
    regions = actions.add_parser("regions", help="sums by H3 cell or boundary, with their errors")
    regions.add_argument("package", type=Path, metavar="DIR")
    regions.add_argument("--table", required=True, help="name of a table in data/")
    into = regions.add_mutually_exclusive_group(required=True)
    into.add_argument("--h3", type=int, metavar="RESOLUTION", help="cells of H3, 0 to 15")
    into.add_argument(
        "--boundaries", type=Path, metavar="FILE", help="polygons: GeoJSON or GeoPackage"
    )
    regions.add_argument("--name", default="name", help="property that names a polygon (name)")
    regions.add_argument("--layer", default="", help="of a GeoPackage, where it has several")
    regions.add_argument("--column", default="measured", help="measured, unbiased or value")
    regions.add_argument("--tap", choices=("on", "off"), default="on", help="end of the trip (on)")
    regions.add_argument("--by", action="append", default=[], help="tap, mode, service_date")
    regions.add_argument("--out", type=Path, help="CSV; standard output by default")
    regions.set_defaults(command=_regions)


def _verify(args: argparse.Namespace) -> int:
    """Check packages as their own verifier does; those in this home against its ledger too."""
    given = {"--key": args.key, "--log-key": args.log_key, "--since": args.since}
    options = [word for name, value in given.items() if value for word in (name, value)]
    options += ["--series"] if args.series else []
    settings = Settings.from_environment()
    zones(settings).refresh()
    for address in args.packages:
        if not address.startswith(verify_package.WEB):
            require_package(Path(address))
    code = verify_package.main([*args.packages, *options])
    if code:
        return code
    for address in args.packages:
        folder = Path(address).resolve()
        if folder.is_relative_to(settings.public):
            _require_publication(folder)
    return 0


def _regions(args: argparse.Namespace) -> int:
    """Print the sums of regions as CSV."""
    from turnstile.publishing.week.regions import (
        h3_regions,
        polygon_regions,
        sums_by_region,
        sums_csv,
        without_one_mode,
    )

    require_package(args.package)
    region_of = (
        polygon_regions(args.boundaries, args.name, args.layer)
        if args.boundaries
        else h3_regions(args.h3)
    )
    sums = sums_by_region(
        args.package, args.table, region_of, args.by, column=args.column, tap=args.tap
    )
    content = sums_csv(sums, without_one_mode(args.package, args.by))
    if args.out is None:
        sys.stdout.write(content.decode())
    else:
        args.out.write_bytes(content)
    return 0


def _require_publication(folder: Path) -> None:
    """Refuse a package of this home that its ledger does not hold.

    Raises:
        IntegrityError: no publication of this manifest.
    """
    content = (folder / MANIFEST).read_bytes()
    key = ReleaseKey.parse(json.loads(content)["key"])
    try:
        ledger = open_to_read()
    except InputError:
        return  # public files alone: there is no ledger here
    attempt = ledger.find(key)
    if attempt is None or attempt.manifest_digest != digest_of(content):
        raise IntegrityError(f"{folder}: the ledger holds no publication of this manifest as {key}")
    print(f"{key}: every file is as published; ledger entry {ledger.head()[0]} or before")
