"""`turnstile assess`: attack a package or an external table of counts, as an outsider would."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnstile.commands.printed_json import print_json
from turnstile_lab.disclosures import Disclosure, as_json, disclosure_of

_CELLS_SHOWN = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "assess", help="attack a package or a table of counts with what is published alone"
    )
    parser.add_argument(
        "path",
        type=Path,
        nargs="+",
        help=(
            "package folder (further ones are compared with it), or CSV files, or a folder of "
            "them, with mode,date,tap,time,loc,count"
        ),
    )
    parser.add_argument(
        "--gtfs", type=Path, help="public timetable: which cells are one vehicle or one stop"
    )
    parser.add_argument(
        "--locations",
        type=Path,
        help="CSV of mode, location, area: which area each stop of the timetable is published as",
    )
    parser.add_argument("--json", action="store_true", help="write everything as JSON")
    parser.set_defaults(command=_assess)


def _assess(args: argparse.Namespace) -> int:
    """Print what was found. Findings are a report: they do not change the exit code."""
    kind, findings = _findings(args.path, args.gtfs, args.locations)
    if args.json:
        content = {"paths": [str(path) for path in args.path], "kind": kind, **as_json(findings)}
        print_json(content)
        return 0
    for finding in findings:
        print(f"{'!' if finding.is_flaw else ' '} {finding.name:16} {finding.statement}")
        for line in _exposed(finding):
            print(f"  {'':16} {line}")
    return 0


def _exposed(finding: Disclosure) -> list[str]:
    """Return a line for each of the first cells that a timetable exposes."""
    cells = finding.figures.get("cells", []) if finding.name == "timetable" else []
    lines = [
        f"{c['mode']}, {c['area']}, {c['slot']} ({', '.join(c['days'])}): "
        + " and ".join(what for what in ("one_vehicle", "one_stop") if c[what]).replace("_", " ")
        for c in cells[:_CELLS_SHOWN]
    ]
    rest = len(cells) - len(lines) + finding.figures.get("cells_not_listed", 0) if cells else 0
    return [*lines, f"and {rest:,} more; --json lists them"] if rest else lines


def _findings(
    paths: list[Path], gtfs: Path | None, locations: Path | None
) -> tuple[str, tuple[Disclosure, ...]]:
    """Assess a package, or everything else as one external table."""
    from turnstile.assessment.attacks.timetable_feed import read_timetable
    from turnstile.assessment.attacks.timetable_view import view
    from turnstile.publishing.package_reader import is_package, read_package
    from turnstile_lab.package.cell_labels import labels_of_tables, read_lookup
    from turnstile_lab.package.comparison import compared
    from turnstile_lab.package.of_package import assess_package
    from turnstile_lab.tables import assessed

    lookup = {} if locations is None else read_lookup(locations)
    if all(is_package(path) for path in paths):
        package, *others = (read_package(path) for path in paths)
        kind, disclosures, labels = (
            "package",
            (*assess_package(package), *(compared(package, other) for other in others)),
            labels_of_tables(package.tables, lookup),
        )
        days = {block.service_date for event in package.events for block in event.blocks}
    else:
        kind, (disclosures, labels, days) = "table", assessed(paths, lookup)
    seen = None if gtfs is None else view(read_timetable(gtfs, days), labels)
    return kind, (*disclosures, disclosure_of(seen))
