"""`turnstile estimates verify`: makes a package's estimates again from public bytes alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnstile.errors import InputError, IntegrityError
from turnstile.publishing.estimates_check import estimate_differences
from turnstile.publishing.manifest import differences


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


def _verify(args: argparse.Namespace) -> int:
    """Compare the published estimates with those that the published numbers give."""
    folder: Path = args.folder
    if not folder.is_dir():
        raise InputError(where=str(folder), field="folder", rule="is no folder; name a package")
    problems = differences(folder)
    if not problems:
        packages = args.packages or folder.resolve().parents[2]
        problems = estimate_differences(folder, packages)
    if problems:
        raise IntegrityError(f"{folder}: {problems[0]}; restore the package")
    print(f"{folder}: the estimates are what the published numbers give, byte by byte")
    return 0
