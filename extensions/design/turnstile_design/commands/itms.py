"""`turnstile itms`: what planners of bus releases need beside the weekly steps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from turnstile.commands.ledger_opened import open_to_read
from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.weeks import Week
from turnstile.privacy.guarantees import SHOWN_AT_DELTA, Zcdp, epsilon_tight, rho_for
from turnstile.settings import Settings
from turnstile_samples.command import parse_weeks

_DENSE = 10  # buses a day in every slot: the report's base condition
_FINE = 60  # buses a day and slot, where a week's noise is about 1.3 km/h


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    parser = subparsers.add_parser("itms", help="plan bus releases: report, cells, accounting")
    actions = parser.add_subparsers(required=True, metavar="WHAT")
    _add_report(actions)
    _add_cells(actions)
    _add_accounting(actions)
    _add_rolling(actions)


def _add_report(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("report", help="private planning tables of an ingested period")
    parser.add_argument("programme", nargs="?", default="itms")
    parser.add_argument("--week", required=True, help="ISO week or days FIRST..LAST")
    parser.set_defaults(command=_report)


def _report(args: argparse.Namespace) -> int:
    """Write the private report and print its folder, never a number."""
    from turnstile.pipeline.before_charge import ingest
    from turnstile.pipeline.context import open_release
    from turnstile.pipeline.draw.current_snapshot import current_snapshot
    from turnstile.sources.ingest.snapshot import require_whole
    from turnstile_design.private_reports.private_report import write_report

    release = open_release(args.programme, args.week)
    ingest(release)
    folder = release.folders.private / "planning"
    snapshot = current_snapshot(release)
    require_whole(snapshot)  # a sealed week is not ingested again
    rows = snapshot.folder / "rows"
    write_report(release.programme, release.domain, release.week, rows_folder=rows, folder=folder)
    print(f"private: {folder}")
    return 0


def _add_cells(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("cells", help="choose public cells from a published noisy survey")
    parser.add_argument("package", type=Path, help="published survey, var/public/itms_survey/...")
    parser.add_argument("--table", default="traffic")
    parser.add_argument("--least", type=float, help="buses a day and slot (10; 60 with --coarsest)")
    parser.add_argument(
        "--coarsest",
        type=int,
        choices=range(16),
        metavar="RESOLUTION",
        help="divide the area down from this resolution of H3, 0 to 15",
    )
    parser.add_argument("--out", type=Path, required=True, help="CSV for domains/")
    parser.set_defaults(command=_cells)


def _cells(args: argparse.Namespace) -> int:
    """Write a list of cells for `include/domains`."""
    from turnstile_design.private_reports.cell_choice import dense_cells, partition
    from turnstile_design.private_reports.surveys import noisy_buses_a_day

    counts = noisy_buses_a_day(args.package, args.table)
    usual = _DENSE if args.coarsest is None else _FINE
    least = usual if args.least is None else args.least
    if args.coarsest is None:
        cells = dense_cells(counts, least)
    else:
        try:
            cells = partition(counts, least, coarsest=args.coarsest)
        except ValueError as error:
            rule = "is not finer than the cells of the survey, which have one resolution"
            raise InputError(where="turnstile itms cells", field="--coarsest", rule=rule) from error
    if not cells:
        rule = f"no cell has {least:g} buses a day in every slot; lower --least"
        raise InputError(where="turnstile itms cells", field="--least", rule=rule)
    args.out.write_text("cell\n" + "\n".join(cells) + "\n")
    print(f"{len(cells)} cells in {args.out}; review it, then name it in domain.service_area")
    return 0


def _add_accounting(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "accounting", help="the ITMS report's own epsilon, beside what it is worth"
    )
    parser.add_argument("--n", default="468", help="bus-days of each HAT, with commas; or one N")
    parser.add_argument("--k", type=int, default=89, help="most HATs of a bus and day")
    parser.add_argument("--b", default="1", help="scale of the Laplace noise")
    parser.add_argument("--v", type=int, default=65, help="largest speed, km/h")
    parser.add_argument("--days", type=int, default=31)
    parser.set_defaults(command=_accounting)


def _accounting(args: argparse.Namespace) -> int:
    """Print the source's arithmetic and the honest figures."""
    from turnstile_design.private_reports.source_accounting import source_accounting

    try:
        listed = [int(text) for text in args.n.split(",")]
        bus_days = listed * args.k if len(listed) == 1 else listed
        accounting = source_accounting(
            bus_days,
            cells_of_a_bus=args.k,
            noise_b=Fraction(args.b),
            clamp_kmh=args.v,
            days=args.days,
        )
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(
            where="turnstile itms accounting", field="N, K, B", rule=str(error)
        ) from None
    rho = rho_for(accounting.cumulative, SHOWN_AT_DELTA)
    shown = epsilon_tight(Zcdp(rho), SHOWN_AT_DELTA)
    present = f"{float(accounting.present_every_day):.1f}"
    lines = [
        "The source's figures (not a guarantee: cells, N, K and V are read from the data)",
        f"  epsilon per HAT and day, speed         {float(accounting.speed_hat_max):.3f} at most",
        f"  epsilon per HAT and day, speeding      {float(accounting.speeding_hat):.3f}",
        f"  epsilon per day, speed                 {float(accounting.speed_day):.3f}",
        f"  epsilon per day, speeding              {float(accounting.speeding_day):.3f}",
        f"  cumulative epsilon per day             {float(accounting.cumulative):.3f}",
        "The same noise, if cells, N, K and V were public constants",
        f"  one bus-day replaced                   {float(accounting.replaced_day):.2f}",
        f"  a bus that is present on all {accounting.days} days   {present}",
        "As a guarantee with the source's cumulative epsilon, ours would have",
        f"  rho {float(rho):.6f} for a bus-day, epsilon {float(shown or 0):.3f} at delta 1e-6",
    ]
    print("\n".join(lines))
    return 0


def _add_rolling(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("rolling", help="mean speeds over several published weeks, free")
    parser.add_argument("programme", nargs="?", default="itms")
    parser.add_argument("--weeks", required=True, help="2016-W30:2016-W33")
    parser.add_argument("--table", default="speed")
    parser.add_argument("--out", type=Path, help="CSV; standard output without it")
    parser.set_defaults(command=_rolling)


def _rolling(args: argparse.Namespace) -> int:
    """Add up published weeks."""
    from turnstile.estimates.labelled import csv_bytes
    from turnstile.estimates.vehicles.rolling_means import rolling_means
    from turnstile.programme.loading import load_programme
    from turnstile.publishing.package_numbers import read_week

    settings = Settings.from_environment()
    programme = load_programme(args.programme, settings.include)
    if args.table not in {table.name for table in programme.speeds}:
        raise InputError(where=programme.name, field="--table", rule="is no table of mean speeds")
    history = open_to_read().weeks(programme.name)
    weeks = [
        read_week(settings.public / _in_force(history, programme.name, str(week)), args.table)
        for week in parse_weeks(args.weeks)
    ]
    content = csv_bytes(rolling_means(weeks))
    if args.out is None:
        sys.stdout.write(content.decode())
    else:
        args.out.write_bytes(content)
    return 0


def _in_force(history: Mapping[str, Week], programme: str, week: str) -> str:
    """Return the release key of the revision of a week that is in force."""
    in_force = history[week].in_force if week in history else None
    if in_force is None:
        raise TurnstileError(f"{programme}/{week} is not published; run it first")
    return str(in_force.key)
