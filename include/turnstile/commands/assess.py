"""`turnstile assess`: attack a package or a bare table of counts, as an outsider would."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from turnstile.assessment.findings import Finding, as_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "assess", help="attack a package or a table of counts with what is published alone"
    )
    parser.add_argument(
        "path",
        type=Path,
        nargs="+",
        help="package folder, or CSV files (or a folder of them) with mode,date,tap,time,loc,count",
    )
    parser.add_argument("--json", action="store_true", help="write everything as JSON")
    parser.set_defaults(command=_assess)


def _assess(args: argparse.Namespace) -> int:
    """Print what was found. Findings are a report: they do not change the exit code."""
    kind, findings = _findings(args.path)
    if args.json:
        content = {"paths": [str(path) for path in args.path], "kind": kind, **as_json(findings)}
        print(json.dumps(content, indent=1))
        return 0
    for finding in findings:
        print(f"{'!' if finding.is_flaw else ' '} {finding.name:16} {finding.statement}")
    return 0


def _findings(paths: list[Path]) -> tuple[str, tuple[Finding, ...]]:
    """Assess a package, or everything else as one bare table."""
    from turnstile.assessment.bare_findings import assess_bare
    from turnstile.assessment.bare_table import read_bare_tables
    from turnstile.assessment.package_findings import assess_package, is_package, read_package

    if len(paths) == 1 and is_package(paths[0]):
        return "package", assess_package(read_package(paths[0]))
    return "table", assess_bare(read_bare_tables(paths))
