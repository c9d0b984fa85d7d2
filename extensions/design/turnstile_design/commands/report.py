"""`turnstile report`: how useful a sealed week is against the truth; for the private zone only."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "write the private utility report of a sealed week; prints no number"
    parser = subparsers.add_parser("report", help=text)
    parser.add_argument("programme")
    parser.add_argument("--week", required=True, help="ISO week, for example 2016-W30")
    parser.add_argument("--revision", type=int, default=0)
    parser.set_defaults(command=_report)


def _report(args: argparse.Namespace) -> int:
    """Write the report and name the file."""
    from turnstile.pipeline.context import open_release
    from turnstile_design.private_reports.trip_report import write_report

    print(write_report(open_release(args.programme, args.week, args.revision)))
    return 0
